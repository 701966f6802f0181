"""The RMSNorm layer."""

from __future__ import annotations

import torch

from minisgl.kernel import rms_norm
from minisgl.layers.base import BaseOP


class RMSNorm(BaseOP):
    """Normalize the last dimension by its root mean square. Whole on every rank.

    Attributes:
        weight: [size].
    """

    def __init__(self, size: int, eps: float) -> None:
        """Make room for `size` weights; `eps` is added to the mean of squares."""
        self.weight = torch.empty(size)
        self._eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a new tensor of `x`'s shape [..., size] and dtype."""
        return rms_norm(x, self.weight, self._eps)

"""Root-mean-square normalization."""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Divide each row by its root mean square and scale it.

    The mean is taken in float32 and the result cast back before it is scaled, as transformers does: scaling first
    would round bfloat16 values differently.

    Args:
        x: [..., size], any float dtype.
        weight: [size], same dtype as `x`.
        eps: added to the mean of squares, against division by zero.

    Returns:
        A new tensor of `x`'s shape and dtype.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4.
    """
    wide = x.to(torch.float32)
    inverse_rms = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    return weight * (wide * inverse_rms).to(x.dtype)

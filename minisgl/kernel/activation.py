"""The activation of the gated MLP."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up, where gate is the first half of the last dimension and up the second.

    Args:
        x: [..., 2 * intermediate_size], what `gate_up_proj` gives.

    Returns:
        A new tensor [..., intermediate_size] of the same dtype.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", SwiGLU.
    """
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up

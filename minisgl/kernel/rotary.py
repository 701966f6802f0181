"""Rotation of query and key heads by their position."""

from __future__ import annotations

import torch


def apply_rotary(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate each pair (i, i + head_dim / 2) of each head by its token's angle.

    Args:
        heads: [num_tokens, num_heads, head_dim].
        cos: [num_tokens, head_dim], same dtype as `heads`; the second half repeats the first.
        sin: as `cos`.

    Returns:
        A new tensor of `heads`' shape and dtype.

    Source: Su et al. 2021, "RoFormer"; the pairs are those of Hugging Face checkpoints, not (2i, 2i + 1).
    """
    first, second = heads.chunk(2, dim=-1)
    quarter_turn = torch.cat((-second, first), dim=-1)
    return heads * cos.unsqueeze(1) + quarter_turn * sin.unsqueeze(1)

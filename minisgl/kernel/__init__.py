"""The operations that a faster kernel could replace, in plain PyTorch.

Each computes what transformers computes, in the same order of operations and casts, so that half-precision results
agree too.
"""

from minisgl.kernel.activation import silu_and_mul
from minisgl.kernel.moe import moe_forward
from minisgl.kernel.norm import rms_norm
from minisgl.kernel.rotary import apply_rotary

__all__ = ["apply_rotary", "moe_forward", "rms_norm", "silu_and_mul"]

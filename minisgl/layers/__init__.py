"""The layers that models are built from; each computes its share of the sizes from the tensor-parallel info."""

from minisgl.kernel import silu_and_mul
from minisgl.layers.attention import AttentionLayer
from minisgl.layers.base import BaseOP, OPList
from minisgl.layers.embedding import ParallelLMHead, VocabParallelEmbedding
from minisgl.layers.linear import LinearColParallelMerged, LinearQKVMerged, LinearReplicated, LinearRowParallel
from minisgl.layers.moe import MoELayer
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rotary import RotaryEmbedding, get_rope, set_rope_device

__all__ = [
    "AttentionLayer",
    "BaseOP",
    "LinearColParallelMerged",
    "LinearQKVMerged",
    "LinearReplicated",
    "LinearRowParallel",
    "MoELayer",
    "OPList",
    "ParallelLMHead",
    "RMSNorm",
    "RotaryEmbedding",
    "VocabParallelEmbedding",
    "get_rope",
    "set_rope_device",
    "silu_and_mul",
]

"""Scaled-dot-product attention over a contiguous KV cache with one slot a request."""

from minisgl.attention.kv_cache import KVCache
from minisgl.attention.sdpa import attend

__all__ = ["KVCache", "attend"]

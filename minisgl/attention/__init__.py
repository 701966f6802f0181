"""Scaled-dot-product attention over a contiguous KV cache with one slot a request."""

from minisgl.attention.sdpa import attend
from minisgl.kv_cache import KVCache

__all__ = ["KVCache", "attend"]

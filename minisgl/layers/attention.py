"""The attention layer between qkv_proj and o_proj."""

from __future__ import annotations

import torch

from minisgl.attention import attend
from minisgl.core import get_global_ctx
from minisgl.distributed import local_num_kv_heads, local_num_qo_heads
from minisgl.kernel import apply_rotary
from minisgl.layers.base import BaseOP
from minisgl.layers.norm import RMSNorm
from minisgl.layers.rope_types import RopeSizes
from minisgl.layers.rotary import get_rope


class AttentionLayer(BaseOP):
    """Attend with this rank's heads. Has no parameters of its own; the norms belong to whoever passes them in."""

    def __init__(
        self,
        layer_id: int,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rotary_config: RopeSizes,
        q_norm: RMSNorm | None = None,
        k_norm: RMSNorm | None = None,
    ) -> None:
        """Note the sizes.

        Args:
            layer_id: which layer of the KV cache to use.
            num_qo_heads: query heads of the whole model.
            num_kv_heads: kv heads of the whole model.
            head_dim: values of one head.
            rotary_config: how positions turn into angles.
            q_norm: RMSNorm(head_dim) on each query head before RoPE, or None.
            k_norm: the same on each key head.

        Raises:
            MinisglError: the heads can't be dealt out to this number of ranks.
        """
        self._layer_id = layer_id
        self._head_dim = head_dim
        self._local_num_qo_heads = local_num_qo_heads(num_qo_heads, num_kv_heads)
        self._local_num_kv_heads = local_num_kv_heads(num_qo_heads, num_kv_heads)
        self._rotary = get_rope(rotary_config)
        self._q_norm = q_norm
        self._k_norm = k_norm

    def forward(self, qkv: torch.Tensor) -> torch.Tensor:
        """Split, normalize, rotate, store and attend.

        Args:
            qkv: [num_tokens, (local_num_qo_heads + 2 * local_num_kv_heads) * head_dim].

        Returns:
            A new tensor [num_tokens, local_num_qo_heads * head_dim].
        """
        context = get_global_ctx()
        # [num_tokens, rows] to [num_tokens, heads, head_dim]: whole heads lie behind one another.
        heads = qkv.view(qkv.shape[0], -1, self._head_dim)
        kv_heads = self._local_num_kv_heads
        queries, keys, values = heads.split([self._local_num_qo_heads, kv_heads, kv_heads], dim=1)
        if self._q_norm is not None:
            queries = self._q_norm.forward(queries)
        if self._k_norm is not None:
            keys = self._k_norm.forward(keys)
        cos, sin = self._rotary.tables(context, queries.dtype)
        queries = apply_rotary(queries, cos, sin)
        keys = apply_rotary(keys, cos, sin)
        return attend(context, self._layer_id, queries, keys, values).reshape(qkv.shape[0], -1)

"""Causal attention of one layer over a flat batch.

Shape letters: T tokens of the batch, B requests, Q query heads, K kv heads, G = Q / K query heads a kv head,
N new tokens of one request, L all tokens of one request, D head_dim. Heads are this rank's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.core import Batch, Context


def attend(
    context: Context, layer_id: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Store the new keys and values, then let every new token attend to its request up to itself.

    Args:
        context: the running forward pass.
        layer_id: which layer's part of the cache to use.
        queries: [num_tokens, num_qo_heads, head_dim].
        keys: [num_tokens, num_kv_heads, head_dim].
        values: as `keys`.

    Returns:
        A new tensor [num_tokens, num_qo_heads, head_dim].
    """
    if context.batch.is_prefill:
        return _prefill(context, layer_id, queries, keys, values)
    return _decode(context, layer_id, queries, keys, values)


def _prefill(
    context: Context, layer_id: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Attend request by request: no padding, so unequal prompts cost nothing extra and can't leak into one another."""
    batch, cache = context.batch, context.kv_cache
    lens = batch.query_lens
    outputs = []
    pieces = zip(queries.split(lens), keys.split(lens), values.split(lens), strict=True)
    for request, (query_TQD, key_TKD, value_TKD) in enumerate(pieces):
        start = batch.seq_lens[request] - lens[request]
        key_KLD, value_KLD = key_TKD.transpose(0, 1), value_TKD.transpose(0, 1)
        if cache is not None:
            cache.write(layer_id, request, start, key_TKD, value_TKD)
            if start > 0:
                key_KLD, value_KLD = cache.read(layer_id, request, batch.seq_lens[request])
        outputs.append(_attend_one(query_TQD, key_KLD, value_KLD, start))
    return torch.cat(outputs)


def _attend_one(query_NQD: torch.Tensor, key_KLD: torch.Tensor, value_KLD: torch.Tensor, start: int) -> torch.Tensor:
    """Attend causally within one request, whose first new token stands at position `start`: [N, Q, D]."""
    mask = None
    if start > 0:
        num_new, num_all = query_NQD.shape[0], key_KLD.shape[1]
        mask = torch.ones(num_new, num_all, dtype=torch.bool, device=query_NQD.device).tril(diagonal=start)
    output_1QND = F.scaled_dot_product_attention(
        query_NQD.transpose(0, 1).unsqueeze(0),
        key_KLD.unsqueeze(0),
        value_KLD.unsqueeze(0),
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=True,
    )
    return output_1QND.squeeze(0).transpose(0, 1)


def _decode(
    context: Context, layer_id: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Attend from one new token of each request at once, masking the room behind shorter requests."""
    batch, cache = context.batch, context.kv_cache
    assert cache is not None, "forward_context refuses a decode batch without a cache"
    cache.write_each(layer_id, batch.positions, keys, values)
    longest = max(batch.seq_lens)
    key_BKLD = cache.keys[layer_id, :, :, :longest]
    value_BKLD = cache.values[layer_id, :, :, :longest]
    # The G query heads of a kv head stand where the query tokens of that head would: no copy of K and V is needed.
    query_BKGD = queries.view(batch.size, keys.shape[1], -1, keys.shape[2])
    output_BKGD = F.scaled_dot_product_attention(query_BKGD, key_BKLD, value_BKLD, attn_mask=_room_mask(batch, longest))
    return output_BKGD.reshape(queries.shape)


def _room_mask(batch: Batch, longest: int) -> torch.Tensor | None:
    """Mark the cached tokens that exist: bool [B, 1, 1, longest], or None when all requests are equally long."""
    if min(batch.seq_lens) == longest:
        return None
    key_positions = torch.arange(longest, device=batch.positions.device)
    return (key_positions <= batch.positions.unsqueeze(1))[:, None, None, :]

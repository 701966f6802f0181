"""The shapes of a model's parameters on one rank, worked out from its config without torch.

A test holds them against the model itself, which is built on the meta device.
"""

from __future__ import annotations

from collections.abc import Iterator

from minisgl.distributed import local_num_kv_heads, local_num_qo_heads, local_size, use_tp_info
from minisgl.models.config import ModelConfig
from minisgl.utils import div_ceil

Shape = tuple[int, ...]


def local_shapes(config: ModelConfig, rank: int, size: int) -> dict[str, Shape]:
    """Return parameter name → shape on one rank of `size`, in the model's order.

    Raises:
        MinisglError: the model can't be divided over that many ranks.
    """
    vocabulary = (div_ceil(config.vocab_size, size), config.hidden_size)
    with use_tp_info(rank, size):
        shapes: dict[str, Shape] = {"model.embed_tokens.weight": vocabulary}
        for layer in range(config.num_layers):
            shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in _layer(config, layer)}
    shapes["model.norm.weight"] = (config.hidden_size,)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = vocabulary
    return shapes


def _layer(config: ModelConfig, layer: int) -> Iterator[tuple[str, Shape]]:
    hidden = config.hidden_size
    yield "input_layernorm.weight", (hidden,)
    q_rows = local_num_qo_heads(config.num_qo_heads, config.num_kv_heads) * config.head_dim
    kv_rows = local_num_kv_heads(config.num_qo_heads, config.num_kv_heads) * config.head_dim
    yield from _linear("self_attn.qkv_proj", (q_rows + 2 * kv_rows, hidden), config.attention_bias)
    if config.has_qk_norm:
        yield "self_attn.q_norm.weight", (config.head_dim,)
        yield "self_attn.k_norm.weight", (config.head_dim,)
    yield from _linear("self_attn.o_proj", (hidden, q_rows), config.attention_out_bias)
    yield "post_attention_layernorm.weight", (hidden,)
    if config.is_sparse_layer(layer):
        rows = local_size(config.moe_intermediate_size, "moe_intermediate_size")
        yield "mlp.gate.weight", (config.num_experts, hidden)
        yield "mlp.experts.gate_up_proj", (config.num_experts, 2 * rows, hidden)
        yield "mlp.experts.down_proj", (config.num_experts, hidden, rows)
    else:
        rows = local_size(config.intermediate_size, "intermediate_size")
        yield from _linear("mlp.gate_up_proj", (2 * rows, hidden), config.mlp_bias)
        yield from _linear("mlp.down_proj", (hidden, rows), config.mlp_bias)


def _linear(name: str, shape: Shape, has_bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", shape
    if has_bias:
        yield f"{name}.bias", shape[:1]

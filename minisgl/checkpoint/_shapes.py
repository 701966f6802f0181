"""List the tensors that a model's checkpoint stores, from its config.json alone.

Written out for each architecture on purpose, and without ``minisgl.models``: what the loader wants and what the maker
writes must not come from the same lines.
"""

from collections.abc import Iterator, Mapping

from minisgl.errors import ConfigError
from minisgl.hf_fields import DEFAULTS, MODEL_TYPE

Shape = tuple[int, ...]

_MODEL_TYPES = {model_type: architecture for architecture, model_type in MODEL_TYPE.items()}


def architecture_of(hf_config: Mapping[str, object]) -> str:
    """Return the architecture's class name: ``architectures[0]``, or the one that model_type stands for.

    Raises:
        ConfigError: It isn't one of the four.
    """
    architectures = hf_config.get("architectures")
    given = architectures[0] if isinstance(architectures, list) and architectures else None
    name = given if given is not None else _MODEL_TYPES.get(str(hf_config.get("model_type")))
    if name not in _MODEL_TYPES.values():
        raise ConfigError(
            f"architecture {given!r}, model_type {hf_config.get('model_type')!r}: expected one of "
            f"{', '.join(_MODEL_TYPES.values())}. Give the config of a model of these architectures."
        )
    return str(name)


def stored_shapes(hf_config: Mapping[str, object]) -> dict[str, Shape]:
    """Return key → shape of every tensor that the model has, one for each projection and expert, in the model's order.

    An untied ``lm_head.weight`` comes last; a tied model has none.

    An absent field has the default of transformers' class, as for the config reader.

    Raises:
        ConfigError: Another architecture, or a size is absent, not a whole number, or not positive.
    """
    hf_config = {**DEFAULTS[MODEL_TYPE[architecture_of(hf_config)]], **hf_config}
    hidden_size = _size(hf_config, "hidden_size")
    vocab_size = _size(hf_config, "vocab_size")
    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (vocab_size, hidden_size)}
    for layer in range(_size(hf_config, "num_hidden_layers")):
        prefix = f"model.layers.{layer}."
        shapes |= {prefix + name: shape for name, shape in _layer(hf_config, layer)}
    shapes["model.norm.weight"] = (hidden_size,)
    if not hf_config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = (vocab_size, hidden_size)
    return shapes


def head_dim_of(hf_config: Mapping[str, object]) -> int:
    """Return the size of one attention head, which absent is its class's default and null is hidden size by heads."""
    hf_config = {**DEFAULTS[MODEL_TYPE[architecture_of(hf_config)]], **hf_config}
    if hf_config.get("head_dim") is not None:
        return _size(hf_config, "head_dim")
    return _size(hf_config, "hidden_size") // _size(hf_config, "num_attention_heads")


def _layer(hf_config: Mapping[str, object], layer: int) -> Iterator[tuple[str, Shape]]:
    hidden_size = _size(hf_config, "hidden_size")
    yield from _attention(hf_config)
    if _is_sparse(hf_config, layer):
        num_experts, expert_size = _size(hf_config, "num_experts"), _size(hf_config, "moe_intermediate_size")
        yield "mlp.gate.weight", (num_experts, hidden_size)
        for expert in range(num_experts):
            yield from _mlp(f"mlp.experts.{expert}", hidden_size, expert_size, has_bias=False)
    else:
        has_bias = architecture_of(hf_config) == "LlamaForCausalLM" and bool(hf_config.get("mlp_bias", False))
        yield from _mlp("mlp", hidden_size, _size(hf_config, "intermediate_size"), has_bias)
    yield "input_layernorm.weight", (hidden_size,)
    yield "post_attention_layernorm.weight", (hidden_size,)


def _attention(hf_config: Mapping[str, object]) -> Iterator[tuple[str, Shape]]:
    architecture, head_dim = architecture_of(hf_config), head_dim_of(hf_config)
    hidden_size, num_heads = _size(hf_config, "hidden_size"), _size(hf_config, "num_attention_heads")
    has_kv_heads = hf_config.get("num_key_value_heads") is not None
    num_kv_heads = _size(hf_config, "num_key_value_heads") if has_kv_heads else num_heads
    # Qwen2 has biases on q, k and v without saying so; elsewhere attention_bias also means one on o.
    whole_bias = architecture != "Qwen2ForCausalLM" and bool(hf_config.get("attention_bias", False))
    biased = "qkvo" if whole_bias else "qkv" if architecture == "Qwen2ForCausalLM" else ""
    for name, num_rows in (("q", num_heads), ("k", num_kv_heads), ("v", num_kv_heads)):
        yield f"self_attn.{name}_proj.weight", (num_rows * head_dim, hidden_size)
        if name in biased:
            yield f"self_attn.{name}_proj.bias", (num_rows * head_dim,)
    yield "self_attn.o_proj.weight", (hidden_size, num_heads * head_dim)
    if "o" in biased:
        yield "self_attn.o_proj.bias", (hidden_size,)
    if architecture.startswith("Qwen3"):
        yield "self_attn.q_norm.weight", (head_dim,)
        yield "self_attn.k_norm.weight", (head_dim,)


def _mlp(name: str, hidden_size: int, intermediate_size: int, has_bias: bool) -> Iterator[tuple[str, Shape]]:
    for projection, shape in (
        ("gate_proj", (intermediate_size, hidden_size)),
        ("up_proj", (intermediate_size, hidden_size)),
        ("down_proj", (hidden_size, intermediate_size)),
    ):
        yield f"{name}.{projection}.weight", shape
        if has_bias:
            yield f"{name}.{projection}.bias", shape[:1]


def _is_sparse(hf_config: Mapping[str, object], layer: int) -> bool:
    if architecture_of(hf_config) != "Qwen3MoeForCausalLM":
        return False
    mlp_only_layers = hf_config.get("mlp_only_layers") or []
    if not isinstance(mlp_only_layers, list):
        raise ConfigError(f"mlp_only_layers is {mlp_only_layers!r}: expected a list of layers. Correct the config.")
    step = _size(hf_config, "decoder_sparse_step")
    return layer not in mlp_only_layers and (layer + 1) % step == 0


def _size(hf_config: Mapping[str, object], name: str) -> int:
    value = hf_config.get(name)
    if type(value) is not int or value < 1:
        raise ConfigError(f"{name} is {value!r}: expected a positive whole number. Give it in the config.")
    return value

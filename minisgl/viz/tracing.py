"""Follow each value that the engine needs back to the field of config.json that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minisgl.hf_fields import MODEL_TYPE
from minisgl.viz.known import Config

ARCHITECTURES = {model_type: architecture for architecture, model_type in MODEL_TYPE.items()}
_ROPE_TYPES = ("default", "linear", "dynamic", "yarn", "llama3")
_COMPUTED_DTYPES = ("bfloat16", "float16", "float32")


@dataclass(frozen=True)
class Traced:
    """One value, where it came from, and what could have gone wrong.

    Attributes:
        name: As in ``ModelConfig``.
        value: What the engine must use.
        source: The field that said so, or the rule where no field does.
        note: Why, in a few words.
        trap: Whether a careless reader takes another value.
        refused: Whether the engine doesn't compute this and must say so.
    """

    name: str
    value: Any
    source: str
    note: str = ""
    trap: bool = False
    refused: bool = False


def trace(config: Config) -> list[Traced]:
    """List every value, in the order in which one reads a config."""
    architecture = _architecture(config)
    rows = [architecture, *_sizes(config), _head_dim(config), *_rope(config), *_biases(config, architecture.value)]
    rows += [*_switches(config, architecture.value), *_refusals(config)]
    return rows


def _architecture(config: Config) -> Traced:
    given, model_type = config.get("architectures"), config.get("model_type")
    if isinstance(given, list) and given:
        if given[0] not in ARCHITECTURES.values():
            return Traced("architecture", given[0], "architectures[0]", "not one of the four", refused=True)
        if ARCHITECTURES.get(str(model_type)) not in (None, given[0]):
            note = f"the architecture decides, not model_type {model_type!r}"
            return Traced("architecture", given[0], "architectures[0]", note, trap=True)
        return Traced("architecture", given[0], "architectures[0]")
    if model_type in ARCHITECTURES:
        note = "architectures is absent, so model_type decides"
        return Traced("architecture", ARCHITECTURES[model_type], "model_type", note, trap=True)
    return Traced(
        "architecture",
        None,
        "model_type",
        f"neither architectures nor a known model_type: {model_type!r}",
        refused=True,
    )


def _sizes(config: Config) -> Iterator[Traced]:
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads")
    ours = ("num_layers", "hidden_size", "intermediate_size", "vocab_size", "num_qo_heads")
    for name, field in zip(ours, names, strict=True):
        value = config.get(field)
        is_size = type(value) is int and value > 0
        unused = name == "intermediate_size" and config.get("num_experts") and not config.get("mlp_only_layers")
        note = "" if is_size else "must be a positive whole number"
        if is_size and unused and config.get("decoder_sparse_step") in (None, 1):
            note = "no layer uses it: all are sparse, with moe_intermediate_size"
        yield Traced(name, value, field, note, trap=bool(note) and is_size, refused=not is_size)
    num_heads = config.get("num_attention_heads")
    if config.get("num_key_value_heads") is None:
        yield Traced(
            "num_kv_heads", num_heads, "num_attention_heads", "absent: multi-head attention, one each", trap=True
        )
        return
    num_kv_heads = config["num_key_value_heads"]
    fits = type(num_kv_heads) is int and num_kv_heads > 0 and type(num_heads) is int and num_heads % num_kv_heads == 0
    note = f"each serves {num_heads // num_kv_heads} query heads" if fits else "the query heads don't divide by it"
    yield Traced("num_kv_heads", num_kv_heads, "num_key_value_heads", note, refused=not fits)


def _head_dim(config: Config) -> Traced:
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    computed = None
    if type(hidden) is int and type(heads) is int and heads > 0 and hidden % heads == 0:
        computed = hidden // heads
    given = config.get("head_dim")
    if given is not None:
        if given != computed:
            note = f"the given one wins over hidden_size / heads = {computed}"
            return Traced("head_dim", given, "head_dim", note, trap=True)
        return Traced("head_dim", given, "head_dim", "equal to hidden_size / heads")
    note = "head_dim is null, which means absent" if "head_dim" in config else "head_dim is absent"
    if computed is None:
        return Traced("head_dim", None, "nowhere", note + ", and the heads don't divide hidden_size", refused=True)
    return Traced("head_dim", computed, "hidden_size / num_attention_heads", note, trap="head_dim" in config)


def _rope(config: Config) -> Iterator[Traced]:
    homes = {home: config[home] for home in ("rope_scaling", "rope_parameters") if config.get(home) is not None}
    for home, fields in homes.items():
        if not isinstance(fields, dict):
            yield Traced("rope", fields, home, "must be a dict or null", refused=True)
            return
    found = {key: (value, home) for home, fields in homes.items() for key, value in fields.items() if value is not None}
    yield _rope_base(config, found)
    rope_type, home = found.get("rope_type") or found.get("type") or ("default", "absent")
    both_differ = "type" in found and "rope_type" in found and found["type"][0] != found["rope_type"][0]
    field = home if home == "absent" else f"{home}.{'rope_type' if 'rope_type' in found else 'type'}"
    note = "type is the old name of rope_type" if field.endswith(".type") else ""
    if both_differ or rope_type not in _ROPE_TYPES:
        note = "type and rope_type differ" if both_differ else f"not one of {', '.join(_ROPE_TYPES)}"
        yield Traced("rope_type", rope_type, field, note, refused=True)
    else:
        yield Traced("rope_type", rope_type, field, note, trap=field.endswith(".type"))
    for key, (value, home) in found.items():
        if key not in ("type", "rope_type", "rope_theta"):
            yield Traced(f"rope {key}", value, f"{home}.{key}")
    yield Traced("max_position", config.get("max_position_embeddings"), "max_position_embeddings")


def _rope_base(config: Config, found: dict[str, tuple[Any, str]]) -> Traced:
    top_level = config.get("rope_theta")
    if "rope_theta" in found:
        base, home = found["rope_theta"]
        if top_level not in (None, base):
            note = f"contradicts the top level's rope_theta {top_level}"
            return Traced("rope_theta", base, f"{home}.rope_theta", note, refused=True)
        note = "transformers 5 keeps it here; whoever reads the top level takes the default 10,000"
        return Traced("rope_theta", float(base), f"{home}.rope_theta", note, trap=top_level is None and base != 10000)
    if top_level is not None:
        return Traced("rope_theta", float(top_level), "rope_theta", "where transformers 4 kept it")
    note = "null means absent" if "rope_theta" in config else "absent from both homes"
    return Traced("rope_theta", 10000.0, "the default", note, trap=True)


def _biases(config: Config, architecture: str | None) -> Iterator[Traced]:
    attention_bias = bool(config.get("attention_bias"))
    if architecture == "Qwen2ForCausalLM":
        yield Traced("attention_bias", True, "the architecture", "Qwen2 has q, k, v biases without a field", trap=True)
        yield Traced("attention_out_bias", False, "the architecture", "none on o_proj")
    else:
        source = "attention_bias" if "attention_bias" in config else "absent"
        yield Traced(
            "attention_bias", attention_bias, source, "on q, k and v" if attention_bias else "", trap=attention_bias
        )
        note = "the same field puts a bias on o_proj" if attention_bias else ""
        yield Traced("attention_out_bias", attention_bias, source, note, trap=attention_bias)
    mlp_bias = architecture == "LlamaForCausalLM" and bool(config.get("mlp_bias"))
    yield Traced("mlp_bias", mlp_bias, "mlp_bias" if "mlp_bias" in config else "absent", "", trap=mlp_bias)


def _switches(config: Config, architecture: str | None) -> Iterator[Traced]:
    has_qk_norm = str(architecture).startswith("Qwen3")
    yield Traced("has_qk_norm", has_qk_norm, "the architecture", "no field says so", trap=has_qk_norm)
    tied = bool(config.get("tie_word_embeddings", False))
    source = "tie_word_embeddings" if "tie_word_embeddings" in config else "absent"
    yield Traced("tie_word_embeddings", tied, source, "a stored lm_head.weight is dropped" if tied else "", trap=tied)
    if architecture == "Qwen3MoeForCausalLM":
        for field in ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step"):
            value = config.get(field)
            is_size = type(value) is int and value > 0
            yield Traced(field, value, field, "" if is_size else "must be a positive whole number", refused=not is_size)
        yield Traced("norm_topk_prob", bool(config.get("norm_topk_prob")), "norm_topk_prob")
        absent = config.get("mlp_only_layers") is None
        value = tuple(config.get("mlp_only_layers") or ())
        yield Traced(
            "mlp_only_layers", value, "absent" if absent else "mlp_only_layers", "absent means none" if absent else ""
        )
    field = "dtype" if config.get("dtype") else "torch_dtype"
    dtype = str(config.get(field) or "").removeprefix("torch.")
    note = "the new name of torch_dtype" if field == "dtype" else "" if dtype else "absent: the files decide"
    yield Traced("dtype", dtype if dtype in _COMPUTED_DTYPES else dtype or None, field, note, trap=not dtype)


def _refusals(config: Config) -> Iterator[Traced]:
    if config.get("quantization_config"):
        yield Traced("quantization", "on", "quantization_config", "quantized weights aren't computed", refused=True)
    window, layer_types = config.get("sliding_window"), config.get("layer_types")
    if layer_types:
        others = sorted(set(layer_types) - {"full_attention"})
        if others:
            yield Traced(
                "sliding_window", ", ".join(others), "layer_types", "only full attention is computed", refused=True
            )
    elif window is not None and window is not False:
        first_sliding, num_layers = config.get("max_window_layers"), config.get("num_hidden_layers")
        if type(first_sliding) is int and type(num_layers) is int and first_sliding >= num_layers:
            note = f"max_window_layers {first_sliding} leaves no layer to slide, so {window} is ignored"
            yield Traced("sliding_window", "off", "max_window_layers", note, trap=True)
        elif config.get("use_sliding_window", True):
            yield Traced("sliding_window", window, "sliding_window", "only full attention is computed", refused=True)
        else:
            yield Traced(
                "sliding_window", "off", "use_sliding_window", f"so sliding_window {window} is ignored", trap=True
            )
    activation = config.get("hidden_act", "silu")
    yield Traced("hidden_act", activation, "hidden_act", "" if activation in ("silu", "swish") else "only silu is computed",
                 refused=activation not in ("silu", "swish"))  # fmt: skip

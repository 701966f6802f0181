"""Turn a Hugging Face config into the one description of the model that the rest of the engine reads.

What a config turns on is described here and computed later, or refused by name. ``hf_config`` is always what
``cached_load_hf_config`` returned, or another object with the attribute names of transformers' config classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minisgl.errors import ConfigError

if TYPE_CHECKING:
    import torch

# model_type in config.json -> the architecture that computes it.
ARCHITECTURE_OF_MODEL_TYPE = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}

# RoPE type -> the fields without which it can't be computed.
REQUIRED_ROPE_FIELDS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}


@dataclass(frozen=True)
class RotaryConfig:
    """Describe one model's rotary position embedding."""

    head_dim: int
    rotary_dim: int  # how many dimensions of a head are rotated; all of them here
    max_position: int  # longest sequence, in tokens, that the config promises
    base: float  # also called theta
    scaling: dict[str, Any] | None  # None for plain RoPE, else rope_type and that type's own fields


def refuse_non_positive(values: dict[str, Any], types: tuple[type, ...] = (int,)) -> None:
    """Raise a ConfigError that names all values that aren't positive numbers of these types; ``True`` is no number."""
    wrong = [f"{name} is {value!r}" for name, value in values.items() if type(value) not in types or not value > 0]
    if wrong:
        expected = "positive integers" if types == (int,) else "positive numbers"
        raise ConfigError(f"{'; '.join(wrong)}. Expected {expected}. Correct these fields in config.json.")


def architecture_of(hf_config: Any) -> str:
    """Name the architecture that a config asks for: ``architectures[0]``, or without it what ``model_type`` stands for.

    Draft and reward models carry a ``model_type`` of llama or qwen3 although their weights are something else.

    Raises:
        ConfigError: The architecture, or the model_type that stands in for it, isn't supported.
    """
    architectures = getattr(hf_config, "architectures", None)
    model_type = getattr(hf_config, "model_type", None)
    name = architectures[0] if architectures else ARCHITECTURE_OF_MODEL_TYPE.get(model_type)
    if name not in ARCHITECTURE_OF_MODEL_TYPE.values():
        raise ConfigError(
            f"architectures is {architectures!r} and model_type is {model_type!r}. Expected architectures[0] to be one of "
            f"{', '.join(ARCHITECTURE_OF_MODEL_TYPE.values())}, or no architectures and a model_type of "
            f"{', '.join(ARCHITECTURE_OF_MODEL_TYPE)}. Choose a checkpoint of one of these."
        )
    return name


def sizes_of(hf_config: Any) -> dict[str, int]:
    """Read the six sizes that every model has, under this engine's names.

    A missing or null ``num_key_value_heads`` means multi-head attention: as many as query heads.

    Raises:
        ConfigError: A size isn't a positive integer, or the query heads don't divide by the kv heads.
    """
    hf_names = {
        "num_layers": "num_hidden_layers",
        "num_qo_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads",
        "hidden_size": "hidden_size",
        "intermediate_size": "intermediate_size",
        "vocab_size": "vocab_size",
    }
    sizes = {name: getattr(hf_config, hf_name, None) for name, hf_name in hf_names.items()}
    if sizes["num_kv_heads"] is None:
        sizes["num_kv_heads"] = sizes["num_qo_heads"]
    refuse_non_positive({hf_names[name]: size for name, size in sizes.items()})
    if sizes["num_qo_heads"] % sizes["num_kv_heads"]:
        raise ConfigError(
            f"num_attention_heads is {sizes['num_qo_heads']} and num_key_value_heads is {sizes['num_kv_heads']}. "
            f"Expected the first to be a multiple of the second. Correct num_key_value_heads in config.json."
        )
    return sizes


def head_dim_of(hf_config: Any) -> int:
    """Give the size of one attention head: ``head_dim``, or where that is absent or null hidden size by heads.

    An explicit one wins, also where it isn't that quotient (Qwen3-0.6B: 128, not 64).

    Raises:
        ConfigError: It isn't a positive even integer, or it is absent and the hidden size doesn't divide by the heads.
    """
    head_dim = getattr(hf_config, "head_dim", None)
    if head_dim is None:
        if hf_config.hidden_size % hf_config.num_attention_heads:
            raise ConfigError(
                f"hidden_size is {hf_config.hidden_size}, num_attention_heads is {hf_config.num_attention_heads} "
                f"and head_dim is absent. Expected a hidden size that divides by the heads. Add head_dim to config.json."
            )
        head_dim = hf_config.hidden_size // hf_config.num_attention_heads
    if type(head_dim) is not int or head_dim <= 0 or head_dim % 2:
        raise ConfigError(f"head_dim is {head_dim!r}. Expected a positive even integer: RoPE rotates pairs. Correct head_dim.")
    return head_dim


def rope_parameters_of(hf_config: Any) -> dict[str, Any]:
    """Collect the RoPE fields from both places into one new dict that has ``rope_type`` and ``rope_theta``.

    transformers 5 keeps them all in ``rope_parameters``; transformers 4 had ``rope_theta`` beside a
    ``rope_scaling`` dict. The type is called ``rope_type``, or ``type`` in older files. Null means absent.

    Raises:
        ConfigError: A field that must be a dict isn't one, or two places contradict each other.
    """
    merged: dict[str, Any] = {}
    for field in ("rope_scaling", "rope_parameters"):
        parameters = getattr(hf_config, field, None)
        if parameters is None:
            continue
        if not isinstance(parameters, dict):
            raise ConfigError(f"{field} is {parameters!r}. Expected a dict with a rope_type, or null. Correct {field}.")
        merged.update({name: value for name, value in parameters.items() if value is not None})
    old_name = merged.pop("type", None)
    if old_name is not None and merged.setdefault("rope_type", old_name) != old_name:
        raise ConfigError(f"rope_type is {merged['rope_type']!r} and type is {old_name!r}. Expected one. Remove the wrong one.")
    merged.setdefault("rope_type", "default")
    if "rope_theta" not in merged:
        top_level_base = getattr(hf_config, "rope_theta", None)
        merged["rope_theta"] = 10000.0 if top_level_base is None else top_level_base
    return merged


def rotary_config_of(hf_config: Any) -> RotaryConfig:
    """Check the RoPE fields and describe them as a ``RotaryConfig``.

    Raises:
        ConfigError: The type is unknown, a number that it needs is missing or not positive, or only a part of each
            head would be rotated.
    """
    scaling = rope_parameters_of(hf_config)
    base, rope_type = scaling.pop("rope_theta"), scaling["rope_type"]
    max_position = getattr(hf_config, "max_position_embeddings", None)
    if rope_type not in REQUIRED_ROPE_FIELDS:
        raise ConfigError(
            f"rope_type is {rope_type!r}, which is not supported. Expected one of {', '.join(REQUIRED_ROPE_FIELDS)}. "
            f"Choose a checkpoint with one of these."
        )
    needed = {name: scaling.get(name) for name in REQUIRED_ROPE_FIELDS[rope_type]}
    refuse_non_positive({"rope_theta": base, "max_position_embeddings": max_position, **needed}, (int, float))
    if scaling.pop("partial_rotary_factor", 1.0) != 1.0:
        raise ConfigError("partial_rotary_factor isn't 1.0. Expected RoPE over whole heads. Choose another checkpoint.")
    if rope_type in ("yarn", "llama3"):
        scaling.setdefault("original_max_position_embeddings", max_position)
    head_dim = head_dim_of(hf_config)
    return RotaryConfig(head_dim, head_dim, max_position, float(base), None if rope_type == "default" else scaling)


def biases_of(hf_config: Any, architecture: str) -> dict[str, bool]:
    """Tell which linear layers carry a bias: q, k and v (``attention_bias``), o_proj, and those of the MLP.

    Qwen2 has q/k/v biases though its config has no such field, and none on o_proj. In Llama and Qwen3
    ``attention_bias`` puts a bias on q, k, v and on o_proj. Only Llama has ``mlp_bias``.
    """
    is_qwen2 = architecture == "Qwen2ForCausalLM"
    attention_bias = bool(getattr(hf_config, "attention_bias", False))
    return {
        "attention_bias": is_qwen2 or attention_bias,
        "attention_out_bias": attention_bias and not is_qwen2,
        "mlp_bias": architecture == "LlamaForCausalLM" and bool(getattr(hf_config, "mlp_bias", False)),
    }


def moe_fields_of(hf_config: Any, architecture: str) -> dict[str, Any]:
    """Read the six mixture-of-experts fields of a ``ModelConfig``; a dense architecture has none of them.

    Raises:
        ConfigError: A count isn't a positive integer, or more experts are chosen than exist.
    """
    if architecture != "Qwen3MoeForCausalLM":
        return {}
    names = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step")
    fields = {name: getattr(hf_config, name, None) for name in names}
    refuse_non_positive(fields)
    if fields["num_experts_per_tok"] > fields["num_experts"]:
        raise ConfigError(
            f"num_experts_per_tok is {fields['num_experts_per_tok']} and num_experts is {fields['num_experts']}. "
            f"Expected no more per token than there are. Correct num_experts_per_tok in config.json."
        )
    fields["norm_topk_prob"] = bool(getattr(hf_config, "norm_topk_prob", False))
    fields["mlp_only_layers"] = tuple(getattr(hf_config, "mlp_only_layers", None) or ())
    return fields


def refuse_uncomputed(hf_config: Any) -> None:
    """Refuse, by name and all at once, what a config turns on and this engine doesn't compute.

    Raises:
        ConfigError: The weights are quantized, tokens see later ones, some layer has another kind of attention than
            full attention, or the activation isn't SiLU.
    """
    problems = []
    quantization = getattr(hf_config, "quantization_config", None)
    if quantization:
        method = quantization.get("quant_method", "unnamed") if isinstance(quantization, dict) else quantization
        problems.append(f"quantization_config is set (method: {method}), but only unquantized weights are computed")
    if getattr(hf_config, "is_causal", True) is False:
        problems.append("is_causal is False, but only causal attention is computed")
    layer_types = getattr(hf_config, "layer_types", None)
    if layer_types:
        if other_types := sorted(set(layer_types) - {"full_attention"}):
            problems.append(f"layer_types has {', '.join(other_types)}, but only full_attention is computed")
    elif getattr(hf_config, "sliding_window", None) and getattr(hf_config, "use_sliding_window", True):
        problems.append(f"sliding_window is {hf_config.sliding_window}, but only full attention is computed")
    activation = getattr(hf_config, "hidden_act", "silu")
    if activation not in ("silu", "swish"):
        problems.append(f"hidden_act is {activation!r}, but only silu is computed")
    if problems:
        raise ConfigError(f"{'; '.join(problems)}. Choose a checkpoint without these.")


@dataclass(frozen=True)
class ModelConfig:
    """Describe a decoder-only language model as a whole, not one rank's share; a dense one has no experts."""

    num_layers: int
    num_qo_heads: int  # of queries, and of the attention's output
    num_kv_heads: int  # of keys and values
    head_dim: int
    hidden_size: int  # width of the residual stream, which layers read from and add to
    vocab_size: int
    intermediate_size: int  # inner width of a dense MLP
    rms_norm_eps: float  # added under the root in each RMSNorm
    rotary_config: RotaryConfig
    tie_word_embeddings: bool  # the embedding also serves as the LM head
    architectures: tuple[str]  # the one that architecture_of found
    attention_bias: bool  # of q, k and v
    attention_out_bias: bool = False  # of o_proj
    mlp_bias: bool = False  # of gate, up and down
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0  # inner width of one expert
    norm_topk_prob: bool = False  # the chosen experts' weights are scaled to sum to one
    mlp_only_layers: tuple[int, ...] = ()  # layers that have a dense MLP all the same
    decoder_sparse_step: int = 1  # every how many layers one has experts

    @property
    def is_moe(self) -> bool:
        """Tell whether the model has experts."""
        return self.num_experts > 0

    @property
    def has_qk_norm(self) -> bool:
        """Tell whether each head of q and k is normalized, which no field of config.json says."""
        return self.architectures[0] in ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM")

    def is_sparse_layer(self, layer_id: int) -> bool:
        """Tell whether a layer has experts instead of a dense MLP."""
        on_step = (layer_id + 1) % self.decoder_sparse_step == 0
        return self.is_moe and on_step and layer_id not in self.mlp_only_layers

    @classmethod
    def from_hf(cls, hf_config: Any) -> ModelConfig:
        """Build the description; a ConfigError says what is unusable in the config, or turned on and not computed."""
        architecture = architecture_of(hf_config)
        refuse_uncomputed(hf_config)
        eps = getattr(hf_config, "rms_norm_eps", None)
        refuse_non_positive({"rms_norm_eps": eps}, (int, float))
        return cls(
            **sizes_of(hf_config),
            **biases_of(hf_config, architecture),
            **moe_fields_of(hf_config, architecture),
            head_dim=head_dim_of(hf_config),
            rotary_config=rotary_config_of(hf_config),
            rms_norm_eps=float(eps),
            tie_word_embeddings=bool(getattr(hf_config, "tie_word_embeddings", False)),
            architectures=(architecture,),
        )


def kv_bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
    """Count the bytes of one token's keys and values in the KV cache, over all layers (Qwen3-0.6B in bfloat16: 114,688)."""
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * dtype.itemsize

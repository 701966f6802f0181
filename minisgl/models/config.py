"""Turn a Hugging Face config into the one description of the model that the rest of the engine reads.

This is the only module that knows Hugging Face's field names. Whatever a config turns on is either
described here and computed later, or refused by name: nothing is silently ignored. In every function
``hf_config`` is the config as transformers read it (5.x or 4.57) and ``architecture`` is what
``architecture_of`` returned for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minisgl.errors import ConfigError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

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
    """Describe one model's rotary position embedding.

    Attributes:
        head_dim: Size of one attention head.
        rotary_dim: How many of its dimensions are rotated; equal to ``head_dim`` here.
        max_position: Longest sequence, in tokens, that the config promises.
        base: The RoPE base (theta).
        scaling: ``None`` for plain RoPE, else ``rope_type`` and that type's own fields.
    """

    head_dim: int
    rotary_dim: int
    max_position: int
    base: float
    scaling: dict[str, Any] | None


def architecture_of(hf_config: PretrainedConfig) -> str:
    """Name the architecture that a config asks for.

    ``architectures[0]`` decides where it is given, because draft and reward models carry a
    ``model_type`` of llama or qwen3 although their weights are something else. Only a config without
    ``architectures`` falls back on its ``model_type``.

    Returns:
        One of the values of ``ARCHITECTURE_OF_MODEL_TYPE``.

    Raises:
        ConfigError: The architecture, or the model_type that stands in for it, isn't supported.
    """
    known = sorted(ARCHITECTURE_OF_MODEL_TYPE.values())
    architectures = getattr(hf_config, "architectures", None)
    if architectures:
        if architectures[0] not in known:
            raise ConfigError(
                f"architectures[0] is {architectures[0]!r}, which is not supported. Expected one of "
                f"{', '.join(known)}. Choose a checkpoint of one of these."
            )
        return architectures[0]
    model_type = getattr(hf_config, "model_type", None)
    if model_type not in ARCHITECTURE_OF_MODEL_TYPE:
        raise ConfigError(
            f"the config has no architectures and its model_type is {model_type!r}. Expected a model_type of "
            f"{', '.join(ARCHITECTURE_OF_MODEL_TYPE)}, or architectures with one of {', '.join(known)}. "
            f"Add the right one to config.json."
        )
    return ARCHITECTURE_OF_MODEL_TYPE[model_type]


def sizes_of(hf_config: PretrainedConfig) -> dict[str, int]:
    """Read the sizes that every model has, under this engine's names.

    A missing or null ``num_key_value_heads`` means multi-head attention: as many as query heads.

    Returns:
        ``num_layers``, ``num_qo_heads``, ``num_kv_heads``, ``hidden_size``, ``intermediate_size`` and
        ``vocab_size``.

    Raises:
        ConfigError: A size isn't a positive integer (all such fields are named), or the query heads
            don't divide by the kv heads.
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
    wrong = [f"{hf_names[name]} is {size!r}" for name, size in sizes.items() if type(size) is not int or size <= 0]
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)}. Expected positive integers. Correct these fields in config.json.")
    if sizes["num_qo_heads"] % sizes["num_kv_heads"]:
        raise ConfigError(
            f"num_attention_heads is {sizes['num_qo_heads']} and num_key_value_heads is {sizes['num_kv_heads']}. "
            f"Expected the first to be a multiple of the second. Correct num_key_value_heads in config.json."
        )
    return sizes


def head_dim_of(hf_config: PretrainedConfig) -> int:
    """Give the size of one attention head.

    An explicit ``head_dim`` wins, also where it isn't ``hidden_size / num_attention_heads``
    (Qwen3-0.6B: 128, not 64). A null one counts as absent.

    Raises:
        ConfigError: The given ``head_dim`` isn't a positive even integer, or it is absent and the hidden
            size doesn't divide by the heads.
    """
    head_dim = getattr(hf_config, "head_dim", None)
    if head_dim is None:
        if hf_config.hidden_size % hf_config.num_attention_heads:
            raise ConfigError(
                f"hidden_size is {hf_config.hidden_size}, num_attention_heads is {hf_config.num_attention_heads} "
                f"and head_dim is absent. Expected heads that divide the hidden size. Add head_dim to config.json."
            )
        head_dim = hf_config.hidden_size // hf_config.num_attention_heads
    if type(head_dim) is not int or head_dim <= 0 or head_dim % 2:
        raise ConfigError(
            f"head_dim is {head_dim!r}. Expected a positive even integer, because RoPE rotates pairs. "
            f"Correct head_dim in config.json."
        )
    return head_dim


def rope_parameters_of(hf_config: PretrainedConfig) -> dict[str, Any]:
    """Collect the RoPE fields from whichever place they live in.

    transformers 5 keeps them all in ``rope_parameters``; transformers 4 had ``rope_theta`` beside a
    ``rope_scaling`` dict. The type is called ``rope_type``, or ``type`` in older files. Null means absent.

    Returns:
        One flat dict that always has ``rope_type`` and ``rope_theta``.

    Raises:
        ConfigError: A field that must be a dict isn't one, or two places contradict each other.
    """
    merged: dict[str, Any] = {}
    for field in ("rope_scaling", "rope_parameters"):
        parameters = getattr(hf_config, field, None)
        if parameters is None:
            continue
        if not isinstance(parameters, dict):
            raise ConfigError(
                f"{field} is {parameters!r}. Expected a dict with a rope_type, or null. Correct {field} in config.json."
            )
        merged.update({name: value for name, value in parameters.items() if value is not None})
    old_name = merged.pop("type", None)
    if old_name is not None and merged.setdefault("rope_type", old_name) != old_name:
        raise ConfigError(
            f"the RoPE parameters have rope_type {merged['rope_type']!r} and type {old_name!r}. "
            f"Expected both to be the same. Remove the wrong one from config.json."
        )
    merged.setdefault("rope_type", "default")
    if "rope_theta" not in merged:
        top_level_base = getattr(hf_config, "rope_theta", None)
        merged["rope_theta"] = 10000.0 if top_level_base is None else top_level_base
    return merged


def rotary_config_of(hf_config: PretrainedConfig) -> RotaryConfig:
    """Check the RoPE fields and describe them as a ``RotaryConfig``.

    Raises:
        ConfigError: The type is unknown, a field that it needs is missing, only a part of each head
            would be rotated, or base or max_position_embeddings isn't a positive number.
    """
    scaling = rope_parameters_of(hf_config)
    base, rope_type = scaling.pop("rope_theta"), scaling["rope_type"]
    max_position = getattr(hf_config, "max_position_embeddings", None)
    if rope_type not in REQUIRED_ROPE_FIELDS:
        raise ConfigError(
            f"rope_type is {rope_type!r}, which is not supported. Expected one of {', '.join(REQUIRED_ROPE_FIELDS)}. "
            f"Choose a checkpoint that uses one of these."
        )
    for name, value in {"rope_theta": base, "max_position_embeddings": max_position}.items():
        if type(value) not in (int, float) or not value > 0:
            raise ConfigError(f"{name} is {value!r}. Expected a positive number. Correct {name} in config.json.")
    for name in REQUIRED_ROPE_FIELDS[rope_type]:
        if type(scaling.get(name)) not in (int, float) or not scaling[name] > 0:
            raise ConfigError(
                f"RoPE type {rope_type!r} has {name} {scaling.get(name)!r}. Expected a positive number. "
                f"Correct {name} among the RoPE parameters in config.json."
            )
    if scaling.pop("partial_rotary_factor", 1.0) != 1.0:
        raise ConfigError(
            "partial_rotary_factor isn't 1.0. Expected RoPE over whole heads, as the four architectures have it. "
            "Choose another checkpoint."
        )
    if rope_type in ("yarn", "llama3"):
        scaling.setdefault("original_max_position_embeddings", max_position)
    head_dim = head_dim_of(hf_config)
    return RotaryConfig(
        head_dim=head_dim,
        rotary_dim=head_dim,
        max_position=max_position,
        base=float(base),
        scaling=None if rope_type == "default" else scaling,
    )


def biases_of(hf_config: PretrainedConfig, architecture: str) -> dict[str, bool]:
    """Tell which linear layers carry a bias.

    Qwen2 has q/k/v biases though its config has no such field, and none on o_proj. In Llama and Qwen3
    ``attention_bias`` puts a bias on q, k, v and on o_proj. Only Llama has ``mlp_bias``.

    Returns:
        ``attention_bias`` (q, k, v), ``attention_out_bias`` (o_proj) and ``mlp_bias`` (gate, up, down).
    """
    is_qwen2 = architecture == "Qwen2ForCausalLM"
    attention_bias = bool(getattr(hf_config, "attention_bias", False))
    return {
        "attention_bias": is_qwen2 or attention_bias,
        "attention_out_bias": attention_bias and not is_qwen2,
        "mlp_bias": architecture == "LlamaForCausalLM" and bool(getattr(hf_config, "mlp_bias", False)),
    }


def moe_fields_of(hf_config: PretrainedConfig, architecture: str) -> dict[str, Any]:
    """Read the mixture-of-experts fields; all are 0, False or empty on a dense model.

    Returns:
        ``num_experts``, ``num_experts_per_tok``, ``moe_intermediate_size``, ``norm_topk_prob``,
        ``mlp_only_layers`` and ``decoder_sparse_step``.

    Raises:
        ConfigError: A count isn't a positive integer, or more experts are chosen than exist.
    """
    if architecture != "Qwen3MoeForCausalLM":
        return {}
    names = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "decoder_sparse_step")
    fields = {name: getattr(hf_config, name, None) for name in names}
    wrong = [f"{name} is {value!r}" for name, value in fields.items() if type(value) is not int or value <= 0]
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)}. Expected positive integers. Correct these fields in config.json.")
    if fields["num_experts_per_tok"] > fields["num_experts"]:
        raise ConfigError(
            f"num_experts_per_tok is {fields['num_experts_per_tok']} and num_experts is {fields['num_experts']}. "
            f"Expected no more experts per token than there are. Correct num_experts_per_tok in config.json."
        )
    fields["norm_topk_prob"] = bool(getattr(hf_config, "norm_topk_prob", False))
    fields["mlp_only_layers"] = tuple(getattr(hf_config, "mlp_only_layers", None) or ())
    return fields


def refuse_uncomputed(hf_config: PretrainedConfig) -> None:
    """Refuse, by name, what a config turns on and this engine doesn't compute.

    Raises:
        ConfigError: The weights are quantized, some layer attends over a sliding window (or is another
            kind than full attention), or the activation isn't SiLU.
    """
    problems = []
    if getattr(hf_config, "quantization_config", None):
        problems.append("quantization_config is set, but only float32, float16 and bfloat16 weights are computed")
    layer_types = getattr(hf_config, "layer_types", None)
    if layer_types:
        other_types = sorted(set(layer_types) - {"full_attention"})
        if other_types:
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
    """Describe a decoder-only language model, for the whole model and not for one rank.

    Attributes:
        num_layers: Number of decoder layers.
        num_qo_heads: Number of query (and output) heads.
        num_kv_heads: Number of key/value heads.
        head_dim: Size of one head.
        hidden_size: Width of the residual stream.
        vocab_size: Rows of the embedding.
        intermediate_size: Inner width of a dense MLP.
        rms_norm_eps: Added under the root in each RMSNorm.
        rotary_config: The position embedding.
        hidden_act: The MLP's activation.
        tie_word_embeddings: Whether the embedding also serves as the LM head.
        attention_bias: Whether q, k and v have biases.
        model_type: As in config.json.
        architectures: As in config.json, or the one that model_type stands for.
        attention_out_bias: Whether o_proj has a bias.
        mlp_bias: Whether gate, up and down have biases.
        num_experts: Experts in a sparse layer; 0 on a dense model, like the fields below.
        num_experts_per_tok: Experts that each token is sent to.
        moe_intermediate_size: Inner width of one expert.
        norm_topk_prob: Whether the chosen experts' weights are scaled to sum to one.
        mlp_only_layers: Layers that have a dense MLP all the same.
        decoder_sparse_step: Every how many layers one is sparse.
    """

    num_layers: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    vocab_size: int
    intermediate_size: int
    rms_norm_eps: float
    rotary_config: RotaryConfig
    hidden_act: str
    tie_word_embeddings: bool
    attention_bias: bool
    model_type: str
    architectures: tuple[str, ...]
    attention_out_bias: bool = False
    mlp_bias: bool = False
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    norm_topk_prob: bool = False
    mlp_only_layers: tuple[int, ...] = ()
    decoder_sparse_step: int = 1

    @property
    def is_moe(self) -> bool:
        """Tell whether the model has experts."""
        return self.num_experts > 0

    @property
    def has_qk_norm(self) -> bool:
        """Tell whether each head of q and k is normalized, which no field of config.json says."""
        return self.architectures[0] in ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM")

    def is_sparse_layer(self, layer_id: int) -> bool:
        """Tell whether a layer has experts in the place of a dense MLP."""
        on_step = (layer_id + 1) % self.decoder_sparse_step == 0
        return self.is_moe and on_step and layer_id not in self.mlp_only_layers

    @classmethod
    def from_hf(cls, hf_config: PretrainedConfig) -> ModelConfig:
        """Build the description from a Hugging Face config.

        Raises:
            ConfigError: The config is unusable, or turns on something that isn't computed here.
        """
        architecture = architecture_of(hf_config)
        refuse_uncomputed(hf_config)
        rms_norm_eps = getattr(hf_config, "rms_norm_eps", None)
        if type(rms_norm_eps) not in (int, float) or rms_norm_eps < 0:
            raise ConfigError(
                f"rms_norm_eps is {rms_norm_eps!r}. Expected a small positive number. Correct it in config.json."
            )
        return cls(
            **sizes_of(hf_config),
            **biases_of(hf_config, architecture),
            **moe_fields_of(hf_config, architecture),
            head_dim=head_dim_of(hf_config),
            rotary_config=rotary_config_of(hf_config),
            rms_norm_eps=float(rms_norm_eps),
            hidden_act=getattr(hf_config, "hidden_act", "silu"),
            tie_word_embeddings=bool(getattr(hf_config, "tie_word_embeddings", False)),
            model_type=getattr(hf_config, "model_type", None) or "",
            architectures=(architecture,),
        )


def kv_bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
    """Count the bytes that one token takes in the KV cache, over all layers.

    Each layer stores one key and one value of ``head_dim`` numbers for each kv head.

    Args:
        config: The model.
        dtype: The cache's dtype.

    Returns:
        Bytes per token (Qwen3-0.6B in bfloat16: 114,688).
    """
    return 2 * config.num_layers * config.num_kv_heads * config.head_dim * dtype.itemsize

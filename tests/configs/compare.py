"""Hold our reading of a config against transformers': sizes, and the keys and shapes of the whole model."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from minisgl.models import ModelConfig, create_model
from minisgl.utils import cached_load_hf_config

Shapes = dict[str, tuple[int, ...]]

CONFIG_CLASSES = {
    "LlamaForCausalLM": LlamaConfig,
    "Qwen2ForCausalLM": Qwen2Config,
    "Qwen3ForCausalLM": Qwen3Config,
    "Qwen3MoeForCausalLM": Qwen3MoeConfig,
}
GROUPS = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def ours_of(folder: Path) -> ModelConfig:
    return ModelConfig.from_hf(cached_load_hf_config(folder))


def theirs_of(folder: Path) -> PretrainedConfig:
    """Return transformers' config of the class that the file's architecture stands for, whatever its model_type says."""
    raw = json.loads((folder / "config.json").read_text())
    types = {kind.model_type: kind for kind in CONFIG_CLASSES.values()}
    kind = CONFIG_CLASSES[raw["architectures"][0]] if raw.get("architectures") else types[raw["model_type"]]
    if raw.get("rope_theta", 0) is None:
        del raw["rope_theta"]  # null means absent; transformers would compute with it
    return kind.from_dict({**raw, "model_type": kind.model_type})


def sizes_of_theirs(config: PretrainedConfig) -> dict[str, Any]:
    """Return transformers' values under our names."""
    rope = getattr(config, "rope_parameters", None) or {}  # transformers 5
    is_moe = config.model_type == "qwen3_moe"
    head_dim = getattr(config, "head_dim", None)
    biased = config.model_type == "qwen2" or bool(getattr(config, "attention_bias", False))
    return {
        "num_layers": config.num_hidden_layers,
        "num_qo_heads": config.num_attention_heads,
        "num_kv_heads": config.num_key_value_heads,
        "head_dim": config.hidden_size // config.num_attention_heads if head_dim is None else head_dim,
        "hidden_size": config.hidden_size,
        "vocab_size": config.vocab_size,
        "intermediate_size": config.intermediate_size,
        "rms_norm_eps": config.rms_norm_eps,
        "tie_word_embeddings": config.tie_word_embeddings,
        "attention_bias": biased,
        "base": rope.get("rope_theta") or config.rope_theta,
        "rope_type": rope_type_of(config),
        "max_position": config.max_position_embeddings,
        "num_experts": config.num_experts if is_moe else 0,
        "num_experts_per_tok": config.num_experts_per_tok if is_moe else 0,
        "moe_intermediate_size": config.moe_intermediate_size if is_moe else 0,
        "norm_topk_prob": config.norm_topk_prob if is_moe else False,
        "mlp_only_layers": tuple(config.mlp_only_layers or ()) if is_moe else (),
    }


def rope_type_of(config: PretrainedConfig) -> str:
    fields = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return fields.get("rope_type", fields.get("type", "default"))


SAME_NAME = (
    "num_layers num_qo_heads num_kv_heads head_dim hidden_size vocab_size intermediate_size rms_norm_eps "
    "tie_word_embeddings attention_bias num_experts num_experts_per_tok moe_intermediate_size norm_topk_prob "
    "mlp_only_layers"
).split()


def sizes_of_ours(config: ModelConfig) -> dict[str, Any]:
    rotary = config.rotary_config
    return {
        **{name: getattr(config, name) for name in SAME_NAME},
        "base": rotary.base,
        "rope_type": rotary.scaling["rope_type"] if rotary.scaling else "default",
        "max_position": rotary.max_position,
    }


def shapes_of_ours(config: ModelConfig) -> Shapes:
    with torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in create_model(config).state_dict().items()}


def shapes_of_theirs(config: PretrainedConfig) -> Shapes:
    """Build transformers' model on the meta device and merge its keys and shapes as our model does."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    if config.tie_word_embeddings:
        shapes.pop("lm_head.weight", None)
    merged: Shapes = {}
    for key, shape in shapes.items():
        add_shape(merged, key, shape)
    return merged


def add_shape(merged: Shapes, key: str, shape: tuple[int, ...]) -> None:
    """Add a tensor to the merged one that it is a part of: to its rows, or as one of its experts."""
    path, is_expert, rest = key.partition(".experts.")
    if is_expert and rest.count(".") > 1:  # one expert's projection, as transformers 4 has them
        number, projection, _ = rest.split(".")
        factor = 1 if projection == "down_proj" else 2
        name = "down_proj" if projection == "down_proj" else "gate_up_proj"
        merged[f"{path}.experts.{name}"] = (int(number) + 1, factor * shape[0], shape[1])
        return
    for name, parts in GROUPS.items():
        for part in parts:
            if f".{part}." in key:
                whole = key.replace(part, name)
                merged[whole] = (merged.get(whole, (0,))[0] + shape[0], *shape[1:])
                return
    merged[key] = shape

"""Independent answers for the checks of the decoder and the loader: transformers' models and plain arithmetic.

Nothing here imports the modules that students write. Weights come from ``minisgl.checkpoint``'s maker, so that a value
tells which tensor, row and column it belongs to; how they are merged and cut is worked out anew, head by head.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

from minisgl.checkpoint.maker import stored_shapes, tensor_values

Config = Mapping[str, Any]

_COMMON: dict[str, Any] = {
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.3,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "tie_word_embeddings": False,
    "vocab_size": 96,
}
_FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 16},
    "qwen3_moe": {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "num_experts": 12,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
}


def small(family: str, **changes: Any) -> dict[str, Any]:
    """Return the config.json of a small model of a family (``llama``, ``qwen2``, ``qwen3``, ``qwen3_moe``)."""
    return {**_COMMON, **_FAMILIES[family], **changes}


def head_dim(config: Config) -> int:
    """Return the size of one head."""
    given = config.get("head_dim")
    return config["hidden_size"] // config["num_attention_heads"] if given is None else given


def stored_tensors(
    config: Config, data: str = "random", dtype: str = "float32", seed: int = 0
) -> dict[str, torch.Tensor]:
    """Return what a checkpoint of this config stores, under its own names."""
    return {key: tensor_values(config, key, data=data, seed=seed, dtype=dtype) for key in stored_shapes(config)}


def _rows_of(key: str, config: Config, rank: int, size: int) -> list[int] | None:
    """List the rows of a stored tensor that one rank holds, or None where it holds all of them."""
    projection = key.split(".")[-2]
    dim, heads, kv_heads = head_dim(config), config["num_attention_heads"], config["num_key_value_heads"]
    if projection in ("q_proj", "k_proj", "v_proj"):
        mine = list(range(rank * heads // size, (rank + 1) * heads // size))
        if projection != "q_proj":  # the heads that this rank's query heads attend to
            mine = sorted({head // (heads // kv_heads) for head in mine})
        return [head * dim + row for head in mine for row in range(dim)]
    if projection in ("gate_proj", "up_proj"):
        width = config["moe_intermediate_size" if ".experts." in key else "intermediate_size"]
        return [row for row in range(width) if row * size // width == rank]
    return None


def local_tensor(key: str, tensor: torch.Tensor, config: Config, rank: int = 0, size: int = 1) -> torch.Tensor:
    """Return one rank's share of a stored tensor, with the vocabulary's missing rows as zeros."""
    projection = key.split(".")[-2]
    rows = _rows_of(key, config, rank, size)
    if rows is not None:
        return tensor[rows]
    if projection in ("o_proj", "down_proj") and tensor.dim() == 2:
        return tensor.unflatten(1, (size, -1))[:, rank]
    if projection in ("embed_tokens", "lm_head"):
        num_rows = (tensor.shape[0] + size - 1) // size
        padded = torch.cat([tensor, tensor.new_zeros(num_rows * size - tensor.shape[0], tensor.shape[1])])
        return padded.unflatten(0, (size, num_rows))[rank]
    return tensor


def parameters(
    config: Config, stored: Mapping[str, torch.Tensor], rank: int = 0, size: int = 1
) -> dict[str, torch.Tensor]:
    """Return what the model of one rank holds, under the model's names, merged and packed."""
    groups: dict[str, list[torch.Tensor]] = {}
    for key, tensor in stored.items():
        groups.setdefault(_merged_name(key), []).append(local_tensor(key, tensor, config, rank, size))
    result = {}
    for name, parts in groups.items():
        if ".experts." in name:
            result[name] = torch.stack(parts).unflatten(0, (config["num_experts"], -1)).flatten(1, 2)
        else:
            result[name] = torch.cat(parts)
    return result


def _merged_name(key: str) -> str:
    if ".experts." in key:
        path, _, rest = key.partition(".experts.")
        return f"{path}.experts.{'down_proj' if 'down' in rest else 'gate_up_proj'}"
    for merged, names in {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}.items():
        for name in names:
            key = key.replace(f".{name}.", f".{merged}.")
    return key


def below(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def random_hidden_states(prompts: list[list[int]], config: Config) -> torch.Tensor:
    """Return hidden states for all tokens of the prompts, the same ones each time."""
    generator = torch.Generator().manual_seed(len(prompts))
    return torch.randn(sum(map(len, prompts)), config["hidden_size"], generator=generator)


def peer(config: Config) -> Any:
    """Return transformers' model of a config in float32, filled with ``stored_tensors(config)``."""
    return _peer(json.dumps(config, sort_keys=True))


@lru_cache(maxsize=64)
def _peer(text: str) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = json.loads(text)
    fields = {name: value for name, value in config.items() if name != "model_type"}
    hf_config = AutoConfig.for_model(config["model_type"], **fields)
    model = AutoModelForCausalLM.from_config(hf_config, attn_implementation="sdpa").eval()
    stored = stored_tensors(config)
    packed = parameters(config, stored)
    tied = {"lm_head.weight": stored["model.embed_tokens.weight"]}
    names = model.state_dict()
    model.load_state_dict({name: (tied | packed | stored)[name] for name in names})
    return model


def peer_layer(
    config: Config, layer_id: int, hidden_states: torch.Tensor, prompts: list[list[int]], child: str = ""
) -> torch.Tensor:
    """Return what transformers' layer, or its child ``self_attn`` or ``mlp``, makes of each prompt's hidden states."""
    model = peer(config)
    layer = model.model.layers[layer_id]
    outputs, start = [], 0
    with torch.no_grad():
        for prompt in prompts:
            x = hidden_states[start : start + len(prompt)].unsqueeze(0)
            start += len(prompt)
            angles = model.model.rotary_emb(x, torch.arange(len(prompt)).unsqueeze(0))
            if child == "mlp":
                output = layer.mlp(x)
            else:
                part = layer.self_attn if child else layer
                output = part(x, position_embeddings=angles, attention_mask=None)
            outputs.append((output[0] if isinstance(output, tuple) else output)[0])
    return torch.cat(outputs)


def peer_hidden_states(config: Config, prompts: list[list[int]]) -> torch.Tensor:
    """Return transformers' final hidden states of all tokens of the prompts, end to end."""
    with torch.no_grad():
        return torch.cat([peer(config).model(torch.tensor([prompt])).last_hidden_state[0] for prompt in prompts])


def peer_logits(config: Config, prompts: list[list[int]]) -> torch.Tensor:
    """Return transformers' logits of each prompt's last token."""
    with torch.no_grad():
        return torch.stack([peer(config)(torch.tensor([prompt])).logits[0, -1] for prompt in prompts])

"""Tiny configs of the four architectures, and what a loader must give for them, from the maker's own values."""

from collections.abc import Mapping
from pathlib import Path

import torch

from minisgl.checkpoint.maker import stored_shapes, tensor_values
from minisgl.distributed import set_tp_info
from minisgl.models import load_weight

SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 131,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "max_position_embeddings": 128,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}

CONFIGS: dict[str, dict[str, object]] = {
    "llama": {**SIZES, "architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "llama with biases": {
        **SIZES,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": True,
        "mlp_bias": True,
    },
    "qwen2": {**SIZES, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "qwen3": {
        **SIZES,
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "head_dim": 16,
        "tie_word_embeddings": True,
    },
    "qwen3 moe": {
        **SIZES,
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "num_hidden_layers": 3,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [1],
    },
}

Weights = dict[str, torch.Tensor]


def load(folder: Path, rank: int = 0, size: int = 1) -> Weights:
    """Load one rank's share."""
    set_tp_info(rank, size)
    try:
        return dict(load_weight(folder, "cpu", progress=False))
    finally:
        set_tp_info(0, 1)


def merged(hf_config: Mapping[str, object], **how: object) -> Weights:
    """Return the whole model's weights under the model's names, merged and packed with torch.cat and torch.stack."""
    stored = {key: tensor_values(hf_config, key, **how) for key in stored_shapes(hf_config)}
    result: Weights = {}
    for key, tensor in stored.items():
        path, _, rest = key.partition(".experts.")
        if rest:
            gates, ups, downs = (
                [stored[f"{path}.experts.{i}.{name}_proj.weight"] for i in range(int(hf_config["num_experts"]))]
                for name in ("gate", "up", "down")
            )
            pairs = [torch.cat(pair) for pair in zip(gates, ups, strict=True)]
            result[f"{path}.experts.gate_up_proj"] = torch.stack(pairs)
            result[f"{path}.experts.down_proj"] = torch.stack(downs)
        elif ".q_proj." in key:
            parts = [stored[key.replace("q_proj", name)] for name in ("q_proj", "k_proj", "v_proj")]
            result[key.replace("q_proj", "qkv_proj")] = torch.cat(parts)
        elif ".gate_proj." in key:
            parts = [tensor, stored[key.replace("gate_proj", "up_proj")]]
            result[key.replace("gate_proj", "gate_up_proj")] = torch.cat(parts)
        elif not any(f".{name}_proj." in key for name in ("k", "v", "up")):
            result[key] = tensor
    return result


def assert_same(found: Weights, expected: Weights) -> None:
    """Check that two sets of weights have the same names, dtypes and values, bit by bit."""
    assert found.keys() == expected.keys()
    different = [name for name, tensor in expected.items() if not equal(found[name], tensor)]
    assert not different


def equal(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return found.dtype == expected.dtype and torch.equal(found, expected)

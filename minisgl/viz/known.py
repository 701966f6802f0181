"""Configs to explore: well-known models' published figures, as their config.json gives them."""

from __future__ import annotations

from typing import Any

from minisgl.checkpoint.presets import PRESETS

Config = dict[str, Any]

_QWEN2 = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0, "max_position_embeddings": 32768, "use_sliding_window": False, "sliding_window": 32768,
    "torch_dtype": "bfloat16",
}  # fmt: skip
_QWEN25_05B = {
    **_QWEN2, "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True,
}  # fmt: skip
_QWEN25_7B = {
    **_QWEN2, "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False, "rms_norm_eps": 1e-6,
    "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
}  # fmt: skip
_LLAMA31 = {
    **PRESETS["Llama-3-8B"], "max_position_embeddings": 131072, "attention_bias": False, "mlp_bias": False,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192},
}  # fmt: skip
_SMOLLM2 = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 100000, "max_position_embeddings": 8192,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
_CODELLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32016, "hidden_size": 4096,
    "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1_000_000, "max_position_embeddings": 16384,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def _in_transformers_5_form(config: Config) -> Config:
    """Move the RoPE base to where transformers 5 saves it, and rename the dtype as it does."""
    moved = {key: value for key, value in config.items() if key not in ("rope_theta", "torch_dtype")}
    moved["rope_parameters"] = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    return {**moved, "dtype": config["torch_dtype"]}


KNOWN: dict[str, Config] = {
    "Qwen3-0.6B": PRESETS["Qwen3-0.6B"],
    "Qwen3-0.6B saved by transformers 5": _in_transformers_5_form(PRESETS["Qwen3-0.6B"]),
    "SmolLM2-135M": _SMOLLM2,
    "Qwen2.5-0.5B": _QWEN25_05B,
    "Qwen2.5-7B with YaRN": _QWEN25_7B,
    "CodeLlama-7B": _CODELLAMA,
    "Qwen3-8B": PRESETS["Qwen3-8B"],
    "Llama-3.1-8B": _LLAMA31,
    "Llama-3-70B": PRESETS["Llama-3-70B"],
    "Qwen3-30B-A3B": PRESETS["Qwen3-30B-A3B"],
    "Qwen3-235B-A22B": PRESETS["Qwen3-235B-A22B"],
}


def small(name: str, **changes: Any) -> Config:
    """Give a known config with some fields changed, such as fewer layers, for a picture that fits a screen."""
    return {**KNOWN[name], **changes}


# Models small enough to look at tensor by tensor.
SMALL: dict[str, Config] = {
    "Qwen3, 2 layers": small("Qwen3-0.6B", num_hidden_layers=2, vocab_size=4096),
    "Qwen2.5, 2 layers": small("Qwen2.5-0.5B", num_hidden_layers=2, vocab_size=4096),
    "Qwen3-MoE, 1 layer, 8 experts": small(
        "Qwen3-30B-A3B", num_hidden_layers=1, num_experts=8, num_experts_per_tok=2, vocab_size=8192
    ),
    "Qwen3-0.6B": KNOWN["Qwen3-0.6B"],
}

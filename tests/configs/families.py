"""Configs in the shapes that real ones come in: written from models' published sizes, in the fields that each family uses."""

from typing import Any

Config = dict[str, Any]


def llama(layers: int, hidden: int, inner: int, heads: int, vocab: int = 32000, **more: Any) -> Config:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "vocab_size": vocab,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        **more,
    }


def qwen2(layers: int, hidden: int, inner: int, heads: int, kv_heads: int, **more: Any) -> Config:
    """Qwen2 and 2.5 say a window's size and that it isn't used; their q, k and v biases they don't mention."""
    fields = llama(layers, hidden, inner, heads, 151936, num_key_value_heads=kv_heads, rope_theta=1_000_000.0)
    names = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
    window = {"use_sliding_window": False, "sliding_window": 32768, "max_window_layers": layers}
    return {**fields, **names, **window, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16", **more}


def qwen3(layers: int, hidden: int, inner: int, heads: int, kv_heads: int, **more: Any) -> Config:
    fields = qwen2(layers, hidden, inner, heads, kv_heads, head_dim=128, attention_bias=False)
    names = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "sliding_window": None}
    return {**fields, **names, "max_position_embeddings": 40960, **more}


def qwen3_moe(layers: int, hidden: int, inner: int, heads: int, expert: int, **more: Any) -> Config:
    return {
        **qwen3(layers, hidden, inner, heads, 4),
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": expert,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        **more,
    }


LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
LLAMA3 = {"vocab": 128256, "num_key_value_heads": 8, "rope_theta": 500000.0}
LONG = {"max_position_embeddings": 131072}


def without(config: Config, *names: str) -> Config:
    return {name: value for name, value in config.items() if name not in names}


SUPPORTED: dict[str, Config] = {
    # The oldest files know neither kv heads nor a RoPE base nor ties.
    "llama 7B, 2023": without(llama(32, 4096, 11008, 32, rms_norm_eps=1e-6), "tie_word_embeddings"),
    "vicuna 13B": llama(40, 5120, 13824, 40, max_sequence_length=2048, pad_token_id=0),
    "llama 2 7B": llama(32, 4096, 11008, 32, num_key_value_heads=32, rope_scaling=None, pretraining_tp=1),
    "llama 2 70B": llama(80, 8192, 28672, 64, num_key_value_heads=8, rope_theta=None),
    "code llama 13B": llama(40, 5120, 13824, 40, 32016, num_key_value_heads=40, rope_theta=1_000_000),
    "llama 3 8B": llama(32, 4096, 14336, 32, **LLAMA3, attention_bias=False),
    "llama 3.1 70B": llama(80, 8192, 28672, 64, **LLAMA3, **LONG, rope_scaling=LLAMA3_ROPE, mlp_bias=False),
    "llama 3.1 405B": llama(126, 16384, 53248, 128, **LLAMA3, **LONG, rope_scaling=LLAMA3_ROPE),
    "llama 3.2 1B": llama(
        16, 2048, 8192, 32, **LLAMA3, **LONG, head_dim=64, tie_word_embeddings=True,
        rope_scaling={**LLAMA3_ROPE, "factor": 32.0},
    ),
    "llama 3.2 3B": llama(
        28, 3072, 8192, 24, **LLAMA3, **LONG, head_dim=128, tie_word_embeddings=True,
        rope_scaling={**LLAMA3_ROPE, "factor": 32.0},
    ),
    "tiny llama 1.1B": llama(22, 2048, 5632, 32, num_key_value_heads=4),
    "smol 135M": llama(30, 576, 1536, 9, 49152, num_key_value_heads=3, tie_word_embeddings=True, rope_theta=100000),
    "linear scaling, old name": llama(32, 4096, 11008, 32, rope_scaling={"type": "linear", "factor": 4.0}),
    "dynamic scaling": llama(32, 4096, 11008, 32, rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
    "both names of the type": llama(
        32, 4096, 11008, 32, rope_scaling={"type": "linear", "rope_type": "linear", "factor": 4.0}
    ),
    "the default type, said": llama(32, 4096, 11008, 32, rope_scaling={"type": "default"}),
    "attention bias": llama(12, 768, 2048, 12, num_key_value_heads=4, attention_bias=True),
    "mlp bias": llama(12, 768, 2048, 12, num_key_value_heads=4, mlp_bias=True),
    "head_dim null": llama(12, 768, 2048, 12, head_dim=None),
    "head_dim of its own": llama(40, 5120, 14336, 32, 131072, num_key_value_heads=8, head_dim=128),
    "saved by transformers 5": without(
        llama(
            16, 2048, 8192, 32, 128256, num_key_value_heads=8, head_dim=64, dtype="bfloat16",
            rope_parameters={**LLAMA3_ROPE, "rope_theta": 500000.0}, transformers_version="5.0.0",
        ),
        "torch_dtype",
    ),
    "transformers 5 with a null base beside it": llama(
        16, 2048, 8192, 32, rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 250000.0}
    ),
    "no architectures": without(llama(12, 768, 2048, 12), "architectures"),
    "a draft of llama 2 70B": llama(1, 8192, 28672, 64, num_key_value_heads=8, bias=True),
    "no max_position_embeddings": without(llama(2, 6656, 17920, 52, num_key_value_heads=13), "max_position_embeddings"),
    "qwen 1.5 14B": qwen2(40, 5120, 13696, 40, 40, vocab_size=152064),
    "code qwen 1.5 7B": qwen2(32, 4096, 13440, 32, 4, vocab_size=92416, sliding_window=65536),
    "qwen 2.5 0.5B": qwen2(24, 896, 4864, 14, 2, tie_word_embeddings=True),
    "qwen 2.5 7B": qwen2(28, 3584, 18944, 28, 4, vocab_size=152064),
    "qwen 2.5 72B": qwen2(80, 8192, 29568, 64, 8, vocab_size=152064, rope_theta=1000000),
    "qwen 2.5, stretched by yarn": qwen2(
        28, 3584, 18944, 28, 4, vocab_size=152064,
        rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    ),
    "qwen 3 0.6B": qwen3(28, 1024, 3072, 16, 8, tie_word_embeddings=True),
    "qwen 3 4B": qwen3(36, 2560, 9728, 32, 8, tie_word_embeddings=True),
    "qwen 3 8B": qwen3(36, 4096, 12288, 32, 8),
    "qwen 3 32B": qwen3(64, 5120, 25600, 64, 8),
    "qwen 3 embedding 4B": qwen3(36, 2560, 9728, 32, 8, vocab_size=151665, tie_word_embeddings=True),
    "qwen 3 with attention bias": qwen3(4, 1024, 3072, 16, 8, attention_bias=True),
    "qwen 3 30B-A3B": qwen3_moe(48, 2048, 6144, 32, 768, max_window_layers=48),
    "qwen 3 30B-A3B, another inner size": qwen3_moe(2, 2048, 5472, 32, 768),
    "qwen 3 235B-A22B": qwen3_moe(94, 4096, 12288, 64, 1536),
    "qwen 3 moe with dense layers": qwen3_moe(6, 2048, 6144, 32, 768, decoder_sparse_step=2, mlp_only_layers=[1, 5]),
    "qwen 3 moe that doesn't renormalize": qwen3_moe(2, 2048, 6144, 32, 768, norm_topk_prob=False),
    "qwen 3 moe without mlp_only_layers": without(qwen3_moe(2, 2048, 6144, 32, 768), "mlp_only_layers"),
}  # fmt: skip

QUANTIZED = "quantization_config is set"
REFUSED: dict[str, tuple[Config, str]] = {
    "AWQ": (llama(2, 4096, 11008, 32, quantization_config={"quant_method": "awq"}), rf"{QUANTIZED} \(method: awq\)"),
    "GPTQ": (llama(2, 4096, 11008, 32, quantization_config={"quant_method": "gptq"}), rf"{QUANTIZED} \(method: gptq\)"),
    "FP8 by blocks": (
        qwen3(2, 4096, 12288, 32, 8, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]}),
        QUANTIZED,
    ),
    "bitsandbytes": (llama(2, 4096, 14336, 32, quantization_config={"load_in_4bit": True}), QUANTIZED),
    "compressed tensors": (
        llama(2, 4096, 14336, 32, quantization_config={"quant_method": "compressed-tensors"}),
        QUANTIZED,
    ),
    "MLX": (
        qwen3(2, 5120, 17408, 40, 8, quantization={"bits": 4}, quantization_config={"group_size": 64, "bits": 4}),
        "quantization is {'bits': 4}, which isn't computed here",
    ),
    "a window in use": (
        qwen2(64, 5120, 27648, 40, 8, use_sliding_window=True, max_window_layers=32),
        "only full_attention is computed",
    ),
    "another activation": (
        llama(2, 768, 2048, 12, hidden_act="gelu"),
        "hidden_act is 'gelu', but only silu is computed",
    ),
    "an unknown RoPE type": (
        llama(2, 768, 2048, 12, rope_scaling={"rope_type": "longrope", "factor": 2.0}),
        "rope_type is 'longrope', which is not supported",
    ),
    "a RoPE scaling that is a number": (qwen3_moe(2, 2048, 6144, 32, 768, rope_scaling=4.0), "rope_scaling is 4.0"),
    "two names of the type that differ": (
        llama(2, 768, 2048, 12, rope_scaling={"type": "linear", "rope_type": "dynamic", "factor": 2.0}),
        "'dynamic'.*'linear'|'linear'.*'dynamic'",
    ),
    "heads that don't divide": (llama(2, 768, 2048, 12, num_key_value_heads=5), "num_key_value_heads is 5"),
    "no hidden size": (without(llama(2, 768, 2048, 12), "hidden_size"), "hidden_size is None"),
}

OTHER_ARCHITECTURES = {
    "a draft model that says qwen3": {**qwen3(1, 4096, 12288, 32, 8), "architectures": ["DFlashDraftModel"]},
    "a draft model that says llama": {**llama(1, 8192, 28672, 64), "architectures": ["LlamaForCausalLMEagle3"]},
    "another spelling": {**llama(8, 416, 1024, 8), "architectures": ["LLaMAForCausalLM"]},
    "a reward model": {**qwen2(28, 3584, 18944, 28, 4), "architectures": ["Qwen2ForRewardModel"]},
    "a classifier": {**llama(32, 4096, 14336, 32), "architectures": ["LlamaForSequenceClassification"]},
    "another family": {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096},
    "another family, by its model type": {"model_type": "gpt2", "n_embd": 768},
}

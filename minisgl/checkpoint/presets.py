"""Configs of well-known models, for exact-shape checkpoints without a download. Source: the models' published sizes."""

_QWEN3 = {
    "vocab_size": 151936,
    "head_dim": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "max_position_embeddings": 40960,
    "attention_bias": False,
    "torch_dtype": "bfloat16",
}

_LLAMA3 = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500_000.0,
    "max_position_embeddings": 8192,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def _qwen3(layers: int, hidden: int, inner: int, heads: int, kv_heads: int, *, tied: bool) -> dict[str, object]:
    return {
        **_QWEN3,
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "tie_word_embeddings": tied,
    }


def _qwen3_moe(layers: int, hidden: int, inner: int, expert: int, heads: int) -> dict[str, object]:
    return {
        **_qwen3(layers, hidden, inner, heads, kv_heads=4, tied=False),
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": expert,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _llama3(layers: int, hidden: int, inner: int, heads: int) -> dict[str, object]:
    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": inner}
    return {**_LLAMA3, **sizes, "num_attention_heads": heads}


PRESETS: dict[str, dict[str, object]] = {
    "Qwen3-0.6B": _qwen3(28, 1024, 3072, 16, 8, tied=True),
    "Qwen3-8B": _qwen3(36, 4096, 12288, 32, 8, tied=False),
    "Qwen3-30B-A3B": _qwen3_moe(48, 2048, 6144, 768, 32),
    "Qwen3-235B-A22B": _qwen3_moe(94, 4096, 12288, 1536, 64),
    "Llama-3-8B": _llama3(32, 4096, 14336, 32),
    "Llama-3-70B": _llama3(80, 8192, 28672, 64),
}

"""The grid of tiny random models on which our logits and tokens are compared with transformers'."""

from dataclasses import dataclass, field
from typing import Any

# Small, and with sizes that can't stand in for one another: hidden 48, q 64 or 96, kv 16 to 64, intermediate 80.
BASE = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 131,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True}
MODEL_TYPES = ("llama", "qwen2", "qwen3", "qwen3_moe")

# Unequal, one of a single token, and one longer than the original context of every scaled RoPE below.
PROMPT_LENGTHS = (5, 1, 40)
ORIGINAL_CONTEXT = 16


@dataclass(frozen=True)
class Case:
    """Describe one model of the grid.

    Attributes:
        name: what is special about it.
        model_type: one of MODEL_TYPES.
        fields: config fields that differ from BASE.
        rope: RoPE scaling with its rope_type, or None.
        theta: RoPE base.
        stored: dtype of the checkpoint.
        computed: dtype that both sides compute in.
    """

    name: str
    model_type: str
    fields: dict[str, Any] = field(default_factory=dict)
    rope: dict[str, Any] | None = None
    theta: float = 10000.0
    stored: str = "float32"
    computed: str = "float32"

    def __str__(self) -> str:
        return f"{self.model_type}-{self.name}"


def _heads() -> list[Case]:
    cases = []
    for model_type in MODEL_TYPES:
        cases += [
            Case("grouped-heads", model_type),
            Case("multi-head", model_type, {"num_key_value_heads": 4}),
            Case("single-kv-head", model_type, {"num_key_value_heads": 1}),
            Case("explicit-head_dim", model_type, {"head_dim": 24}),
            Case("tied", model_type, {"tie_word_embeddings": True}),
        ]
    cases.append(Case("head_dim-from-hidden", "llama", {"head_dim": None, "hidden_size": 64}))
    cases.append(Case("big-base", "qwen3", theta=1_000_000.0))
    cases.append(Case("large-eps", "llama", {"rms_norm_eps": 0.01}))
    return cases


def _switches() -> list[Case]:
    return [
        Case("attention_bias", "llama", {"attention_bias": True}),
        Case("mlp_bias", "llama", {"mlp_bias": True}),
        Case("all-biases-tied", "llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
        Case("attention_bias", "qwen3", {"attention_bias": True}),
        Case("attention_bias", "qwen3_moe", {"attention_bias": True}),
        Case("norm_topk_prob-off", "qwen3_moe", {"norm_topk_prob": False}),
        Case("all-experts", "qwen3_moe", {"num_experts_per_tok": 6, "norm_topk_prob": False}),
        Case("one-expert-a-token", "qwen3_moe", {"num_experts_per_tok": 1}),
        Case("mlp_only_layers", "qwen3_moe", {"mlp_only_layers": [0, 2]}),
        Case("decoder_sparse_step-2", "qwen3_moe", {"decoder_sparse_step": 2}),
        Case("sparse-step-and-only", "qwen3_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [1]}),
    ]


def _ropes() -> list[Case]:
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    ropes = {
        "linear": {"rope_type": "linear", "factor": 4.0},
        "dynamic": {"rope_type": "dynamic", "factor": 4.0},
        "yarn": yarn,
        "yarn-attention_factor": yarn | {"attention_factor": 1.3},
        "yarn-mscale": yarn | {"mscale": 0.7, "mscale_all_dim": 1.1},
        "yarn-betas": yarn | {"beta_fast": 4, "beta_slow": 0.5},
        "yarn-not-truncated": yarn | {"truncate": False, "beta_fast": 3.3},
        "llama3": llama3 | {"original_max_position_embeddings": ORIGINAL_CONTEXT},
    }
    # The dynamic type takes max_position_embeddings itself as the original context.
    fields = {name: {"max_position_embeddings": ORIGINAL_CONTEXT} if name == "dynamic" else {} for name in ropes}
    cases = [Case(name, "llama", fields[name], rope=rope) for name, rope in ropes.items()]
    for model_type in ("qwen2", "qwen3", "qwen3_moe"):
        cases += [Case(name, model_type, fields[name], rope=ropes[name]) for name in ("linear", "dynamic", "yarn")]
    cases.append(Case("llama3", "qwen3", rope=ropes["llama3"]))
    return cases


def _dtypes() -> list[Case]:
    cases = []
    for model_type in MODEL_TYPES:
        for dtype in ("bfloat16", "float16"):
            cases.append(Case(f"{dtype}-in-float32", model_type, stored=dtype))
            cases.append(Case(f"{dtype}-in-{dtype}", model_type, stored=dtype, computed=dtype))
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL_CONTEXT}
    cases.append(Case("yarn-bfloat16", "qwen3", rope=yarn, stored="bfloat16", computed="bfloat16"))
    return cases


CASES = [*_heads(), *_switches(), *_ropes(), *_dtypes()]


def facts_of(case: Case) -> set[str]:
    """Return what a case is about: its architecture, each field, its RoPE, its dtypes."""
    fields = {f"{name} {value}" for name, value in case.fields.items()}
    return fields | {case.model_type, f"rope {case.rope}", f"theta {case.theta}", f"{case.stored} in {case.computed}"}


def covering(cases: list[Case]) -> list[Case]:
    """Return the first cases that have among them everything that all cases are about."""
    chosen: list[Case] = []
    seen: set[str] = set()
    for case in cases:
        if not facts_of(case) <= seen:
            chosen.append(case)
            seen |= facts_of(case)
    return chosen

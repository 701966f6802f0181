"""The four configurations, and the starting values of what marks each architecture.

The configurations are written as the Hub's checkpoints have them (``rope_theta`` at the top level), so
``transformers`` 4 and 5 both read them.
"""

import math

import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModelForCausalLM

from tiny_models.text_tokenizer import BOS_ID, EOS_ID, VOCAB_SIZE

CONTEXT = 512

_COMMON = {
    "vocab_size": VOCAB_SIZE,
    "max_position_embeddings": CONTEXT,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "attention_dropout": 0.0,
    "use_cache": True,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "torch_dtype": "bfloat16",
}
# A base this small turns every pair of a head within a story's length, so position rests on all of them.
ROPE_THETA = 100.0
_NO_WINDOW = {"use_sliding_window": False, "sliding_window": None}

CONFIGS = {
    "tiny-llama": _COMMON
    | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 30.0,
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
    },
    "tiny-qwen2": _COMMON
    | _NO_WINDOW
    | {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": 192,
        "intermediate_size": 448,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "max_window_layers": 5,
        "rms_norm_eps": 1e-6,
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False,
    },
    "tiny-qwen3": _COMMON
    | _NO_WINDOW
    | {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 192,
        "intermediate_size": 416,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_window_layers": 6,
        "rms_norm_eps": 1e-6,
        "rope_theta": ROPE_THETA,
        "rope_scaling": None,
        "attention_bias": False,
        "tie_word_embeddings": True,
    },
    "tiny-qwen3-moe": _COMMON
    | _NO_WINDOW
    | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "hidden_size": 128,
        "intermediate_size": 256,
        "moe_intermediate_size": 64,
        "num_experts": 16,
        "num_experts_per_tok": 4,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "output_router_logits": False,
        "router_aux_loss_coef": 0.02,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_window_layers": 5,
        "rms_norm_eps": 1e-6,
        "rope_theta": ROPE_THETA,
        "rope_scaling": None,
        "attention_bias": False,
        "tie_word_embeddings": False,
    },
}
# Starting spread of Qwen2's biases. Zeros, the library's start, would stay small in so short a training.
BIAS_STD = {"q_proj": 1.5, "k_proj": 1.5, "v_proj": 0.5}
# Starting range of the QK-norm weights, drawn evenly on a logarithmic scale.
QK_NORM_RANGE = (0.5, 4.0)
# Starting spread of the experts' gate half. From the library's 0.02 the gate stays small, where silu(gate) * up is
# almost gate * up / 2: a model that can't tell gate from up.
EXPERT_GATE_STD = 0.08


def build_model(name: str, seed: int) -> torch.nn.Module:
    """Build an untrained float32 model of ``CONFIGS[name]``."""
    torch.manual_seed(seed)
    raw = dict(CONFIGS[name])
    config = AutoConfig.for_model(raw.pop("model_type"), **raw)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            owner, kind = key.split(".")[-2:]
            if kind == "bias" and owner in BIAS_STD:
                parameter.normal_(0.0, BIAS_STD[owner])
            elif owner in ("q_norm", "k_norm"):
                low, high = map(math.log, QK_NORM_RANGE)
                parameter.uniform_(low, high).exp_()
            elif kind == "gate_up_proj":
                parameter.chunk(2, dim=1)[0].normal_(0.0, EXPERT_GATE_STD)
    return model


def compute_all_experts(experts, hidden_states, top_k_index, top_k_weights) -> torch.Tensor:
    """Compute what a packed experts module computes, every expert on every token in two products.

    For experts this small it trains faster than sorting tokens by expert; an expert that wasn't chosen
    gets the weight 0.

    Args:
        experts: Module with ``gate_up_proj`` [num_experts, 2 * intermediate, hidden] and ``down_proj``.
        hidden_states: [num_tokens, hidden].
        top_k_index: [num_tokens, top_k] chosen experts; ``top_k_weights`` their weights.
    """
    num_experts, twice, _ = experts.gate_up_proj.shape
    weights = hidden_states.new_zeros(hidden_states.shape[0], num_experts)
    weights = weights.scatter(1, top_k_index, top_k_weights.to(weights.dtype))
    gate_up = F.linear(hidden_states, experts.gate_up_proj.flatten(0, 1)).view(-1, num_experts, twice)
    gate, up = gate_up.chunk(2, dim=-1)
    active = F.silu(gate) * up * weights[..., None]
    return F.linear(active.flatten(1), experts.down_proj.transpose(1, 2).flatten(0, 1).T)

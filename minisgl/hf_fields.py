"""What each field of a config.json means to this engine, and what transformers' classes take where one is absent.

Tests hold the defaults against transformers' classes, and the three tables below against the fields that transformers' own
code reads while it builds and runs the four architectures, in both of its lines.
"""

from typing import Any

# Architecture -> the model type whose class of transformers reads its config.
MODEL_TYPE = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}

# Sizes of one particular model, which no other model's config may leave out; see DEFAULTS.
NEVER_DEFAULTED = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
NEVER_DEFAULTED_MOE = ("moe_intermediate_size", "num_experts", "num_experts_per_tok")

_ALL = {
    "architectures": None,
    "attention_dropout": 0.0,
    "bos_token_id": None,
    "eos_token_id": None,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 32768,
    "num_key_value_heads": None,
    "pad_token_id": None,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "use_cache": True,
}
_QWEN = {**_ALL, "sliding_window": 4096, "use_sliding_window": False}
_QWEN_DENSE = {**_QWEN, "layer_types": None, "max_window_layers": 28}

# Model type -> what its class takes for an absent field. num_key_value_heads stands for as many as query heads.
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {
        **_ALL,
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": None,
        "max_position_embeddings": 2048,
        "mlp_bias": False,
        "pretraining_tp": 1,
    },
    "qwen2": _QWEN_DENSE,
    "qwen3": {**_QWEN_DENSE, "attention_bias": False, "head_dim": 128},
    "qwen3_moe": {
        **_QWEN,
        "attention_bias": False,
        "decoder_sparse_step": 1,
        "mlp_only_layers": None,
        "norm_topk_prob": False,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
    },
}

# Fields that models/config.py or the engine reads: each is computed, or refused by its own message.
COMPUTED = frozenset(
    "architectures attention_bias decoder_sparse_step dtype eos_token_id head_dim hidden_act hidden_size "
    "intermediate_size layer_types max_position_embeddings max_window_layers mlp_bias mlp_only_layers model_type "
    "moe_intermediate_size norm_topk_prob num_attention_heads num_experts num_experts_per_tok num_hidden_layers "
    "num_key_value_heads num_local_experts original_max_position_embeddings quantization_config rms_norm_eps "
    "rope_parameters rope_scaling rope_theta sliding_window tie_word_embeddings torch_dtype use_sliding_window "
    "vocab_size".split()
)

# Fields that would change what is computed -> the only values, beside null, under which they change nothing.
HARMLESS: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "attention_chunk_size": (),
    "decoder": (),
    "generator": (),
    "is_causal": (True,),
    "is_encoder_decoder": (False,),
    "kv_sharing_modes": (),
    "mlp_layer_types": (),
    "mtp_layer_types": (),
    "num_kv_shared_layers": (0,),
    "partial_rotary_factor": (1,),
    "per_layer_config": (),
    "pruned_heads": ({},),
    "quantization": (),
    "text_config": (),
    "text_encoder": (),
    "use_mrope": (False,),
}

# Fields that change no logit, by the reason.
WITHOUT_EFFECT: dict[str, frozenset[str]] = {
    "names, versions and remote code, which is never run": frozenset(
        "_commit_hash _name_or_path auto_map name_or_path tokenizer_class transformers_version unsloth_version".split()
    ),
    "tokens that a tokenizer or a caller uses": frozenset(
        "bos_token_id decoder_start_token_id pad_token_id prefix sep_token_id unk_token_id".split()
    ),
    "training only": frozenset(
        "attention_dropout gradient_checkpointing initializer_range output_router_logits router_aux_loss_coef "
        "tf_legacy_loss use_bfloat16".split()
    ),
    "heads and sizes of other classes": frozenset(
        "cross_attention_hidden_size embed_dim finetuning_task id2label is_decoder label2id num_heads num_labels "
        "problem_type task_specific_params tie_encoder_decoder".split()
    ),
    "how the same numbers are computed or returned": frozenset(
        "_attn_implementation _attn_implementation_autoset _experts_implementation attn_implementation "
        "chunk_size_feed_forward experts_implementation output_attentions output_hidden_states pretraining_tp "
        "return_dict torchscript use_cache".split()
    ),
    "how generate chooses tokens: the engine's is greedy": frozenset(
        "assistant_confidence_threshold assistant_lookbehind bad_words_ids begin_suppress_tokens diversity_penalty "
        "do_sample early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff eta_cutoff "
        "exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty max_length min_length "
        "no_repeat_ngram_size num_assistant_tokens num_assistant_tokens_schedule num_beam_groups num_beams "
        "num_return_sequences output_scores remove_invalid_values repetition_penalty return_dict_in_generate "
        "suppress_tokens target_lookbehind temperature top_k top_p typical_p".split()
    ),
    "read from the configs of vision models only": frozenset(
        "vision_aspect_ratio vision_feature_layer vision_feature_select_strategy".split()
    ),
}
KNOWN = COMPUTED.union(HARMLESS, *WITHOUT_EFFECT.values())

# Fields of rope_scaling and rope_parameters that a formula reads.
KNOWN_ROPE = frozenset(
    "attention_factor beta_fast beta_slow factor high_freq_factor low_freq_factor mscale mscale_all_dim "
    "original_max_position_embeddings partial_rotary_factor rope_theta rope_type truncate type".split()
)

"""What every right ModelConfig and kv_bytes_per_token does, and all of the student's parts together."""

import pytest

from autograder.judge.asking import EXACT, ask_about, gives, refuses
from autograder.judge.checking import expect
from autograder.judge.figures import ABSENT, LLAMA_3_1_8B, QWEN2_5_0_5B, QWEN3_0_6B, QWEN3_30B_A3B, config

PUBLISHED = {
    "qwen3-0.6b": QWEN3_0_6B,
    "llama-3.1-8b": LLAMA_3_1_8B,
    "qwen2.5-0.5b": QWEN2_5_0_5B,
    "qwen3-30b-a3b": QWEN3_30B_A3B,
}
# What each published file comes to, worked out by hand from the file and the architecture's definition.
EXPECTED = {
    "qwen3-0.6b": {
        "num_layers": 28,
        "num_qo_heads": 16,
        "num_kv_heads": 8,
        "head_dim": 128,
        "hidden_size": 1024,
        "vocab_size": 151936,
        "intermediate_size": 3072,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attention_out_bias": False,
        "mlp_bias": False,
        "architectures": ["Qwen3ForCausalLM"],
        "num_experts": 0,
        "is_moe": False,
        "has_qk_norm": True,
    },
    "llama-3.1-8b": {
        "num_kv_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "architectures": ["LlamaForCausalLM"],
        "is_moe": False,
        "has_qk_norm": False,
    },
    "qwen2.5-0.5b": {
        "num_kv_heads": 2,
        "head_dim": 64,
        "attention_bias": True,
        "attention_out_bias": False,
        "tie_word_embeddings": True,
        "has_qk_norm": False,
    },
    "qwen3-30b-a3b": {
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "norm_topk_prob": True,
        "mlp_only_layers": [],
        "decoder_sparse_step": 1,
        "is_moe": True,
        "has_qk_norm": True,
        "tie_word_embeddings": False,
    },
}
ROTARY = {
    "qwen3-0.6b": {"head_dim": 128, "rotary_dim": 128, "max_position": 40960, "base": 1e6, "scaling": None},
    "llama-3.1-8b": {
        "head_dim": 128,
        "rotary_dim": 128,
        "max_position": 131072,
        "base": 5e5,
        "scaling": LLAMA_3_1_8B["rope_scaling"],
    },
    "qwen2.5-0.5b": {"head_dim": 64, "rotary_dim": 64, "max_position": 32768, "base": 1e6, "scaling": None},
    "qwen3-30b-a3b": {"head_dim": 128, "rotary_dim": 128, "max_position": 40960, "base": 1e6, "scaling": None},
}


def in_common(answer, expected):
    """Keep of an answer what is expected of it (a student may have added fields)."""
    return {name: answer.get(name) for name in expected}


def sparse_layers(answer):
    return [layer for layer, sparse in enumerate(answer["is_sparse_layer"]) if sparse]


@pytest.mark.part("config.model_config", weight=3)
@pytest.mark.parametrize("name", PUBLISHED)
def test_from_hf_describes_a_published_model(subject, name):
    """Every field of ModelConfig, from the file as the engine reads it."""
    answer = ask_about(subject, "config.model_config", PUBLISHED[name], bare=False)
    expect(
        in_common(answer, EXPECTED[name]),
        EXPECTED[name],
        tolerance=EXACT,
        hint="each field from its function, each property from what the architecture implies",
    )
    expect(answer.get("rotary_config"), ROTARY[name], tolerance=EXACT, hint="rotary_config_of gives this one")


@pytest.mark.part("config.model_config")
def test_from_hf_reads_a_config_of_transformers_4(subject):
    """The old layout, with no field that transformers 5 adds, gives the same description."""
    answer = ask_about(subject, "config.model_config", QWEN3_0_6B)
    expected = EXPECTED["qwen3-0.6b"]
    expect(in_common(answer, expected), expected, tolerance=EXACT, hint="don't rely on fields that transformers 5 adds")


@pytest.mark.part("config.model_config")
def test_absent_optional_fields_have_their_defaults(subject):
    """A file without hidden_act is fine, and one without tie_word_embeddings means untied."""
    fields = config(LLAMA_3_1_8B, hidden_act=ABSENT, tie_word_embeddings=ABSENT)
    answer = ask_about(subject, "config.model_config", fields)
    expected = {"tie_word_embeddings": False}
    expect(in_common(answer, expected), expected, tolerance=EXACT, hint="silu and False are what their absence means")


@pytest.mark.part("config.model_config", weight=2)
@pytest.mark.parametrize(
    ("step", "dense", "expected"),
    [(1, [], [0, 1, 2, 3, 4, 5]), (2, [], [1, 3, 5]), (3, [], [2, 5]), (1, [0, 4], [1, 2, 3, 5])],
    ids=["step-1", "step-2", "step-3", "two-dense-layers"],
)
def test_the_sparse_layers_are_those_on_the_step(subject, step, dense, expected):
    """Every step-th layer, counted from one, but for mlp_only_layers."""
    fields = config(QWEN3_30B_A3B, num_hidden_layers=6, decoder_sparse_step=step, mlp_only_layers=dense)
    answer = ask_about(subject, "config.model_config", fields)
    expect(sparse_layers(answer), expected, tolerance=EXACT, hint="(layer_id + 1) has to divide by the step")


@pytest.mark.part("config.model_config")
def test_a_dense_model_has_no_sparse_layer(subject):
    """is_sparse_layer asks is_moe first."""
    answer = ask_about(subject, "config.model_config", QWEN3_0_6B)
    expect(sparse_layers(answer), [], tolerance=EXACT, hint="a dense model has no experts, whatever its step says")


@pytest.mark.part("config.model_config")
def test_the_description_is_frozen(subject):
    """Setting a field of a ModelConfig raises."""
    frozen = ask_about(subject, "config.is_frozen", QWEN3_0_6B)
    expect(frozen, True, tolerance=EXACT, hint="keep @dataclass(frozen=True) above the class")


@pytest.mark.part("config.model_config", weight=2)
def test_from_hf_refuses_what_its_pieces_refuse(subject):
    """Each helper's refusal reaches the caller, and so does a bad rms_norm_eps."""
    bad = {
        "hidden_act": {"hidden_act": "gelu"},
        "quantization_config": {"quantization_config": {"quant_method": "fp8"}},
        "Eagle3": {"architectures": ["LlamaForCausalLMEagle3"]},
        "num_key_value_heads": {"num_key_value_heads": 5},
        "rms_norm_eps": {"rms_norm_eps": None},
    }
    for named, changes in bad.items():
        refuses(
            subject,
            "config.model_config",
            config(LLAMA_3_1_8B, **changes),
            names=[named],
            hint="from_hf has to ask about this: call the function that refuses it",
        )


@pytest.mark.part("config.kv_bytes", weight=2)
@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("qwen3-0.6b", "bfloat16", 114_688),
        ("qwen3-0.6b", "float32", 229_376),
        ("llama-3.1-8b", "float16", 131_072),
        ("qwen2.5-0.5b", "bfloat16", 12_288),
        ("qwen3-30b-a3b", "bfloat16", 98_304),
    ],
)
def test_kv_bytes_of_published_models(subject, name, dtype, expected):
    """Two vectors for each layer and kv head, head_dim numbers each."""
    gives(
        subject,
        "config.kv_bytes",
        PUBLISHED[name],
        expected,
        hint="2 (key and value) x layers x kv heads x head_dim x bytes of one number; query heads store nothing",
        dtype=dtype,
    )


@pytest.mark.part("config.together", weight=2, gist=True)
@pytest.mark.parametrize("name", PUBLISHED)
def test_your_whole_file_describes_a_published_model(subject, name):
    """All of your parts in one file, on a published config."""
    answer = ask_about(subject, "config.model_config", PUBLISHED[name], bare=False)
    expected = {**EXPECTED[name], "rotary_config": ROTARY[name]}
    expect(in_common(answer, expected), expected, tolerance=EXACT, hint="the check of this field's part tells more")


@pytest.mark.part("config.together")
def test_your_whole_file_refuses_an_unusable_config(subject):
    """A window that is on, read by all of your parts together."""
    fields = config(QWEN2_5_0_5B, sliding_window=4096, use_sliding_window=True)
    refuses(
        subject, "config.model_config", fields, names=["sliding_window"], hint="from_hf has to call refuse_uncomputed"
    )

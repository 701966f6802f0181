"""Names and numbers that nobody can have learnt by heart, for the parts whose other checks ask about published configs."""

from __future__ import annotations

import random
from string import ascii_lowercase
from typing import Any

import pytest

from autograder.judge.asking import EXACT, accepts, ask_about, gives, refuses
from autograder.judge.checking import cases, expect
from autograder.judge.figures import ABSENT, LLAMA_3_1_8B, QWEN3_0_6B, QWEN3_30B_A3B, config

KNOWN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM")


def word(source: random.Random) -> str:
    return "".join(source.choices(ascii_lowercase, k=8))


def draw_architecture(source: random.Random) -> dict[str, Any]:
    return {"unknown": f"{word(source).title()}ForCausalLM", "model_type": word(source)}


ARCHITECTURES = [{"id": "small", "unknown": "AuroraForCausalLM", "model_type": "aurora"}]


@pytest.mark.part("config.architecture")
@pytest.mark.parametrize("case", cases("architecture", visible=ARCHITECTURES, draw=draw_architecture))
def test_any_other_architecture_is_refused_by_its_name(subject, case):
    """A name that no list of bad names can hold, beside a known one."""
    hint = "compare with the known ones; a list of unknown names is never complete"
    for known in KNOWN:
        fields = {"architectures": [known], "model_type": case["model_type"]}
        gives(subject, "config.architecture", fields, known, hint=hint)
    fields = {"architectures": [case["unknown"]], "model_type": "llama"}
    refuses(subject, "config.architecture", fields, names=[case["unknown"]], hint=hint)


def draw_scaling(source: random.Random) -> dict[str, Any]:
    return {
        kind: {
            "factor": float(source.randint(2, 90)),
            "base": float(source.randint(2, 9_000_000)),
            "max_position": source.randint(100, 200_000),
            "head_dim": 2 * source.randint(4, 150),
        }
        for kind in ("linear", "dynamic")
    }


SCALINGS = [
    {
        "id": "small",
        "linear": {"factor": 3.0, "base": 777.0, "max_position": 99, "head_dim": 6},
        "dynamic": {"factor": 5.0, "base": 888.0, "max_position": 77, "head_dim": 8},
    }
]


@pytest.mark.part("config.rope", gist=True)
@pytest.mark.parametrize("case", cases("rope", visible=SCALINGS, draw=draw_scaling))
def test_any_numbers_of_a_scaled_rope_are_passed_on(subject, case):
    """Base, factor, longest position and head size of a model that nobody published."""
    for kind in ("linear", "dynamic"):
        drawn = case[kind]
        scaling = {"rope_type": kind, "factor": drawn["factor"]}
        numbers = {"max_position_embeddings": drawn["max_position"], "head_dim": drawn["head_dim"]}
        fields = config(LLAMA_3_1_8B, rope_theta=drawn["base"], rope_scaling=scaling, **numbers)
        expected = {
            "head_dim": drawn["head_dim"],
            "rotary_dim": drawn["head_dim"],
            "max_position": drawn["max_position"],
        }
        expected |= {"base": drawn["base"], "scaling": scaling}
        gives(subject, "config.rope", fields, expected, hint="each number comes from the config")


def draw_experts(source: random.Random) -> dict[str, Any]:
    num_experts = source.randint(2, 300)
    return {
        "experts": {
            "num_experts": num_experts,
            "num_experts_per_tok": source.randint(1, num_experts),
            "moe_intermediate_size": source.randint(1, 5000),
            "decoder_sparse_step": source.randint(1, 4),
            "norm_topk_prob": source.random() < 0.5,
            "mlp_only_layers": sorted(source.sample(range(40), source.randint(0, 4))),
        }
    }


EXPERTS = [
    {
        "id": "small",
        "experts": {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 7,
            "decoder_sparse_step": 3,
            "norm_topk_prob": False,
            "mlp_only_layers": [1],
        },
    }
]


@pytest.mark.part("config.moe", gist=True)
@pytest.mark.parametrize("case", cases("moe", visible=EXPERTS, draw=draw_experts))
def test_any_expert_counts_are_read_as_they_are(subject, case):
    """Six fields of a sparse model that nobody published."""
    fields = config(QWEN3_30B_A3B, **case["experts"])
    gives(subject, "config.moe", fields, case["experts"], hint="read each from the file", architecture=KNOWN[3])


def draw_uncomputed(source: random.Random) -> dict[str, Any]:
    return {"activation": word(source), "layer": f"{word(source)}_attention", "window": source.randint(2, 9999)}


UNCOMPUTED = [{"id": "small", "activation": "mishmash", "layer": "sideways_attention", "window": 77}]


@pytest.mark.part("config.refusals", gist=True)
@pytest.mark.parametrize("case", cases("refusals", visible=UNCOMPUTED, draw=draw_uncomputed))
def test_anything_else_that_is_switched_on_is_refused(subject, case):
    """An activation, a kind of layer, a window or a quantization that is on no list; without it the config passes."""
    hint = "name what is computed and refuse the rest: a list of what isn't computed is never complete"
    accepts(subject, "config.refusals", config(QWEN3_0_6B), hint=hint)
    activation, layer = case["activation"], case["layer"]
    for changes, names in (
        ({"hidden_act": activation}, ["hidden_act", activation]),
        ({"layer_types": ["full_attention", layer]}, [layer]),
        ({"sliding_window": case["window"], "use_sliding_window": True}, ["sliding_window"]),
        ({"quantization_config": {"quant_method": activation}}, ["quantization_config"]),
    ):
        refuses(subject, "config.refusals", config(QWEN3_0_6B, **changes), names=names, hint=hint)


def draw_model(source: random.Random) -> dict[str, Any]:
    kv_heads = source.randint(1, 6)
    return {
        "fields": {
            "num_hidden_layers": source.randint(1, 60),
            "num_attention_heads": kv_heads * source.randint(1, 5),
            "num_key_value_heads": kv_heads,
            "head_dim": 2 * source.randint(4, 90),
            "hidden_size": 8 * source.randint(4, 900),
            "intermediate_size": source.randint(10, 9000),
            "vocab_size": source.randint(50, 150_000),
            "rms_norm_eps": source.choice([1e-4, 3e-5, 2e-6, 1e-7]),
            "tie_word_embeddings": source.random() < 0.5,
        }
    }


MODELS = [
    {
        "id": "small",
        "fields": {
            "num_hidden_layers": 2,
            "num_attention_heads": 6,
            "num_key_value_heads": 3,
            "head_dim": 10,
            "hidden_size": 48,
            "intermediate_size": 70,
            "vocab_size": 99,
            "rms_norm_eps": 1e-4,
            "tie_word_embeddings": False,
        },
    }
]
OUR_NAMES = {
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_qo_heads",
    "num_key_value_heads": "num_kv_heads",
}


@pytest.mark.part("config.model_config", gist=True)
@pytest.mark.parametrize("case", cases("model_config", visible=MODELS, draw=draw_model))
def test_any_model_is_described_by_its_own_numbers(subject, case):
    """Nine fields of a model that nobody published."""
    hint = "every field comes from the config, under this engine's name"
    answer = ask_about(
        subject, "config.model_config", config(QWEN3_0_6B, layer_types=ABSENT, **case["fields"]), hint=hint
    )
    expected = {OUR_NAMES.get(name, name): value for name, value in case["fields"].items()}
    expect({name: answer.get(name) for name in expected}, expected, hint=hint, tolerance=EXACT)

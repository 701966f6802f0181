"""Configs whose numbers nobody has seen before: on an instructor's machine more of them are drawn from the seed there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from autograder.judge.asking import gives
from autograder.judge.checking import cases
from autograder.judge.figures import ABSENT, QWEN3_0_6B, config

SMALL = {
    "num_layers": 3,
    "num_qo_heads": 6,
    "num_kv_heads": 2,
    "hidden_size": 48,
    "intermediate_size": 80,
    "vocab_size": 99,
}
HF_NAMES = {"num_layers": "num_hidden_layers", "num_qo_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads"}


def draw_sizes(source: random.Random) -> dict[str, Any]:
    kv_heads, group = source.choice([1, 2, 3, 5]), source.choice([1, 2, 4, 7])
    heads = kv_heads * group
    return {
        "sizes": {
            "num_layers": source.randint(1, 40),
            "num_qo_heads": heads,
            "num_kv_heads": kv_heads,
            "hidden_size": heads * 2 * source.randint(3, 40),
            "intermediate_size": source.randint(10, 9000),
            "vocab_size": source.randint(50, 150000),
        }
    }


def fields_of(sizes: dict[str, int], **changes: Any) -> dict[str, Any]:
    return config(QWEN3_0_6B, **{HF_NAMES.get(name, name): value for name, value in sizes.items()}, **changes)


@pytest.mark.part("config.sizes", gist=True)
@pytest.mark.parametrize("case", cases("sizes", visible=[{"id": "small", "sizes": SMALL}], draw=draw_sizes))
def test_any_sizes_are_read_as_they_are(subject, case):
    """Six sizes of a model that nobody published."""
    gives(subject, "config.sizes", fields_of(case["sizes"]), case["sizes"], hint="each size comes from its own field")


@pytest.mark.part("config.head_dim", gist=True)
@pytest.mark.parametrize("case", cases("head_dim", visible=[{"id": "small", "sizes": SMALL}], draw=draw_sizes))
def test_any_head_dim_is_found(subject, case):
    """Given it wins; absent it is hidden over heads, for any sizes."""
    sizes = case["sizes"]
    quotient = sizes["hidden_size"] // sizes["num_qo_heads"]
    hint = "an explicit head_dim wins; without one divide"
    given = 2 * (1 + sizes["vocab_size"] % 97)  # tells nothing of the quotient, for who remembers it
    given += 2 * (given == quotient)
    gives(subject, "config.head_dim", fields_of(sizes, head_dim=given), given, hint=hint)
    gives(subject, "config.head_dim", fields_of(sizes, head_dim=ABSENT), quotient, hint=hint)


def draw_rope(source: random.Random) -> dict[str, Any]:
    return {
        home: {"base": float(source.randint(2, 9_000_000)), "factor": float(source.randint(2, 64))}
        for home in ("new", "old")
    }


ROPES = [{"id": "small", "new": {"base": 12345.0, "factor": 3.0}, "old": {"base": 777.0, "factor": 5.0}}]


@pytest.mark.part("config.rope_parameters", gist=True)
@pytest.mark.parametrize("case", cases("rope_parameters", visible=ROPES, draw=draw_rope))
def test_any_base_and_factor_are_found_in_either_home(subject, case):
    """A linear RoPE with a base that nobody uses, written the old or the new way."""
    hint = "both homes must be looked at, and nothing made up"
    for home in ("new", "old"):
        base, inner = case[home]["base"], {"rope_type": "linear", "factor": case[home]["factor"]}
        expected = {**inner, "rope_theta": base}
        fields = {"rope_parameters": expected} if home == "new" else {"rope_theta": base, "rope_scaling": inner}
        gives(subject, "config.rope_parameters", fields, expected, hint=hint)


@pytest.mark.part("config.kv_bytes", gist=True)
@pytest.mark.parametrize("case", cases("kv_bytes", visible=[{"id": "small", "sizes": SMALL}], draw=draw_sizes))
def test_kv_bytes_of_any_sizes(subject, case):
    """Two tensors a layer, kv heads times head_dim numbers each, of the dtype's size."""
    sizes = case["sizes"]
    fields = fields_of(sizes, head_dim=ABSENT)
    fields["max_position_embeddings"] = 4096
    head_dim = sizes["hidden_size"] // sizes["num_qo_heads"]
    expected = 2 * sizes["num_layers"] * sizes["num_kv_heads"] * head_dim * 2
    answer = subject.ask("config.kv_bytes", {"config": fields, "dtype": "bfloat16", "bare": True})
    assert answer == expected, "count key and value, every layer, the kv heads only, and the dtype's bytes"

"""Refuse a config.json whose values can't be a model's, before anything computes with them.

What follows may then trust the types of names, lists and switches, and that loops over layers, heads and experts end soon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minisgl.checkpoint._fault import fault, quoted
from minisgl.errors import ConfigError

# Far above any model's, and small enough that a meta model of this size is built in seconds.
_LARGEST = {
    "num_hidden_layers": 2**12,
    "num_attention_heads": 2**14,
    "num_key_value_heads": 2**14,
    "num_experts": 2**14,
    "num_experts_per_tok": 2**14,
    "head_dim": 2**20,
    "hidden_size": 2**24,
    "intermediate_size": 2**24,
    "moe_intermediate_size": 2**24,
    "vocab_size": 2**28,
}
_MOST_EXPERTS = 2**17
# Beyond it a float no longer holds every whole number.
_LARGEST_NUMBER = 2**53
_CORRECT = "correct these fields in config.json"
_SWITCHES = ("attention_bias", "mlp_bias", "norm_topk_prob", "tie_word_embeddings", "use_sliding_window")


# RoPE fields -> whether they must be above 0, where they are given; transformers takes 0 for the others as absent.
_ROPE_NUMBERS = {
    "attention_factor": True,
    "beta_fast": True,
    "beta_slow": True,
    "mscale": False,
    "mscale_all_dim": False,
    "original_max_position_embeddings": True,
}


def check_names(raw: dict[str, Any], file: Path) -> None:
    """Refuse an ``architectures`` that isn't a list of names, or a ``model_type`` that isn't a name.

    Raises:
        ConfigError: As said.
    """
    architectures, model_type = raw.get("architectures"), raw.get("model_type")
    if architectures is not None and not _is_list_of(architectures, str):
        raise fault(file, f"architectures {quoted(architectures)}", "a list of class names", _CORRECT, ConfigError)
    if model_type is not None and not isinstance(model_type, str):
        raise fault(file, f"model_type {quoted(model_type)}", "a name", _CORRECT, ConfigError)


def check_values(raw: dict[str, Any], file: Path) -> None:
    """Refuse values of a known architecture's config that have the wrong type or can't be real.

    Raises:
        ConfigError: All such fields, by name.
    """
    problems = [
        *_wrong_numbers(raw),
        *_too_large(raw),
        *(f"{name} {quoted(raw[name])} isn't true or false" for name in _SWITCHES if not _is_switch(raw.get(name))),
        *_wrong_lists(raw),
        *(
            f"{name} {quoted(raw[name])} isn't a whole number from 0"
            for name in ("max_window_layers", "sliding_window")
            if raw.get(name) is not None and not (type(raw[name]) is int and raw[name] >= 0)
        ),
    ]
    quantization = raw.get("quantization_config")
    if quantization is not None and not isinstance(quantization, dict):
        problems.append(f"quantization_config {quoted(quantization)} isn't an object")
    if problems:
        raise fault(file, "; ".join(problems[:10]), "values that a model can have", _CORRECT, ConfigError)


def check_rope(raw: dict[str, Any], file: Path) -> None:
    """Refuse RoPE fields that contradict each other or that no formula can compute with.

    transformers 5 would take one of two values, and pass over an empty string or a 0, without a word.

    Raises:
        ConfigError: As said, by field.
    """
    homes = {name: raw[name] for name in ("rope_parameters", "rope_scaling") if raw.get(name) is not None}
    for name, value in homes.items():
        if not isinstance(value, dict):
            expected = "an object with a rope_type, or null"
            raise fault(file, f"{name} is {quoted(value)}", expected, f"correct {name}", ConfigError)
    top_names = ("rope_theta", "original_max_position_embeddings", "partial_rotary_factor")
    homes["the top level"] = {name: raw.get(name) for name in top_names}
    _refuse_contradictions(homes, file)
    problems = [problem for home, fields in homes.items() for problem in _wrong_rope(home, fields, raw)]
    if problems:
        raise fault(file, "; ".join(problems), "RoPE fields that can be computed with", _CORRECT, ConfigError)


def _refuse_contradictions(homes: dict[str, dict[str, Any]], file: Path) -> None:
    seen: dict[str, tuple[str, Any]] = {}
    for home, fields in homes.items():
        for name, value in fields.items():
            if value is None:
                continue
            first_home, first_value = seen.setdefault("rope_type" if name == "type" else name, (home, value))
            if first_value != value:
                found = f"{name} is {quoted(first_value)} in {first_home} and {quoted(value)} in {home}"
                raise fault(file, found, "one value", "remove the wrong one", ConfigError)


def _wrong_rope(home: str, fields: dict[str, Any], raw: dict[str, Any]) -> Iterator[str]:
    prefix = "" if home == "the top level" else f"{home}."
    for name, value in fields.items():
        if isinstance(value, dict):
            yield f"{prefix}{name} is an object: RoPE that differs by layer isn't computed here"
        elif name in ("rope_type", "type") and value is not None and not isinstance(value, str):
            yield f"{prefix}{name} {quoted(value)} isn't a name"
        elif name == "truncate" and not _is_switch(value):
            yield f"{prefix}{name} {quoted(value)} isn't true or false"
        elif name in _ROPE_NUMBERS and value is not None and not _is_number(value, above_zero=_ROPE_NUMBERS[name]):
            yield f"{prefix}{name} {quoted(value)} isn't a {'positive number' if _ROPE_NUMBERS[name] else 'number from 0'}"
    rope_type, base = fields.get("rope_type") or fields.get("type"), fields.get("rope_theta", raw.get("rope_theta"))
    if rope_type == "yarn" and isinstance(base, int | float) and base <= 1:
        yield f"rope_theta is {base}, but yarn takes its logarithm as a divisor and needs more than 1"
    low, high = fields.get("low_freq_factor"), fields.get("high_freq_factor")
    if rope_type == "llama3" and isinstance(low, int | float) and isinstance(high, int | float) and low >= high:
        yield f"{prefix}low_freq_factor {low} isn't below high_freq_factor {high}"


def _wrong_numbers(raw: dict[str, Any]) -> Iterator[str]:
    """Find numbers that aren't finite or too large to compute with, at any depth (and however deep)."""
    places: list[tuple[str, Any]] = [("", raw)]
    while places:
        place, value = places.pop()
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            places += [(f"{place}.{key}" if place else str(key), inner) for key, inner in items]
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{_path(place)} {value} isn't finite"
        elif isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
            yield f"{_path(place)} is beyond {_LARGEST_NUMBER}"


def _too_large(raw: dict[str, Any]) -> Iterator[str]:
    for name, largest in _LARGEST.items():
        value = raw.get(name)
        if isinstance(value, int) and largest < value <= _LARGEST_NUMBER:
            yield f"{name} {value} is more than {largest}"
    layers, experts = raw.get("num_hidden_layers"), raw.get("num_experts")
    if isinstance(layers, int) and isinstance(experts, int) and layers * experts > _MOST_EXPERTS:
        yield f"num_hidden_layers x num_experts is more than {_MOST_EXPERTS}"


def _wrong_lists(raw: dict[str, Any]) -> Iterator[str]:
    for name, kind, words in (("mlp_only_layers", int, "layer numbers"), ("layer_types", str, "names")):
        if raw.get(name) is not None and not _is_list_of(raw[name], kind):
            yield f"{name} {quoted(raw[name])} isn't a list of {words}"


def _is_switch(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) and not isinstance(item, bool) for item in value)


def _is_number(value: Any, above_zero: bool) -> bool:
    return type(value) in (int, float) and (value > 0 or (value == 0 and not above_zero))


def _path(place: str) -> str:
    """Show where a value stands, without the quotes."""
    return quoted(place)[1:-1]

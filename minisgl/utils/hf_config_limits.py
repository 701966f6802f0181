"""Refuse a config.json whose values can't be a model's, before anything computes with them.

What follows may then trust the types of names, lists and switches, and that loops over layers, heads and experts end soon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
_SWITCHES = ("attention_bias", "mlp_bias", "norm_topk_prob", "tie_word_embeddings", "use_sliding_window")


def check_names(raw: dict[str, Any], file: Path) -> None:
    """Refuse an ``architectures`` that isn't a list of names, or a ``model_type`` that isn't a name.

    Raises:
        ConfigError: As said.
    """
    architectures, model_type = raw.get("architectures"), raw.get("model_type")
    if architectures is not None and not _is_list_of(architectures, str):
        raise ConfigError(
            f"{file} has architectures {_shown(architectures)}; expected a list of class names. Correct it."
        )
    if model_type is not None and not isinstance(model_type, str):
        raise ConfigError(f"{file} has model_type {_shown(model_type)}; expected a name. Correct it.")


def check_values(raw: dict[str, Any], file: Path) -> None:
    """Refuse values of a known architecture's config that have the wrong type or can't be real.

    Raises:
        ConfigError: All such fields, by name.
    """
    problems = [
        *_wrong_numbers(raw),
        *_too_large(raw),
        *(f"{name} {_shown(raw[name])} isn't true or false" for name in _SWITCHES if not _is_switch(raw.get(name))),
        *_wrong_lists(raw),
        *_wrong_rope_types(raw),
    ]
    if problems:
        raise ConfigError(
            f"{file}: {'; '.join(problems[:10])}. Expected values that a model can have. Correct these fields."
        )


def _wrong_numbers(raw: dict[str, Any]) -> Iterator[str]:
    """Find numbers that aren't finite or too large to compute with, at any depth (and however deep)."""
    places: list[tuple[str, Any]] = [("", raw)]
    while places:
        place, value = places.pop()
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            places += [(f"{place}.{key}" if place else str(key), inner) for key, inner in items]
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{_shown(place, quote=False)} {value} isn't finite"
        elif isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
            yield f"{_shown(place, quote=False)} is beyond {_LARGEST_NUMBER}"


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
            yield f"{name} {_shown(raw[name])} isn't a list of {words}"


def _wrong_rope_types(raw: dict[str, Any]) -> Iterator[str]:
    for home in ("rope_scaling", "rope_parameters"):
        fields = raw.get(home)
        if not isinstance(fields, dict):
            continue
        for name in ("rope_type", "type"):
            if fields.get(name) is not None and not isinstance(fields[name], str):
                yield f"{home}.{name} {_shown(fields[name])} isn't a name"


def _is_switch(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) and not isinstance(item, bool) for item in value)


def _shown(value: Any, quote: bool = True) -> str:
    """Quote a value for a message, cut to a readable length."""
    try:
        text = ascii(value) if quote else ascii(value)[1:-1]
    except RecursionError:
        return "nested too deeply"
    return text if len(text) <= 100 else f"{text[:90]}..."

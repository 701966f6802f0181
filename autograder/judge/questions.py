"""Say in few words what a question asked, so that a message can begin with the input."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.judge import figures
from autograder.judge.compare import show
from autograder.judge.oracles import small

MAX_CHANGES = 8
MAX_CHARS = 500
_SIZES = ("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "num_experts")


def in_words(probe: str, args: Mapping[str, Any]) -> str:
    """Return what was asked: the function, the config by what is special about it, and the other arguments.

    Paths and how the config was wrapped are left out: they say nothing about the mistake.
    """
    given = {name: value for name, value in args.items() if name != "bare" and not _is_path(value)}
    told = [_config_words(given.pop("config"))] if isinstance(given.get("config"), Mapping) else []
    told += [f"{name} {show(value, 120)}" for name, value in given.items()]
    text = f"{probe}: {'; '.join(told)}" if told else probe
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + "…"


def _is_path(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and value.startswith("/"))


def _config_words(config: Mapping[str, Any]) -> str:
    best = min(_bases(), key=lambda base: len(_changes(config, _bases()[base])))
    changes = _changes(config, _bases()[best])
    if len(changes) > MAX_CHANGES:
        return f"config {show(dict(config), MAX_CHARS)}"
    return f"{best} with {', '.join(changes)}" if changes else best


def _changes(config: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    """List the fields that differ, in the config's order, then those that are absent."""
    changed = [
        f"{name} {show(value, 120)}" for name, value in config.items() if name not in base or base[name] != value
    ]
    return changed + [f"no {name}" for name in base if name not in config]


@functools.cache
def _bases() -> dict[str, dict[str, Any]]:
    """Return the configs that the checks begin with, by what they are called."""
    published = {
        "Qwen3-0.6B's config": figures.QWEN3_0_6B,
        "Llama-3.1-8B's config": figures.LLAMA_3_1_8B,
        "Qwen2.5-0.5B's config": figures.QWEN2_5_0_5B,
        "Qwen3-30B-A3B's config": figures.QWEN3_30B_A3B,
    }
    tiny = {family: small(family) for family in ("llama", "qwen2", "qwen3", "qwen3_moe")}
    sizes = {
        family: ", ".join(f"{name} {base[name]}" for name in _SIZES if name in base) for family, base in tiny.items()
    }
    return published | {f"a small {family} config ({sizes[family]})": base for family, base in tiny.items()}

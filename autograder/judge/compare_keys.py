"""The difference between two tables of tensors as a list of lines, each with its likely cause.

What is missing or extra is told apart by its *branch*: the first word of a key's path where the other table has nothing.
A missing ``model.layers.1.mlp.gate.weight`` has the branch ``model.layers`` where there are no layers at all, and
``model.layers.1.mlp.gate`` where only that one is missing: the cause belongs to the branch, not to the key's other words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

MAX_ALIKE = 3
_ALIKE = 0.6


def key_differences(
    actual: Mapping[str, Any], expected: Mapping[str, Any], causes: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Count and list what is missing, what is extra and what has another shape or dtype.

    Many keys of one branch share a line.

    Args:
        actual: what came: name -> something with a shape and a dtype.
        expected: what was expected.
        causes: where it applies -> the likely cause, the more special ones first. It applies to a branch that ends with
            these words, layer numbers, ``weight`` and ``bias`` aside; ``missing lm_head`` only to what is missing, and
            so ``extra`` and ``differs``.
    """
    extra = sorted(actual.keys() - expected.keys())
    missing = sorted(expected.keys() - actual.keys())
    facts = {name: _facts(actual[name]) for name in extra}
    notes = {key: _meant(key, facts, _facts(expected[key])) for key in missing}
    lines = _branches("missing", missing, actual, causes, notes) + _branches("extra", extra, expected, causes, {})
    count = len(missing) + len(extra)
    for key in sorted(expected.keys() & actual.keys()):
        mine, theirs = _facts(actual[key]), _facts(expected[key])
        if mine != theirs:
            count += 1
            lines.append(f"differs  {key}: {_words(mine)}, expected {_words(theirs)}{_cause('differs', key, causes)}")
    return count, lines


def _branches(
    kind: str, keys: list[str], others: Mapping[str, Any], causes: Mapping[str, str], meant: Mapping[str, str]
) -> list[str]:
    lines = []
    by_branch: dict[str, list[str]] = {}
    for key in keys:
        by_branch.setdefault(_branch(key, others), []).append(key)
    for branch, alike in by_branch.items():
        cause = _cause(kind, branch, causes)
        if len(alike) > MAX_ALIKE:
            example = f"such as {alike[0]}"
            example += f"; did you mean it by {meant[alike[0]]}?" if meant.get(alike[0]) else ""
            lines.append(f"{kind:<8} {branch}.… ({len(alike)} keys, {example}){cause}")
            continue
        for key in alike:
            note = f" (did you mean it by {meant[key]}?)" if meant.get(key) else ""
            lines.append(f"{kind:<8} {key}{note}{cause}")
    return lines


def _facts(item: Any) -> tuple[tuple[int, ...], Any]:
    return tuple(getattr(item, "shape", ())), getattr(item, "dtype", None)


def _words(facts: tuple[tuple[int, ...], Any]) -> str:
    return f"{list(facts[0])} {str(facts[1]).removeprefix('torch.')}"


def _branch(key: str, others: Iterable[str]) -> str:
    """Return the shortest beginning of a key's path below which the other table has nothing."""
    words = key.split(".")
    beginnings = (".".join(words[:number]) for number in range(1, len(words)))
    known = [*others]
    return next((text for text in beginnings if not any(f"{other}.".startswith(f"{text}.") for other in known)), key)


def _cause(kind: str, branch: str, causes: Mapping[str, str]) -> str:
    words = branch.split(".")
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    forms = [".".join(words), ".".join(words[:-1] if words[-1] in ("weight", "bias") else words)]
    for place, cause in causes.items():
        only, _, ending = place.rpartition(" ")
        if only in ("", kind) and any(f".{form}".endswith(f".{ending}") for form in forms):
            return f"  ← {cause}"
    return ""


def _meant(key: str, extra: Mapping[str, tuple[Any, ...]], facts: tuple[Any, ...]) -> str:
    """Return the extra key that is this one under a wrong name: of the same shape, and one word or a prefix off."""
    found = [(_likeness(key, other), other) for other, theirs in extra.items() if theirs == facts]
    best = max(found, default=(0.0, ""))
    return best[1] if best[0] >= _ALIKE else ""


def _likeness(key: str, other: str) -> float:
    if key.endswith(f".{other}") or other.endswith(f".{key}"):
        return 1.0
    pairs = [*zip(key.split("."), other.split("."), strict=False)]
    different = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
    if key.count(".") != other.count(".") or len(different) != 1 or any(word.isdigit() for word in different[0]):
        return 0.0
    return difflib.SequenceMatcher(None, *different[0]).ratio()

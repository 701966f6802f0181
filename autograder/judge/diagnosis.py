"""Recognize known wrong solutions by their answers.

``autograder/authoring/misconceptions/*.toml`` (instructors only) lists wrong solutions: each one small edit of the reference's
text, with the concept that it gets wrong. ``fingerprints.json`` holds, for each, the digests of its answers to the
visible checks. It holds no code, so a student kit has it too.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

FINGERPRINTS = Path(__file__).resolve().parent / "fingerprints.json"


@functools.cache
def _fingerprints() -> dict[str, list[dict[str, Any]]]:
    if not FINGERPRINTS.is_file():
        return {}
    return dict(json.loads(FINGERPRINTS.read_text(encoding="utf-8")))


def name_trap(part_id: str, digests: dict[str, list[str]]) -> str:
    """Return the concept behind a known wrong solution that gives just these answers; empty where none does.

    Where several give them, which of them it was can't be told, and all of their concepts are named.

    Args:
        part_id: the part.
        digests: test id -> digests of the answers, of the tests that ran. Hidden cases have no fingerprint.
    """
    concepts = []
    for known in _fingerprints().get(part_id, []):
        expected = known["digests"]
        shared = [name for name in expected if name in digests]
        if shared and len(shared) == len(expected) and all(digests[name] == expected[name] for name in shared):
            concepts.append(str(known["concept"]))
    return "; or: ".join(dict.fromkeys(concepts))

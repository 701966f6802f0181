"""The library of known wrong solutions, and the fingerprints of their answers (``python -m autograder fingerprints``).

Instructors only: the library edits the reference's text. A student kit has the fingerprints, which hold no code.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from itertools import zip_longest
from pathlib import Path
from typing import Any

from autograder.judge.diagnosis import FINGERPRINTS
from autograder.parts import BY_ID, PARTS
from autograder.text import reference

LIBRARY = Path(__file__).resolve().parent / "misconceptions"


def entries(kind: str = "wrong") -> list[dict[str, Any]]:
    """Return all entries of the library, ``wrong`` or ``right``, in the order of files and lines."""
    found: list[dict[str, Any]] = []
    for path in sorted(LIBRARY.glob("*.toml")):
        found += tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    return found


def text_of(entry: dict[str, Any]) -> str:
    """Return a part's text with the entry's edit, or the entry's own code.

    Raises:
        ValueError: the reference doesn't hold the text to be replaced exactly once.
    """
    if "code" in entry:
        return str(entry["code"]).strip("\n") + "\n"
    text = reference.piece(entry["part"])
    if text.count(entry["find"]) != 1:
        raise ValueError(f"{entry['id']}: its text stands in the reference {text.count(entry['find'])} times, not once")
    return text.replace(entry["find"], entry["replace"])


def rounds(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Deal entries into rounds with at most one for each part: a round is judged in one go."""
    by_part: dict[str, list[dict[str, Any]]] = {}
    for entry in found:
        by_part.setdefault(entry["part"], []).append(entry)
    return [[entry for entry in dealt if entry] for dealt in zip_longest(*by_part.values())]


def fingerprints(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Judge every entry on the visible checks and return part id -> its entries with concept and digests.

    An entry whose answers are those of the right solution (its messages or its memory are wrong) has none: answers
    can't tell it from any other such mistake.
    """
    from autograder.judge.judge import Judge, reference_work, warm_up

    made: dict[str, list[dict[str, Any]]] = {}
    with Judge() as judge:
        warm_up()
        concerned = {entry["part"] for entry in found}
        right = judge.run(reference_work(PARTS), [part for part in PARTS if part.id in concerned])[1]
        for dealt in rounds(found):
            work = reference_work(PARTS)
            work.pieces.update({entry["part"]: text_of(entry) for entry in dealt})
            results, digests = judge.run(work, [BY_ID[entry["part"]] for entry in dealt])
            for entry, result in zip(dealt, results, strict=True):
                answers = digests[entry["part"]]
                if result.status != "passed" and answers != right[entry["part"]]:
                    facts = {"id": entry["id"], "concept": entry["concept"], "digests": answers}
                    made.setdefault(entry["part"], []).append(facts)
    return {part: sorted(made[part], key=lambda facts: str(facts["id"])) for part in sorted(made)}


def main(argv: list[str]) -> int:
    """Recompute the answers of the known wrong solutions, so that feedback can name them."""
    parser = argparse.ArgumentParser(prog="python -m autograder fingerprints", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=FINGERPRINTS)
    options = parser.parse_args(argv)
    found = fingerprints(entries())
    options.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{sum(map(len, found.values()))} wrong solutions of {len(found)} parts")
    return 0

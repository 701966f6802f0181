"""A simulated class: submissions drawn from the libraries of right and wrong solutions, and what each must be worth."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring import wrong_solutions
from autograder.parts import BY_ID, parts_of_chapter
from autograder.text import reference

RIGHT, WRONG, MISSING = "right", "wrong", "missing"
ANY = "of any kind"


@dataclass(frozen=True)
class Choice:
    """One student's version of one part.

    Attributes:
        id: which entry of the library it is.
        kind: ``right``, ``wrong`` or ``missing``.
        text: its source; empty when missing.
    """

    id: str
    kind: str
    text: str = ""


def library(chapter: str) -> dict[str, list[Choice]]:
    """Return all known versions of each part of a chapter: the reference first, then others that are right, then wrong ones."""
    parts = [part for part in parts_of_chapter(chapter) if not part.together]
    found = {part.id: [Choice("reference", RIGHT, reference.piece(part.id))] for part in parts}
    for kind in (RIGHT, WRONG):
        for entry in wrong_solutions.entries(kind):
            if entry["part"] in found:
                found[entry["part"]].append(Choice(entry["id"], kind, wrong_solutions.text_of(entry)))
    return found


def students(
    chapter: str, number: int, *, seed: int = 0, most_parts: int | None = None
) -> Iterator[tuple[str, dict[str, Choice]]]:
    """Draw students: name, and a choice for each part of the chapter.

    Two thirds of what is written is right; one student in five left something out.

    Args:
        chapter: the chapter.
        number: how many students.
        seed: the same seed gives the same class.
        most_parts: how many parts each of them wrote at most; all where it is None.
    """
    known = library(chapter)
    for index in range(number):
        source = random.Random(f"{seed}/{index}")
        written = source.sample(sorted(known), most_parts if most_parts is not None else len(known))
        if source.random() < 0.2:
            written = written[1:]
        choices = {}
        for part_id, versions in known.items():
            kind = RIGHT if source.random() < 2 / 3 else WRONG
            choice = source.choice([each for each in versions if each.kind == kind])
            choices[part_id] = choice if part_id in written else Choice("missing", MISSING)
        yield f"student-{index:04}", choices


def notebook(name: str, choices: dict[str, Choice]) -> dict[str, Any]:
    """Return a student's notebook; a comment makes each text the student's own."""
    cells: list[dict[str, Any]] = []
    for part_id, choice in choices.items():
        if choice.text:
            source = f"%%module {BY_ID[part_id].module} {BY_ID[part_id].name}\n# {name}\n{choice.text}"
            cells.append(
                {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
            )
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def write_class(folder: Path, drawn: dict[str, dict[str, Choice]]) -> None:
    """Write each student's notebook as ``NAME.ipynb``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, choices in drawn.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook(name, choices)), encoding="utf-8")


def wrong_marks(rows: Sequence[dict[str, Any]], drawn: dict[str, dict[str, Choice]]) -> list[str]:
    """Compare a report's rows with what was drawn; return what is wrong.

    Right parts have full marks, missing ones none, wrong ones less than all and the same in every submission. What is
    judged together has full marks where all is right, and less where something is missing; a wrong part need not show in it.
    """
    found = [f"{name} has no row" for name in sorted(set(drawn) - {row["student"] for row in rows})]
    worth: dict[tuple[str, str], float] = {}
    for row in rows:
        choices = drawn[row["student"]]
        kinds = {choice.kind for choice in choices.values()}
        together = RIGHT if kinds == {RIGHT} else WRONG if MISSING in kinds else ANY
        for part in row["parts"]:
            points, full = part["points"], part["max_points"]
            choice = choices.get(part["id"]) or Choice("together", together)
            what = f"{row['student']}, {part['id']} ({choice.id}): {points:g} of {full:g} points"
            fits = {RIGHT: points == full, MISSING: points == 0, WRONG: points < full, ANY: points <= full}[choice.kind]
            if not fits:
                found.append(f"{what}, but it is {choice.kind}; {part['message']}")
            if choice.id != "together" and worth.setdefault((part["id"], choice.id), points) != points:
                found.append(f"{what}, and {worth[part['id'], choice.id]:g} in another submission")
        if abs(row["points"] - sum(part["points"] for part in row["parts"])) > 0.005:
            found.append(f"{row['student']}: the points don't add up")
    return found

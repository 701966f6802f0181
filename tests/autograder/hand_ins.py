"""A class whose hand-ins have every shape that honest and odd work comes in: file by file, and what each is worth."""

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring import wrong_solutions
from autograder.parts import BY_ID, parts_of_chapter
from autograder.text.reference import piece
from autograder.text.work import read_cell

CHAPTER = "01_config"
OWN = f"{CHAPTER}/{CHAPTER}.ipynb"  # where nbgrader looks
CHEAP = ("config.head_dim", "config.moe")
FULL = sum(part.points for part in parts_of_chapter(CHAPTER))
WORTH = sum(BY_ID[name].points for name in CHEAP)
OLD = 1_700_000_000
Book = dict


@dataclass
class HandIn:
    """What one student handed in, below ``submitted/STUDENT/``, and what it must be worth; None where it only must agree."""

    files: dict[str, object]
    points: float | None = WORTH
    old: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            if name in self.old:
                os.utime(path, (OLD, OLD))


def fill(book: Book, texts: dict[str, str]) -> Book:
    """Put texts into a release notebook's part cells."""
    for cell in book["cells"]:
        found = read_cell("".join(cell["source"])) if cell["cell_type"] == "code" else None
        if found and f"config.{found[1]}" in texts:
            cell["source"] = f"%%module {found[0]} {found[1]}\n" + texts[f"config.{found[1]}"]
    return book


def without(book: Book, *grade_ids: str) -> Book:
    book["cells"] = [c for c in book["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") not in grade_ids]
    return book


def each_cell(book: Book, change: Callable[[dict], object]) -> Book:
    for cell in book["cells"]:
        change(cell)
    return book


def replaced(book: Book, old: str, *new: tuple[str, str]) -> Book:
    """Replace the cell that has a text in it by other cells, given as kind and source."""
    cells = []
    for cell in book["cells"]:
        changed = [{"cell_type": kind, "source": text, "metadata": {}} for kind, text in new]
        cells += changed if old in "".join(cell["source"]) else [cell]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return {**book, "cells": cells}


def shapes(release: Callable[[], Book]) -> dict[str, HandIn]:
    """Return the hand-ins that aren't like others, by student."""
    right = {name: piece(name) for name in CHEAP}
    head = piece("config.head_dim")

    def solved() -> Book:
        return fill(release(), right)

    def half() -> Book:
        return fill(release(), {"config.moe": right["config.moe"]})

    def instead(*cells: tuple[str, str]) -> Book:
        return replaced(solved(), "def head_dim_of", *cells)

    def dos(cell: dict) -> None:
        cell["source"] = "".join(cell["source"]).replace("    ", "\t").replace("\n", "\r\n")

    def spoil(cell: dict) -> None:
        facts = cell["metadata"].get("nbgrader", {})
        facts.update({"points": 1e9, "locked": False} if "points" in facts else {})
        if cell["cell_type"] == "code":
            result = {"output_type": "execute_result", "data": {"text/plain": "1000"}}
            cell["outputs"] = [{**result, "metadata": {}, "execution_count": 1}]
        cell["source"] = "2.0" if "".join(cell["source"]).startswith("check(") else cell["source"]

    whole = {part.id: piece(part.id) for part in parts_of_chapter(CHAPTER) if part.names}
    split = replaced(solved(), "check('config.head_dim')", ("code", "check("), ("code", "'config.head_dim')"))
    misnamed = "%%module models/config.py head_dim\n" + head.replace("head_dim_of", "head_dims_of")
    every = [f"{kind}-config-{name}" for kind in ("part", "check") for name in ("biases", "sizes")]
    other = {"cells": [{"cell_type": "code", "source": f"%%module models/utils.py\n{piece('utils.gated_mlp')}"}]}
    bare = {"cells": [{"cell_type": kind, "source": text} for kind, text in cells_of(solved())]}
    tree = "\n\n".join(right.values()).encode()
    named = f"{CHAPTER}/{CHAPTER} (1).ipynb"
    return {
        "right": HandIn({OWN: fill(release(), whole)}, FULL),
        "blank": HandIn({OWN: release()}, 0),
        "no-metadata": HandIn({OWN: each_cell(solved(), lambda cell: cell.update(metadata={}))}),
        "bare-cells": HandIn({OWN: bare}),
        "old-minor": HandIn({OWN: {**each_cell(solved(), lambda cell: cell.pop("id", None)), "nbformat_minor": 0}}),
        "deleted-check": HandIn({OWN: without(solved(), "check-config-head_dim")}),
        "deleted-both": HandIn({OWN: without(solved(), *every)}),
        "split-check": HandIn({OWN: split}),
        "forged": HandIn({OWN: each_cell(solved(), spoil)}),
        "renamed": HandIn({named: solved()}),
        "bom": HandIn({OWN: b"\xef\xbb\xbf" + json.dumps(solved()).encode()}),
        "dos": HandIn({OWN: each_cell(solved(), dos)}),
        "untouched-beside": HandIn({OWN: release(), named: solved()}),
        "untouched-second": HandIn({OWN: solved(), named: release()}),
        "older-beside": HandIn({OWN: half(), f"{CHAPTER}/mine/work.ipynb": solved()}, old=(OWN,)),
        "older-second": HandIn({OWN: solved(), named: half()}, old=(named,)),
        "others-inside": HandIn({OWN: solved(), f"{CHAPTER}/right/{CHAPTER}.ipynb": release(), "right/blank.ipynb": release()}),
        "other-chapter": HandIn({OWN: other}, 0),
        "several-chapters": HandIn({OWN: solved(), "02_decoder/02_decoder.ipynb": other}),
        "modules": HandIn({OWN: release(), f"{CHAPTER}/minisgl/models/config.py": tree}),
        "damaged": HandIn({OWN: json.dumps(solved()).encode()[:9000]}, 0),
        "no-magic": HandIn({OWN: instead(("code", head))}, WORTH - 2),
        "writefile": HandIn({OWN: instead(("code", f"%%writefile config.py\n{head}"))}, WORTH - 2),
        "markdown": HandIn({OWN: instead(("markdown", f"```python\n{head}```"))}, WORTH - 2),
        "other-name": HandIn({OWN: instead(("code", misnamed))}, WORTH - 2),
    }


def cells_of(book: Book) -> list[tuple[str, str]]:
    return [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]


def mixed_class(release: Callable[[], Book]) -> dict[str, HandIn]:
    """Return thirty hand-ins: all shapes, and some that are partly wrong."""
    made = shapes(release)
    source = random.Random(3)
    wrong = [entry for entry in wrong_solutions.entries() if entry["part"] in CHEAP]
    while len(made) < 30:
        texts = {name: piece(name) for name in source.sample(CHEAP, 1)}
        entry = source.choice(wrong)
        texts[entry["part"]] = wrong_solutions.text_of(entry)
        made[f"student-{len(made):02}"] = HandIn({OWN: fill(release(), texts)}, None)
    return made

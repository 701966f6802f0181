"""Read a notebook's text: its cells, the work in them, and which chapter it is. One reader for every route; nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from autograder.parts import BY_ID, CHAPTERS, part_of_grade_id, parts_of_chapter
from autograder.text.misplaced import reasons
from autograder.text.work import Work, work_of_cells

PYTHON = ("", "python", "python3", "ipython")


class NotANotebook(ValueError):
    """Report a text that isn't a notebook with Python in it, and why."""


@dataclass(frozen=True)
class Cell:
    """What is read of a cell: its kind (``code``, ``markdown``, ``raw``), its source and nbgrader's id, where it has one."""

    kind: str
    source: str
    grade_id: str = ""


def decoded(content: bytes) -> str:
    """Return the text of a file, without a byte order mark.

    Raises:
        NotANotebook: it isn't UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotANotebook("isn't UTF-8 text") from None


def read_cells(text: str) -> list[Cell]:
    """Return the cells of a notebook of any format; metadata, cell ids and outputs may be missing or odd.

    Raises:
        NotANotebook: the JSON is broken or of another kind, or the notebook is of another language.
    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"isn't a notebook: its JSON is broken ({error})") from None
    if not isinstance(notebook, dict):
        raise NotANotebook(f"isn't a notebook: its JSON is a {type(notebook).__name__}")
    language = _language(notebook)
    if language not in PYTHON:
        raise NotANotebook(f"is a notebook of the language {language!r}; Python was expected")
    return [cell_of(cell) for cell in _raw_cells(notebook)]


def cell_of(raw: dict[str, Any]) -> Cell:
    """Return what is read of a cell as it stands in a notebook."""
    source = raw.get("source", raw.get("input", ""))
    text = "".join(str(line) for line in source) if isinstance(source, list) else str(source)
    metadata = raw.get("metadata")
    facts = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = facts.get("grade_id") if isinstance(facts, dict) else None
    return Cell(str(raw.get("cell_type")), text, grade_id if isinstance(grade_id, str) else "")


def work_of_notebook(cells: Iterable[Cell]) -> Work:
    """Return the work in a notebook's cells; what can't count is among its problems, with the place where it stands."""
    cells = list(cells)
    work = work_of_cells(cell.source for cell in cells if cell.kind == "code")
    for part_id, reason in reasons([(cell.kind, cell.source) for cell in cells], work).items():
        work.problems.setdefault(part_id, reason)
    return work


def chapters_of(cells: Iterable[Cell], work: Work, name: str = "") -> list[str]:
    """Return the chapters that a notebook is: the one of most of its parts, then others of which it has half of the parts.

    Args:
        cells: the notebook's cells.
        work: the work in them.
        name: the chapter in the notebook's name, which decides only where the parts don't.
    """
    parts = [part for cell in cells if (part := part_of_grade_id(cell.grade_id)) is not None]
    ids = {part.id for part in parts} | {*work.pieces, *work.problems, *work.broken}
    share = {each: sum(BY_ID[part_id].chapter == each for part_id in ids) for each in CHAPTERS}
    found = [each for each in CHAPTERS if share[each]]
    found.sort(key=lambda each: (-share[each], each != name))
    return found[:1] + [each for each in found[1:] if 2 * share[each] >= len(parts_of_chapter(each))]


def _raw_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of a notebook of any format: since version 4 at the top, before in worksheets."""
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        sheets = notebook.get("worksheets")
        inside = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
        cells = [cell for part in inside if isinstance(part, list) for cell in part]
    return [cell for cell in cells if isinstance(cell, dict)]


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for home, key in (("language_info", "name"), ("kernelspec", "language")):
        facts = metadata.get(home)
        if isinstance(facts, dict) and isinstance(facts.get(key), str):
            return str(facts[key]).lower()
    return ""

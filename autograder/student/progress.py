"""How far a student is: from the workspace, from the last checks, and from the saved notebook's cells."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.parts import BY_ID, PARTS, Part, parts_judged_with
from autograder.student.workspace import Workspace, judged_sha
from autograder.text.notebook import Cell, NotANotebook, decoded, read_cells
from autograder.text.sources import syntax_error_of
from autograder.text.trees import not_ready, state_of
from autograder.text.work import Work, work_of_cells


@dataclass(frozen=True)
class Row:
    """One part's state.

    Attributes:
        part: the part.
        state: ``passed``, ``failed`` (or another status of the last check), ``unchecked`` (written, or changed since its
            last check), ``not_written``, ``helped``.
        points: of the last check of just this text; 0 otherwise.
        waits_for: of a part that judges others, the ids of those that can't be judged yet: there is nothing else to write.
    """

    part: Part
    state: str
    points: float
    waits_for: tuple[str, ...] = ()


def rows(workspace: Workspace) -> list[Row]:
    """Return the state of every part, in course order."""
    work = workspace.read()
    checked = workspace.state().get("checked", {})
    return [_row(part, work, checked.get(part.id, {})) for part in PARTS]


def _row(part: Part, work: Work, record: dict[str, object]) -> Row:
    if part.id in work.helped:
        return Row(part, "helped", 0.0)
    if state_of(work, part):
        return Row(part, "not_written", 0.0, _waits_for(work, part))
    if record.get("sha") != judged_sha(work, part):
        return Row(part, "unchecked", 0.0)
    points = record.get("points", 0.0)
    return Row(part, str(record.get("status", "failed")), points if isinstance(points, (int, float)) else 0.0)


def _waits_for(work: Work, part: Part) -> tuple[str, ...]:
    judged = parts_judged_with(part) if part.together else []
    return tuple(
        other.id
        for other in judged
        if other.id in work.helped or not_ready(work, other) or syntax_error_of(work.pieces[other.id]) is not None
    )


def next_step(found: list[Row]) -> str:
    """Say what to do next."""
    for row in found:
        if row.state == "not_written" and not row.part.together:
            return f"write {row.part.id} (chapter {row.part.chapter}, about {row.part.minutes} minutes)"
        if row.state == "unchecked":
            return f'check it: check("{row.part.id}")'
        if row.state not in ("passed", "helped", "not_written"):
            return f'mend {row.part.id}: check("{row.part.id}") says what is wrong'
    return "everything is written and passes" if found else ""


def minutes_left(found: list[Row]) -> int:
    """Return the estimated minutes of the parts that aren't passed or helped."""
    return sum(row.part.minutes for row in found if row.state not in ("passed", "helped"))


def open_notebook() -> Path | None:
    """Return the notebook that this kernel belongs to, where the front end says so."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    path = Path(name)
    if not name.endswith(".ipynb"):
        return None
    return next((place for place in (path, Path.cwd() / path.name) if place.is_file()), None)


def saved_cells() -> list[Cell]:
    """Return the cells of the saved notebook that this kernel belongs to; none where it can't be told or read."""
    path = open_notebook()
    try:
        return read_cells(decoded(path.read_bytes())) if path is not None else []
    except (OSError, NotANotebook):
        return []


def changed_cells(wanted: Iterable[Part]) -> list[str]:
    """Return the ids of parts whose cell in the saved notebook differs from what the tree has: edited but not run.

    Only where the notebook was saved after the part's file was written; before that it holds the text of an earlier run.
    """
    path = open_notebook()
    cells = work_of_cells(cell.source for cell in saved_cells() if cell.kind == "code")
    if path is None or not cells.pieces:
        return []
    saved = path.stat().st_mtime_ns
    workspace = Workspace()
    work = workspace.read()
    ids = {part.id for part in wanted if part.id in BY_ID}
    return [
        part_id
        for part_id in cells.pieces
        if part_id in ids
        and not not_ready(cells, BY_ID[part_id])
        and judged_sha(work, BY_ID[part_id]) != judged_sha(cells, BY_ID[part_id])
        and saved > _written(workspace, part_id)
        and (part_id not in work.helped or not not_ready(work, BY_ID[part_id]))
    ]


def _written(workspace: Workspace, part_id: str) -> int:
    try:
        return (workspace.package / BY_ID[part_id].module).stat().st_mtime_ns
    except OSError:
        return 0

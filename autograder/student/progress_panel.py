"""Progress as a small widget: a bar for each chapter, the next step, and a button to look again.

Every bar has its figures beside it as text, and the widget's plain form is the table of ``status``.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from autograder.student import display, progress
from autograder.student.progress import Row
from autograder.student.workspace import Workspace, WorkspaceError


@dataclass(frozen=True)
class ChapterProgress:
    """How far a chapter is.

    Attributes:
        chapter: its id.
        points: those of the last checks.
        max_points: full marks.
        num_done: parts that passed or were taken with help.
        num_parts: all of its parts.
        minutes_left: estimate for what is left.
    """

    chapter: str
    points: float
    max_points: float
    num_done: int
    num_parts: int
    minutes_left: int

    def words(self) -> str:
        """Say it as text."""
        left = f", about {self.minutes_left} minutes left" if self.minutes_left else ""
        return f"{self.points:g} of {self.max_points:g} points, {self.num_done} of {self.num_parts} parts{left}"


def by_chapter(rows: list[Row]) -> list[ChapterProgress]:
    """Sum the parts' rows by chapter, in course order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.part.chapter, []).append(row)
    return [
        ChapterProgress(
            chapter,
            sum(row.points for row in mine),
            sum(row.part.points for row in mine),
            sum(row.state in ("passed", "helped") for row in mine),
            len(mine),
            progress.minutes_left(mine),
        )
        for chapter, mine in found.items()
    ]


def status_panel() -> Any:
    """Show progress as a widget; where ipywidgets is missing, as the table of ``status``."""
    try:
        import ipywidgets
    except ImportError:
        from autograder.student.notebook import status

        return status()

    class Panel(ipywidgets.VBox):
        """Bars that can also be read as text."""

        def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
            bundle = super()._repr_mimebundle_(**options)
            data = bundle[0] if isinstance(bundle, tuple) else bundle
            data["text/plain"] = _words()
            return data

    lines = ipywidgets.VBox()
    again = ipywidgets.Button(description="Look again", icon="refresh", tooltip="Read the workspace once more")
    again.on_click(lambda _: _fill(ipywidgets, lines))
    _fill(ipywidgets, lines)
    return Panel([lines, again])


def _rows() -> list[Row]:
    workspace = Workspace()
    workspace.ensure()
    return progress.rows(workspace)


def _words() -> str:
    try:
        return display.status_text(_rows())
    except WorkspaceError as error:
        return str(error)


def _fill(ipywidgets: Any, lines: Any) -> None:
    try:
        rows = _rows()
    except WorkspaceError as error:
        lines.children = [ipywidgets.HTML(html.escape(str(error)))]
        return
    children = []
    for each in by_chapter(rows):
        bar = ipywidgets.FloatProgress(value=each.points, max=each.max_points, layout={"width": "220px"})
        name = ipywidgets.HTML(f"<b>{html.escape(each.chapter)}</b>", layout={"width": "170px"})
        children.append(ipywidgets.HBox([name, bar, ipywidgets.HTML(html.escape(each.words()))]))
    step = f'<div role="status" aria-live="polite"><b>Next:</b> {html.escape(progress.next_step(rows))}</div>'
    lines.children = [*children, ipywidgets.HTML(step)]

"""Judge the cells of one notebook for nbgrader: what the Validate button does, and what autograding builds on.

The parts are read from the cells as text and judged. Each grade cell's output becomes the feedback and a finite number
from 0 to the cell's points. The notebook itself is never run.
"""

from __future__ import annotations

import atexit
import functools
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.judge.results import PartResult
from autograder.parts import PARTS, Part, part_of_grade_id
from autograder.student import display
from autograder.student.workspace import Workspace, WorkspaceError
from autograder.text.notebook import cell_of, work_of_notebook
from autograder.text.work import Work


class JudgeCells(NbGraderPreprocessor):
    """Judge the notebook's parts and write each grade cell's result as its output."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge and write outputs, in place."""
        cells = [cell for cell in nb.cells if is_grade(cell) and cell.cell_type == "code"]
        wanted = {grade_id_of(cell): part_of_grade_id(grade_id_of(cell)) for cell in cells}
        parts = [part for part in PARTS if part in wanted.values()]
        results = {}
        if parts:
            work = self.work_of(nb, parts, resources.get("nbgrader", {}))
            results = {result.id: result for result in self.judge().judge(work, parts)}
        for cell in cells:
            part = wanted[grade_id_of(cell)]
            result = results[part.id] if part is not None else None
            cell.outputs = self.outputs_of(result, float(cell.metadata["nbgrader"].get("points", 0)))
        return nb, resources

    def judge(self) -> Any:
        """Return the judge of this process."""
        return warm_judge()

    def work_of(self, nb: NotebookNode, parts: list[Part], facts: dict[str, Any]) -> Work:
        """Return the work to judge: what the cells hold, and what else counts with it."""
        return work_of_notebook(map(cell_of, nb.cells))

    def outputs_of(self, result: PartResult | None, points: float) -> list[NotebookNode]:
        """Return the outputs of a grade cell: the feedback, and a finite number as its result."""
        if result is None:
            text, markup, earned = (
                "this cell belongs to no part that is known",
                "<p>This cell belongs to no known part.</p>",
                0.0,
            )
        else:
            text, markup = display.result_text(result), display.result_html(result)
            # the cell's own maximum counts, should an instructor have changed it
            earned = points * result.points / result.max_points if result.max_points else 0.0
        shown = new_output("display_data", data={"text/plain": text, "text/html": markup})
        number = new_output("execute_result", data=display.Points(earned, points).bundle(), execution_count=1)
        return [shown, number]


class ValidateParts(JudgeCells):
    """Judge for the Validate button: no sandbox, earlier chapters from the student's workspace, reasons as errors."""

    def work_of(self, nb: NotebookNode, parts: list[Part], facts: dict[str, Any]) -> Work:
        """Return the cells' work, and the other chapters' from the workspace."""
        try:
            work = Workspace().read()
        except WorkspaceError:
            work = Work()
        for module in {part.module for part in parts if not part.together}:
            work.forget(module)
        work.update(work_of_notebook(map(cell_of, nb.cells)))
        return work

    def outputs_of(self, result: PartResult | None, points: float) -> list[NotebookNode]:
        """Return the outputs, and why points are missing as an error."""
        outputs = super().outputs_of(result, points)
        if result is not None and result.points < result.max_points:
            lines = display.result_text(result).splitlines()
            # nbgrader reads the number first; what follows only fills the dialog
            outputs.append(new_output("error", ename="NotYet", evalue=lines[0], traceback=lines))
        return outputs


@functools.cache
def warm_judge() -> Any:
    """Return the one judge of this process, without a sandbox: the work is the student's own."""
    from autograder.judge.judge import Judge, warm_up  # heavy: not for nbgrader's other commands

    judge = Judge()
    judge.worker.start()
    warm_up()
    atexit.register(judge.worker.close)
    return judge


def is_grade(cell: NotebookNode) -> bool:
    """Tell whether a cell is a grade cell."""
    return cell.metadata.get("nbgrader", {}).get("grade") is True


def grade_id_of(cell: NotebookNode) -> str:
    """Return a cell's grade id; empty where it has none."""
    metadata = cell.metadata.get("nbgrader", {})
    found = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""

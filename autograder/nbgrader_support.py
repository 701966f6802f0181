"""nbgrader's own commands with our judge in the place of its execution step.

``MendCells`` goes before nbgrader's sanitizing: whatever a student did to the cells' metadata, it is made again what the
gradebook says, and grade cells that were deleted are added, so that no submission gets stuck. ``GradeParts`` stands
where nbgrader would run the notebook: it lifts the parts from the cells as text, judges them, and writes each grade
cell's output: the feedback, and a finite number from 0 to the cell's points. The notebook itself is never run.
"""

from __future__ import annotations

import atexit
import functools
import warnings
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograder import display, hidden
from autograder.lifting import lift_cells
from autograder.parts import CHAPTERS, PARTS, Part, is_whole_package, part_of_grade_id
from autograder.results import PartResult
from autograder.trees import Work
from autograder.worker import sandbox
from autograder.workspace import Workspace, WorkspaceError

_PREPARED: set[str] = set()


def expect_unsaved_rows() -> None:
    """Keep SQLAlchemy from warning, three times a student, of rows that nbgrader makes before it saves them.

    Its ``add_submission`` asks for the assignment's cells between making a submission's rows and adding them to the
    session; all are saved a moment later, so nothing is lost.
    """
    warnings.filterwarnings("ignore", message=r"Object of type <Submitted\w+> not in session")


class ReadOrExplain(NotebookExporter):
    """Read a submitted notebook; one that can't be read becomes an empty one that says why.

    So a file that was saved half-way is graded, with 0, and its feedback page tells the student what to do. nbgrader
    itself would print a traceback and leave the submission ungraded. The file in ``submitted/`` stays as it is.
    """

    def from_file(self, file_stream: Any, resources: Any = None, **kw: Any) -> Any:
        """Convert a notebook from an open file."""
        try:
            notebook = nbformat.read(file_stream, as_version=4)
        except (ValueError, AttributeError, KeyError, TypeError) as error:  # not JSON, not UTF-8, not a notebook
            reason = str(error).split(": ")[0][:120]
            self.log.warning("%s can't be read as a notebook and is graded as an empty one", file_stream.name)
            text = (
                f"**This file could not be read as a notebook** ({reason}), so it was graded as an empty one. Expected "
                f"a notebook as JupyterLab saves it. Open yours, save it, see that it opens again, and hand it in anew."
            )
            notebook = new_notebook(cells=[new_markdown_cell(text)])
        return self.from_notebook_node(notebook, resources=resources, **kw)


class MendCells(NbGraderPreprocessor):
    """Make every cell's nbgrader metadata what the gradebook says, and add grade cells that are missing."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Mend the notebook in place."""
        facts = resources["nbgrader"]
        with Gradebook(facts["db_url"]) as gradebook:
            try:
                source = gradebook.find_notebook(facts["notebook"], facts["assignment"])
            except MissingEntry:
                return nb, resources
            metadata = {cell.name: self._metadata(source, cell) for cell in source.source_cells}
            texts = {cell.name: cell.source for cell in source.source_cells}
        seen: set[str] = set()
        for cell in reversed(nb.cells):
            cell_id = _grade_id(cell)
            cell.metadata.pop("nbgrader", None)
            known = metadata.get(cell_id)
            if known is not None and cell_id not in seen and cell.cell_type == known["cell_type"]:
                cell.metadata["nbgrader"] = NotebookNode(known)
                seen.add(cell_id)
        for cell_id, known in metadata.items():
            if cell_id not in seen and known["grade"] and known["cell_type"] == "code":
                self.log.warning("The grade cell %s was missing or changed its type; it was added again", cell_id)
                nb.cells.append(new_code_cell(texts[cell_id], metadata={"nbgrader": NotebookNode(known)}))
        return nb, resources

    def _metadata(self, source: Any, cell: Any) -> dict[str, Any]:
        grades = {each.name: each for each in (*source.grade_cells, *source.task_cells)}
        solutions, tasks = {each.name for each in source.solution_cells}, {each.name for each in source.task_cells}
        known = {
            "grade_id": cell.name,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
            "grade": cell.name in grades and cell.name not in tasks,
            "locked": bool(cell.locked),
            "schema_version": 3,
            "solution": cell.name in solutions,
            "task": cell.name in tasks,
        }
        if cell.name in grades:
            known["points"] = float(grades[cell.name].max_score)
        return known


class GradeParts(NbGraderPreprocessor):
    """Judge the notebook's parts and write each grade cell's result as its output."""

    sandboxed = Bool(True, help="Run student code inside bubblewrap; refuse to grade where that isn't possible.").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge and write outputs, in place.

        Raises:
            NbGraderException: there is no sandbox and it wasn't switched off.
        """
        cells = [cell for cell in nb.cells if _is_grade(cell) and cell.cell_type == "code"]
        wanted = {_grade_id(cell): part_of_grade_id(_grade_id(cell)) for cell in cells}
        parts = [part for part in PARTS if part in wanted.values()]
        self._prepare()
        sources = [cell.source for cell in nb.cells if cell.cell_type == "code"]
        work = self._work(sources, parts, resources.get("nbgrader", {}))
        results = {result.id: result for result in _judge(self._sandbox()).judge(work, parts)} if parts else {}
        for cell in cells:
            part = wanted[_grade_id(cell)]
            result = results[part.id] if part is not None else None
            cell.outputs = self._outputs(result, float(cell.metadata["nbgrader"].get("points", 0)))
        return nb, resources

    def _work(self, sources: list[str], parts: list[Part], facts: dict[str, Any]) -> Work:
        work = Work(lift_cells(sources))
        if any(is_whole_package(part.chapter) for part in parts):
            self._add_other_chapters(work, facts)
        return work

    def _add_other_chapters(self, work: Work, facts: dict[str, Any]) -> None:
        """Add what the student handed in for the chapters in which the package was written."""
        from autograder import submissions  # not in a student kit, where only Validate is used

        places = CourseDirectory(config=self.config)
        for chapter in CHAPTERS:
            folder = Path(places.format_path(places.submitted_directory, facts["student"], chapter))
            if chapter != facts["assignment"] and folder.is_dir():
                for submission in submissions.read(folder, facts["student"], chapter):
                    work.pieces.update(submission.work.pieces)
                    work.problems.update(submission.work.problems)

    def _prepare(self) -> None:
        """Use the instructor's hidden cases."""
        if "hidden" not in _PREPARED:
            hidden.install(hidden.prepare())
            atexit.register(hidden.uninstall)
            _PREPARED.add("hidden")

    def _sandbox(self) -> bool:
        if not self.sandboxed:
            return False
        problem = sandbox.problem()
        if problem:
            raise NbGraderException(
                f"there is no sandbox on this machine: {problem}. Student code would run with your rights. Install it, or "
                f"grade with --GradeParts.sandboxed=False if you trust every submission."
            )
        return True

    def _outputs(self, result: PartResult | None, points: float) -> list[NotebookNode]:
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


class ValidateParts(GradeParts):
    """Judge for the Validate button: no sandbox, earlier chapters from the student's workspace, reasons as errors."""

    sandboxed = Bool(False, help="A student who checks their own work needs no sandbox.").tag(config=True)

    def _prepare(self) -> None:
        """Use nothing hidden: a student's own check has none."""

    def _work(self, sources: list[str], parts: list[Part], facts: dict[str, Any]) -> Work:
        work = Work()
        chapters = {part.chapter for part in parts}
        try:
            saved = Workspace().read()
        except WorkspaceError:
            saved = Work()
        for part in PARTS:
            if part.chapter not in chapters and part.id in saved.pieces:
                work.pieces[part.id] = saved.pieces[part.id]
        work.pieces.update(lift_cells(sources))
        return work

    def _outputs(self, result: PartResult | None, points: float) -> list[NotebookNode]:
        outputs = super()._outputs(result, points)
        if result is not None and result.points < result.max_points:
            lines = display.result_text(result).splitlines()
            # nbgrader reads the number first; what follows only fills the dialog
            outputs.append(new_output("error", ename="NotYet", evalue=lines[0], traceback=lines))
        return outputs


@functools.cache
def _judge(sandboxed: bool) -> Any:
    """Return the one judge of this process: warm for all submissions of a run."""
    from autograder.judge import Judge, warm_up  # heavy: not for nbgrader's other commands

    judge = Judge(sandboxed=sandboxed)
    judge.worker.start()
    warm_up()
    atexit.register(judge.worker.close)
    return judge


def _is_grade(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade") is True


def _grade_id(cell: NotebookNode) -> str:
    metadata = cell.metadata.get("nbgrader", {})
    found = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""

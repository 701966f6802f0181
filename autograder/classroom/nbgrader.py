"""Let nbgrader's own commands grade with our judge; nbgrader itself would run the notebook.

``MendCells`` goes before nbgrader's sanitizing: whatever a student did to the cells' metadata, it is made again what the
gradebook says, and grade cells that were deleted are added, so that no submission gets stuck. ``GradeParts`` stands
where nbgrader would run the notebook: it lifts the parts from the cells as text, judges them, and writes each grade
cell's output: the feedback, and a finite number from 0 to the cell's points. The notebook itself is never run.
"""

from __future__ import annotations

import functools
import html
import warnings
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader import preprocessors as stock
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from autograder.classroom import hidden, self_check
from autograder.classroom.claims import Claim
from autograder.classroom.collecting import CollectWhatCounts
from autograder.classroom.grading import warm_judge
from autograder.classroom.submissions import HandIns
from autograder.parts import CHAPTERS, Part, part_of_grade_id
from autograder.student.validate import JudgeCells, grade_id_of, is_grade
from autograder.text.notebook import Cell, read_cells
from autograder.text.work import Work
from autograder.worker import sandbox


def configure(c: Any) -> None:
    """Put our steps into the configuration of ``nbgrader autograde``."""
    expect_unsaved_rows()
    c.Autograde.pre_convert_hook = look_for_any_name
    c.Autograde.exporter_class = ReadWhatCounts
    c.ZipCollectApp.collector_plugin = CollectWhatCounts
    c.Autograde.sanitize_preprocessors = [
        MendCells,
        stock.ClearOutput,
        stock.DeduplicateIds,
        stock.OverwriteKernelspec,
        stock.OverwriteCells,
        stock.CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        GradeParts,
        stock.IgnorePattern,
        ClearMetadataPreprocessor,
        stock.LimitOutput,
        stock.SaveAutoGrades,
        stock.AssignLatePenalties,
        stock.CheckCellMetadata,
    ]
    c.ClearMetadataPreprocessor.preserve_cell_metadata_mask = [("nbgrader",)]


def expect_unsaved_rows() -> None:
    """Keep SQLAlchemy from warning, three times a student, of rows that nbgrader makes before it saves them.

    Its ``add_submission`` asks for the assignment's cells between making a submission's rows and adding them to the
    session; all are saved a moment later, so nothing is lost.
    """
    warnings.filterwarnings("ignore", message=r"Object of type <Submitted\w+> not in session")


def look_for_any_name(notebooks: list[str], **_: Any) -> None:
    """Have nbgrader grade a chapter's folder whatever its notebook is called; it would skip all but the chapter's own name."""
    home = Path(notebooks[0]).parent
    if home.name in CHAPTERS:
        notebooks[:] = [str(home / f"{home.name}.ipynb")]


def home_of(config: Any, facts: dict[str, Any]) -> Path:
    """Return nbgrader's folder ``submitted/STUDENT/``."""
    places = CourseDirectory(config=config)
    return Path(places.format_path(places.submitted_directory, facts["student"], facts["assignment"])).resolve().parent


def hand_ins_of(config: Any, facts: dict[str, Any]) -> HandIns:
    """Read all that a student handed in, as ``grade`` reads it."""
    return HandIns([Claim(home_of(config, facts), facts["student"])])


class ReadWhatCounts(NotebookExporter):
    """Read the notebook that counts for a chapter, and say on top of it what was left aside, or why there is none.

    A file that was saved half-way is graded, with 0, and its feedback page tells the student what to do. nbgrader itself
    would print a traceback and leave the submission ungraded. The files in ``submitted/`` stay as they are.
    """

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        """Convert a notebook; one that a student handed in is looked for in all that they handed in."""
        facts = resources["nbgrader"]
        if facts["assignment"] not in CHAPTERS or not Path(filename).resolve().is_relative_to(home_of(self.config, facts)):
            return super().from_filename(filename, resources=resources, **kw)
        hand_ins = hand_ins_of(self.config, facts)
        resources["metadata"] = ResourcesDict(name=facts["notebook"], path=str(Path(filename).parent))
        return self.from_notebook_node(self._notebook(hand_ins, facts["assignment"], filename), resources=resources, **kw)

    def _notebook(self, hand_ins: HandIns, chapter: str, filename: str) -> NotebookNode:
        submission, document = hand_ins.chosen(chapter)
        cells = [_node(cell) for cell in read_cells(document.text)] if document and document.text else []
        told = [f"- {html.escape(note)}" for note in submission.notes]
        if submission.refusal:
            self.log.warning("%s can't be read as a notebook and is graded as an empty one", filename)
            told.append(
                f"**This file could not be read as a notebook** ({html.escape(submission.refusal)}), so it was graded as an "
                "empty one. Expected a notebook as JupyterLab saves it. Open yours, save it, see that it opens again, and "
                "hand it in anew."
            )
        if told:
            cells.insert(0, new_markdown_cell("\n".join(["**What was graded**", "", *told])))
        return new_notebook(cells=cells)


def _node(cell: Cell) -> NotebookNode:
    """Return a cell as nbgrader wants it; of its metadata only the grade cell's id is kept."""
    make = {"code": new_code_cell, "markdown": new_markdown_cell}.get(cell.kind, new_raw_cell)
    return make(cell.source, metadata={"nbgrader": {"grade_id": cell.grade_id}} if cell.grade_id else {})


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
            cell_id = grade_id_of(cell)
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


class GradeParts(JudgeCells):
    """Judge a submitted notebook in the sandbox, hidden cases included."""

    sandboxed = Bool(True, help="Run student code inside bubblewrap; refuse to grade where that isn't possible.").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge and write outputs, in place.

        Raises:
            NbGraderException: there is no sandbox and it wasn't switched off, or the judge doesn't give the reference
                full marks: no submission is graded then.
        """
        parts = {part_of_grade_id(grade_id_of(cell)) for cell in nb.cells if is_grade(cell)}
        for chapter in sorted({part.chapter for part in parts if part is not None}):
            if reason := _trouble(chapter, self._sandbox()):
                raise NbGraderException(reason)
        return super().preprocess(nb, resources)

    def judge(self) -> Any:
        """Return the judge of this process."""
        return warm_judge(self._sandbox(), _hidden_files())

    def work_of(self, nb: NotebookNode, parts: list[Part], facts: dict[str, Any]) -> Work:
        """Return the work that counts; ``nb`` only shows it."""
        submission = hand_ins_of(self.config, facts).chosen(facts["assignment"])[0]
        if submission.refusal:
            submission.work.problems.update({part.id: submission.refusal for part in parts})
        return submission.work

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


@functools.cache
def _trouble(chapter: str, sandboxed: bool) -> str:
    """Return why the judge can't be believed about a chapter; it is asked once in each run."""
    try:
        files = _hidden_files()
    except ValueError as slip:
        return str(slip)
    rules = self_check.rules_digest(files, sandboxed)
    if self_check.is_known(chapter, rules):
        return ""
    reason = self_check.trouble(self_check.payload(chapter, sandboxed, files))
    if not reason:
        self_check.remember(chapter, rules)
    return reason


@functools.cache
def _hidden_files() -> dict[str, str]:
    """Return the instructor's hidden cases, which stay the same until this process ends."""
    return hidden.prepare()

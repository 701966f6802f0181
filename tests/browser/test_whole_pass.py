"""The whole course in JupyterLab: every solution runs to its end, every release fails kindly and passes once filled in."""

import re
import shutil

import nbformat
import pytest

from autograder import parts
from autograder.authoring.notebook_cells import EXPECTED_TAG, plain_output
from autograder.authoring.notebooks import ROOT, chapters, clean_outputs, write_earlier_parts
from autograder.student.workspace import Workspace
from autograder.text import reference
from tests.browser.pages import Notebook

CHAPTERS = chapters()
# One chapter takes up to a minute on two idle cores; others may be at work beside it.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture
def workspace(course):
    """The folder of the course's workspace, empty at first."""
    folder = course / "workspace"
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def part_of(cell):
    facts = cell.metadata.get("nbgrader", {})
    return parts.part_of_grade_id(facts.get("grade_id", "")) if facts.get("grade") else None


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_solution_notebook_runs_to_its_end_with_the_outputs_that_it_promises(page, lab, workspace, chapter):
    write_earlier_parts(chapter, workspace)
    stored = nbformat.read(ROOT / "solutions" / chapter / f"{chapter}.ipynb", as_version=4)
    opened = Notebook(page, lab, f"solutions/{chapter}/{chapter}.ipynb")
    opened.run_all()
    shown = nbformat.from_dict(opened.document())
    opened.screenshot(f"pass-{chapter}")
    opened.close()
    clean_outputs(shown, workspace)
    for cell, promised in zip(code_cells(shown), code_cells(stored), strict=True):
        assert "error" not in {output.output_type for output in cell.outputs}, plain_output(cell) or cell.outputs[-1].evalue
        if EXPECTED_TAG in cell.metadata.get("tags", []):
            assert plain_output(cell) == plain_output(promised), cell.source
        if part := part_of(cell):
            assert float(plain_output(cell).splitlines()[-1]) == part.points
    assert page.errors == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_release_notebook_fails_kindly_and_passes_once_its_parts_are_filled_in(page, lab, workspace, chapter):
    if not parts.is_whole_package(chapter):
        write_earlier_parts(chapter, workspace)
    opened = Notebook(page, lab, f"notebooks/{chapter}/{chapter}.ipynb")
    cells = code_cells(nbformat.from_dict(opened.document()))
    assert page.inner_text(".jp-NotebookPanel h1 >> nth=0").startswith(chapter[:2])
    opened.run(cells[0].id)
    graded = {cell.id: part for cell in cells if (part := part_of(cell))}
    assert set(graded.values()) == set(parts.parts_of_chapter(chapter))
    for cell_id, part in graded.items():
        told = opened.run(cell_id)
        assert re.search(r"not written|write .* first", told), told
        assert "Traceback" not in told and told.splitlines()[-1] == f"Earned: 0 of {part.points:g} points", told
    for cell in code_cells(nbformat.from_dict(opened.document())):
        if part_of(cell):  # nbgrader reads the plain form of the last output
            assert [output.output_type for output in cell.outputs] == ["display_data", "execute_result"]
            assert cell.outputs[-1].data["text/plain"] == "0.0"

    home = Workspace(workspace)
    for part in parts.PARTS if parts.is_whole_package(chapter) else parts.parts_of_chapter(chapter):
        if not part.together:
            home.write_cell(part.module, reference.piece(part.id))
    for cell_id, part in graded.items():
        told = opened.run(cell_id)
        assert "passed" in told and told.splitlines()[-1] == f"Earned: {part.points:g} of {part.points:g} points", told
    opened.close()
    assert page.errors == []

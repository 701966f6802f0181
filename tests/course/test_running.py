"""The chapters, run: instructor notebooks to the end, releases failing kindly, and both built again byte for byte."""

import re

import nbformat
import pytest

from autograder import parts
from autograder.notebook_cells import plain_output
from autograder.notebooks import ROOT, build_chapter, chapters, run_notebook, write_earlier_parts

CHAPTERS = chapters()
# A chapter takes up to two minutes on two busy cores.
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_instructor_notebook_runs_and_both_notebooks_are_built_again_byte_for_byte(chapter, tmp_path):
    built = build_chapter(chapter, tmp_path)
    for path, kind in zip(built, ("solutions", "notebooks"), strict=True):
        committed = ROOT / kind / chapter / path.name
        assert path.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8"), f"run: make notebooks ({kind})"
    solution = nbformat.read(built[0], as_version=4)
    passed = {
        cell.metadata.nbgrader.grade_id: plain_output(cell).splitlines()[-1]
        for cell in solution.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert passed == {parts.grade_id(part): f"{part.points:g}" for part in parts.parts_of_chapter(chapter)}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_graded_cell_of_an_untouched_release_says_what_to_write(chapter, tmp_path):
    release = nbformat.read(ROOT / "notebooks" / chapter / f"{chapter}.ipynb", as_version=4)
    workspace = tmp_path / "workspace"
    if not parts.is_whole_package(chapter):  # its check is about the chapters before
        write_earlier_parts(chapter, workspace)
    run_notebook(release, workspace, allow_errors=True)
    for cell in release.cells:
        if not cell.metadata.get("nbgrader", {}).get("grade"):
            continue
        told = plain_output(cell)
        assert [output.output_type for output in cell.outputs] == ["display_data", "execute_result"], told
        assert re.search(r"not written|write .* first", told), told
        assert "Traceback" not in told
        number = cell.outputs[-1].data  # nbgrader reads the plain form, a person sees the other
        assert number["text/plain"] == "0.0" and re.search(r"Earned: 0 of \d+ points", number["text/html"])

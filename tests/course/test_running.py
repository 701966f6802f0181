"""The chapters, run: instructor notebooks to the end, and both kinds built again byte for byte."""

import nbformat
import pytest

from autograder import parts
from autograder.authoring.notebook_cells import plain_output
from autograder.authoring.notebooks import ROOT, build_chapter, chapters

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
        cell.metadata.nbgrader.grade_id: float(plain_output(cell).splitlines()[-1])
        for cell in solution.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert passed == {parts.grade_id(part): part.points for part in parts.parts_of_chapter(chapter)}

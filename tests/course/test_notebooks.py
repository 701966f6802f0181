"""What must always hold for the chapters: parts equal the reference, metadata is plain, nothing is given away."""

import ast
import re

import nbformat
import pytest

from autograder import parts
from autograder.authoring.notebook_cells import BEGIN, END, MODULE_MAGIC, with_solution_regions
from autograder.authoring.notebooks import CELL_METADATA, NOTEBOOK_METADATA, ROOT, chapters, source_notebook
from autograder.text import trees
from autograder.text.work import work_of_cells

CHAPTERS = chapters()
SOLUTION_MARKS = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN", "END HIDDEN")


def read(kind, chapter):
    return nbformat.read(ROOT / kind / chapter / f"{chapter}.ipynb", as_version=4)


def part_cells(notebook):
    """Find the cells that write a part which nbgrader marks as the student's: (module, part name) -> source."""
    found = {}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.source.startswith("%%module"):
            line, _, body = cell.source.partition("\n")
            match = MODULE_MAGIC.match(line)
            found[match["module"], match["part"]] = body
    return found


def written_parts():
    """Collect the part cells of every chapter's instructor notebook."""
    return {key: body for chapter in CHAPTERS for key, body in part_cells(read("solutions", chapter)).items()}


@pytest.mark.parametrize("module", sorted({part.module for part in parts.PARTS}))
def test_replaying_the_solutions_gives_the_reference_syntax_tree_by_syntax_tree(module):
    text = (ROOT / "minisgl" / module).read_text(encoding="utf-8")
    cells = [f"%%module {where} {name}\n{body}" for (where, name), body in written_parts().items() if where == module]
    replayed = trees.student_module(work_of_cells(cells), module)
    assert ast.dump(ast.parse(replayed)) == ast.dump(ast.parse(text))


def test_every_part_is_written_in_the_chapter_that_parts_names():
    for chapter in CHAPTERS:
        expected = {(part.module, part.name) for part in parts.parts_of_chapter(chapter) if not part.together}
        assert set(part_cells(read("solutions", chapter))) == expected
        assert set(part_cells(read("notebooks", chapter))) == expected


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_part_has_its_grade_cell_with_the_points_of_parts(chapter):
    for kind in ("solutions", "notebooks"):
        graded = {
            cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
            for cell in read(kind, chapter).cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        }
        assert graded == {parts.grade_id(part): part.points for part in parts.parts_of_chapter(chapter)}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_release_holds_no_solution_text(chapter):
    solution, release = part_cells(read("solutions", chapter)), read("notebooks", chapter)
    text = "\n".join(cell.source for cell in release.cells)
    assert not [mark for mark in SOLUTION_MARKS if mark in text]
    for (module, name), body in solution.items():
        for region in re.findall(rf"{BEGIN}\n(.*?)\s*{END}", body, re.DOTALL):
            lines = [line.strip() for line in region.splitlines() if len(line.strip()) > 40]
            shown = [line for line in lines if line in text]
            assert not shown, f"{module} {name}: the release shows {shown}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_release_stores_no_outputs(chapter):
    for cell in read("notebooks", chapter).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("kind", ["solutions", "notebooks"])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_metadata_is_on_the_allow_list_and_ids_are_unique(kind, chapter):
    notebook = read(kind, chapter)
    assert notebook.metadata == NOTEBOOK_METADATA
    assert not {key for cell in notebook.cells for key in cell.metadata} - set(CELL_METADATA)
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stored_outputs_name_no_place_of_the_machine_that_built_them(chapter):
    text = (ROOT / "solutions" / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"/tmp/\w", text)
    assert not re.search(r"object at 0x[0-9a-f]+", text)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_instructor_notebook_is_up_to_date_with_source_and_reference(chapter):
    """Without running anything: every cell's source (but folded outputs) is what the source text gives today."""

    def sources_of(notebook):
        folded = re.compile(r"<details><summary>Expected output</summary>.*?</details>", re.DOTALL)
        return [(cell.id, cell.cell_type, folded.sub("{{ expected }}", cell.source)) for cell in notebook.cells]

    assert sources_of(read("solutions", chapter)) == sources_of(source_notebook(chapter))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_cells_are_small(chapter):
    """The author's code cells; part cells hold a given signature and docstring besides."""
    for cell in read("solutions", chapter).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%module"):
            assert len(cell.source.splitlines()) <= 25, cell.source


def test_solution_regions_cover_bodies_and_nothing_else():
    code = '''class A:
    """Doc."""

    size: int = 3

    @property
    def area(self) -> int:
        """Area."""
        # why
        return self.size**2


def bare():
    return 1
'''
    hidden = with_solution_regions(code)
    kept = re.sub(rf"[ \t]*{BEGIN}.*?{END}\n?", "", hidden, flags=re.DOTALL)
    assert "return" not in kept and "# why" not in kept
    assert "size: int = 3" in kept and '"""Area."""' in kept and "@property" in kept
    assert ast.dump(ast.parse(hidden)) == ast.dump(ast.parse(code))

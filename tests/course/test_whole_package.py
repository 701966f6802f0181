"""Chapter 04 is graded on what a student handed in for the other chapters: nothing is written in it."""

import shutil

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder import parts
from autograder.authoring.notebooks import ROOT
from autograder.classroom.grading import payload_of
from autograder.classroom.nbgrader import GradeParts
from autograder.classroom.submissions import find
from autograder.student.workspace import Workspace, use_reference
from autograder.text import reference
from autograder.text.trees import state_of
from autograder.text.work import Work

CHAPTER = "04_into_the_model"
PART = parts.BY_ID["package.together"]
WRITTEN = {part.id for part in parts.PARTS if not part.together}
DONE = ("01_config", "02_decoder", "03_weight")


@pytest.fixture
def student(tmp_path):
    """A student's folder with the four graded chapters, the first three solved."""
    folder = tmp_path / "submitted" / "ada"
    for chapter in (*DONE, CHAPTER):
        kind = "solutions" if chapter in DONE else "notebooks"
        target = folder / chapter / f"{chapter}.ipynb"
        target.parent.mkdir(parents=True)
        shutil.copy(ROOT / kind / chapter / target.name, target)
    return folder


def submission_in(folder):
    return next(each for each in find([folder]) if each.chapter == CHAPTER)


def test_all_chapters_of_a_student_are_gathered(student):
    found = submission_in(student.parent)
    assert found.student == "ada" and not found.refusal
    assert set(payload_of(found, False, {})["work"]["pieces"]) == WRITTEN
    assert state_of(found.work, PART) == ""


def test_another_students_parts_are_not_taken(student):
    other = student.parent / "bob" / CHAPTER
    other.mkdir(parents=True)
    shutil.copy(student / CHAPTER / f"{CHAPTER}.ipynb", other)
    works = {each.student: each.work for each in find([student.parent]) if each.chapter == CHAPTER}
    assert set(works["ada"].pieces) == WRITTEN and works["bob"].pieces == {}


def test_handed_in_alone_it_says_what_is_missing(student):
    found = submission_in(student / CHAPTER)
    message = state_of(found.work, PART)
    assert message.startswith("write config.architecture, config.sizes") and message.endswith("more first")


def test_nbgrader_finds_the_other_chapters_beside_it(student, monkeypatch):
    monkeypatch.chdir(student.parent.parent)
    book = new_notebook(cells=[new_code_cell("check('package.together')")])
    work = GradeParts().work_of(book, [PART], {"student": "ada", "assignment": CHAPTER})
    assert set(work.pieces) == WRITTEN


def test_a_part_taken_from_the_reference_keeps_the_package_from_passing(tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.ensure()
    for part in parts.PARTS:
        if not part.together:
            workspace.write_cell(part.module, reference.piece(part.id))
    assert state_of(workspace.read(), PART) == ""
    use_reference(workspace, [parts.BY_ID["weight.load"]])
    assert state_of(workspace.read(), PART) == "write weight.load first"
    assert state_of(Work(), PART)

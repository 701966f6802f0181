"""The class that the instructor's guide makes gets the marks that its table promises."""

import re
from pathlib import Path

import pytest

from autograder.grade import grade
from autograder.parts import parts_of_chapter
from autograder.submissions import find
from autograder.worker import sandbox
from scripts import example_class
from tests.project.tree import ROOT

POINTS = {part.id: part.points for part in parts_of_chapter(example_class.CHAPTER)}
TOGETHER = next(name for name in POINTS if name.endswith("together"))
FULL = sum(POINTS.values())


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "course"
    assert example_class.main([str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def rows(course: Path) -> dict[str, dict]:
    """Each student's row of the report."""
    submissions = find([course / "submitted", course / "downloaded" / example_class.CHAPTER / "archive"])
    options = {"sandboxed": sandbox.problem() is None, "jobs": 2, "show_bar": False}
    graded = grade(submissions, course / "report", hidden_folder=course / "instructor", **options)
    return {re.split(r"[_/]", row["student"])[0]: row for row in graded}


def lost(row: dict) -> dict[str, str]:
    """The parts without full points, and why; the last check, of all parts together, falls with any of them."""
    missing = {part["id"]: part["status"] for part in row["parts"] if part["points"] < part["max_points"]}
    return {name: status for name, status in missing.items() if name != TOGETHER}


@pytest.mark.timeout(900)
def test_right_work_gets_full_marks(rows: dict):
    assert {rows[name]["points"] for name in ("ada", "ben")} == {FULL}


@pytest.mark.timeout(900)
def test_each_mistake_and_each_attack_costs_its_own_part(rows: dict):
    assert lost(rows["cleo"]) == {"config.head_dim": "failed", "config.biases": "failed"}
    assert lost(rows["dan"]).keys() == {"config.rope", "config.refusals", "config.model_config", "config.kv_bytes"}
    assert set(lost(rows["dan"]).values()) == {"not_written"}
    assert lost(rows["eve"]) == {"config.head_dim": "crashed"}
    assert lost(rows["fay"]) == {"config.head_dim": "time_limit"}
    assert lost(rows["gus"]) == {"config.head_dim": "failed"}


@pytest.mark.timeout(900)
def test_a_broken_notebook_is_refused_with_the_reason(rows: dict):
    assert rows["hal"]["status"] == "refused"
    assert "JSON is broken" in rows["hal"]["message"]


@pytest.mark.timeout(900)
def test_feedback_names_the_trap(rows: dict, course: Path):
    page = (course / f"report/feedback/cleo-{example_class.CHAPTER}.html").read_text()
    assert "Hint:" in page and "128" in page


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(SystemExit, match="isn't empty; name a new folder"):
        example_class.make(tmp_path)


def test_the_guide_s_table_has_every_student():
    guide = (ROOT / "docs/instructor.md").read_text()
    table = guide[guide.index("| student |") : guide.index("A test makes this class")]
    assert not [student.name for student in example_class.CLASS if not re.search(rf"\b{student.name}\b", table)]
    assert "a class of nine" in guide and len(example_class.CLASS) == 9


def test_the_example_penalty_takes_a_tenth_for_each_day_begun(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs/examples")
    import late

    rule = late.TenthADay()
    assert [rule.late_submission_penalty("ben", 30, hours * 3600) for hours in (1, 24, 30, 9999)] == [3, 3, 6, 30]

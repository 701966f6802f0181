"""The class that the instructor's guide makes gets the marks that its table promises."""

import csv
import json
import re
from pathlib import Path

import pytest

from autograder.parts import parts_of_chapter
from autograder.worker import sandbox
from scripts import example_class
from tests.project.documents import commands_of
from tests.project.shell import shell
from tests.project.tree import ROOT

GUIDE = (ROOT / "docs/instructor.md").read_text()
PLACE = "/tmp/class"
# The guide's commands on its class, in its order: what comes before grading, nbgrader's grading and after it, ours.
TRY = commands_of(GUIDE[GUIDE.index("## Try it first") : GUIDE.index("| student |")])
MAKE, _cd, *PREPARE, AUTOGRADE, FEEDBACK, EXPORT = TRY
RELEASE, COLLECT, RELEASE_FEEDBACK, AGAIN = (
    "nbgrader release_assignment 01_config",
    "nbgrader collect 01_config",
    "nbgrader release_feedback 01_config",
    "nbgrader generate_assignment 01_config --force",
)
GRADE = "python -m autograder grade submitted --out report --jobs 4 --gradebook"
HERE = (*TRY, RELEASE, COLLECT, RELEASE_FEEDBACK, AGAIN, GRADE)
POINTS = {part.id: part.points for part in parts_of_chapter(example_class.CHAPTER)}
TOGETHER = next(name for name in POINTS if name.endswith("together"))
FULL = sum(POINTS.values())


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course folder after the guide's commands up to collecting."""
    folder = tmp_path_factory.mktemp("class") / "course"
    assert "cleo  two well-known mistakes" in shell(MAKE, swap=(PLACE, str(folder)))
    with (folder / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.Exchange.root = {str(folder.parent / 'exchange')!r}\n")
    (folder.parent / "exchange").mkdir(mode=0o777)
    (folder.parent / "exchange").chmod(0o777)
    for command in PREPARE:
        shell(command, cwd=folder, environment=surroundings(folder))
    assert (folder / "submitted/ivy/01_config/timestamp.txt").read_text() == "2030-01-07 11:29:59"
    return folder


def surroundings(folder: Path) -> dict[str, str]:
    """Variables that keep what the commands write inside the course's folder."""
    return {"MINISGL_HIDDEN": str(folder / "instructor"), "JUPYTER_CONFIG_DIR": str(folder / "jupyter")}


@pytest.fixture(scope="module")
def rows(course: Path) -> dict[str, dict]:
    """Each student's row of the report that the guide's command writes; it ends with 1, since one is refused."""
    gradebook = f"sqlite:///{course / 'gradebook.db'}"
    boxed = "" if sandbox.problem() is None else "--no-sandbox"
    options = {"swap": ("--jobs 4", "--jobs 2"), "more": f"{gradebook} {boxed}", "environment": surroundings(course)}
    told = shell(GRADE, cwd=course, expect=(1,), **options)
    assert "8 graded, 1 refused" in told and "SAWarning" not in told
    report = json.loads((course / "report/report.json").read_text())
    return {row["student"]: row for row in report["submissions"]}


@pytest.fixture(scope="module")
def told(rows: dict, course: Path) -> str:
    """What nbgrader said of two students' work, the quickest to judge; their feedback and everybody's grades are written."""
    for folder in (course / "submitted").iterdir():
        if folder.name not in ("dan", "hal"):
            folder.rename(course / folder.name)
    boxed = "" if sandbox.problem() is None else "--GradeParts.sandboxed=False"
    text, *_ = [
        shell(command, cwd=course, more=boxed if command == AUTOGRADE else "", environment=surroundings(course))
        for command in (AUTOGRADE, FEEDBACK, EXPORT)
    ]
    return text


def lost(row: dict) -> dict[str, str]:
    """The parts without full points, and why; the last check, of all parts together, falls with any of them."""
    missing = {part["id"]: part["status"] for part in row["parts"] if part["points"] < part["max_points"]}
    return {name: status for name, status in missing.items() if name != TOGETHER}


@pytest.mark.timeout(900)
def test_right_work_gets_full_marks(rows: dict):
    assert {rows[name]["points"] for name in ("ada", "ben", "ivy")} == {FULL}


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


@pytest.mark.timeout(900)
def test_nbgrader_s_commands_give_the_same_marks_and_the_reason_for_none(told: str, rows: dict, course: Path):
    assert "hal/01_config/01_config.ipynb can't be read as a notebook and is graded as an empty one" in told
    assert "SAWarning" not in told
    with (course / "grades.csv").open() as file:
        scores = {line["student_id"]: float(line["score"]) for line in csv.DictReader(file)}
    assert scores == {name: pytest.approx(row["points"]) for name, row in rows.items()}
    assert "could not be read" in (course / "feedback/hal/01_config/01_config.html").read_text()


@pytest.mark.timeout(900)
def test_the_exchange_s_commands_work_on_the_class(told: str, course: Path):
    for page in (course / "feedback").glob("*/01_config"):
        (page / "submission_secret.txt").write_text(f"{page.parent.name}: as `nbgrader submit` leaves it in a hub")
    for command in (RELEASE, COLLECT, RELEASE_FEEDBACK, AGAIN):
        shell(command, cwd=course, environment=surroundings(course))
    assert (course.parent / "exchange/minisgl/outbound/01_config/01_config.ipynb").is_file()
    assert len(list((course.parent / "exchange/minisgl/feedback").iterdir())) == 2


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(SystemExit, match="isn't empty; name a new folder"):
        example_class.make(tmp_path)


def test_the_guide_s_table_has_every_student():
    table = GUIDE[GUIDE.index("| student |") : GUIDE.index("A test makes this class")]
    assert not [student.name for student in example_class.CLASS if not re.search(rf"\b{student.name}\b", table)]
    assert "a class of nine" in GUIDE and len(example_class.CLASS) == 9


def test_the_example_penalty_takes_a_tenth_for_each_day_begun(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs/examples")
    import late

    rule = late.TenthADay()
    assert [rule.late_submission_penalty("ben", 30, hours * 3600) for hours in (1, 24, 30, 9999)] == [3, 3, 6, 30]

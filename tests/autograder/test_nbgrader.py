"""nbgrader stays the system of record: its own commands work with our judge and agree with ``grade`` to the point."""

import csv
import html
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from nbgrader.api import Gradebook

from autograder import paths
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find
from autograder.parts import grade_id, parts_of_chapter
from autograder.text.reference import piece
from autograder.text.trees import student_module
from tests.autograder.hand_ins import CHAPTER, OWN, HandIn, fill, mixed_class

pytestmark = pytest.mark.sandbox
WRITTEN = [part for part in parts_of_chapter(CHAPTER) if not part.together]


class Course:
    """A course folder of its own, with nbgrader's commands."""

    def __init__(self, root):
        self.root = root
        shutil.copy(paths.HOME / "nbgrader_config.py", root)
        shutil.copytree(paths.HOME / "solutions" / CHAPTER, root / "solutions" / CHAPTER)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(paths.HOME),
            "MINISGL_HIDDEN": str(root / "instructor"),
            "JUPYTER_CONFIG_DIR": str(root / "jupyter"),
            "PYTHONWARNINGS": "ignore",
        }

    def nbgrader(self, *words, expect=0):
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert run.returncode == expect, run.stdout + run.stderr
        return run.stdout + run.stderr

    def release(self):
        return json.loads((self.root / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb").read_text())

    def hand_in(self, student, hand_in):
        hand_in.write(self.root / "submitted" / student)

    def gradebook(self):
        return Gradebook(f"sqlite:///{self.root / 'gradebook.db'}")

    def scores(self):
        self.nbgrader("export")
        with (self.root / "grades.csv").open() as file:
            # nbgrader adds up floats: 3.8200000000000003
            return {line["student_id"]: round(float(line["score"]), 6) for line in csv.DictReader(file)}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    made = Course(tmp_path_factory.mktemp("course"))
    made.nbgrader("generate_assignment", CHAPTER)
    for student, hand_in in mixed_class(made.release).items():
        made.hand_in(student, hand_in)
    made.told = made.nbgrader("autograde", CHAPTER)
    return made


@pytest.fixture(scope="module")
def found(course):
    return {each.student: each for each in find([course.root / "submitted"], CHAPTER)}


@pytest.fixture(scope="module")
def rows(course, found):
    out = course.root / "out"
    graded = grade(list(found.values()), out, jobs=2, hidden_folder=course.root / "instructor", show_bar=False)
    return {row["student"]: row for row in graded}


@pytest.mark.timeout(900)
def test_nbgrader_and_grade_agree_to_the_point_on_every_shape_of_hand_in(course, rows):
    scores = course.scores()
    assert len(scores) == len(rows) == 30
    assert scores == {student: row["points"] for student, row in rows.items()}
    expected = {student: hand_in.points for student, hand_in in mixed_class(course.release).items()}
    assert {student: score for student, score in scores.items() if expected[student] is not None} == {
        student: points for student, points in expected.items() if points is not None
    }


def test_a_zip_a_notebook_and_a_collected_download_hold_the_same_work(course, found, tmp_path):
    """A mark depends on the work alone."""
    work = {student: each.work for student, each in found.items() if not each.refusal}
    download = tmp_path / "downloaded" / CHAPTER / "archive"
    for folder in (tmp_path / "zips", tmp_path / "flat", download):
        folder.mkdir(parents=True)
    with zipfile.ZipFile(download / "moodle.zip", "w") as moodle:
        for number, (student, hand_in) in enumerate(sorted(mixed_class(course.release).items())):
            home = course.root / "submitted" / student
            with zipfile.ZipFile(tmp_path / "zips" / f"{student}.zip", "w") as archive:
                for name in hand_in.files:
                    archive.write(home / name, f"my work/{name}")
            moodle.write(tmp_path / "zips" / f"{student}.zip", f"{student}_{number}_assignsubmission_file_/zoe.zip")
            if len(hand_in.files) == 1:
                shutil.copy(home / next(iter(hand_in.files)), tmp_path / "flat" / f"{student}.ipynb")
    assert {each.student: each.work for each in find([tmp_path / "zips"], CHAPTER) if not each.refusal} == work
    flat = {each.student: each.work for each in find([tmp_path / "flat"], CHAPTER) if not each.refusal}
    assert len(flat) > 20 and flat == {student: work[student] for student in flat}
    told = course.nbgrader("zip_collect", CHAPTER, f"--CourseDirectory.root={tmp_path}")
    assert "other-chapter: nothing in it is of 01_config; it holds 02_decoder" in told
    collected = {each.student: each.work for each in find([tmp_path / "submitted"], CHAPTER)}
    assert sorted(work.keys() - collected.keys()) == ["modules", "other-chapter"]
    assert collected == {student: work[student] for student in collected}


def test_the_same_parts_are_read_from_a_module_tree(found, tmp_path):
    for student, each in found.items():
        place = tmp_path / student / "minisgl" / "models" / "config.py"
        place.parent.mkdir(parents=True)
        place.write_text(student_module(each.work, "models/config.py"))
    trees = {each.student: each.work.pieces for each in find([tmp_path], CHAPTER)}
    assert trees == {student: each.work.pieces for student, each in found.items()}


@pytest.mark.parametrize(
    ("student", "words"),
    [
        ("no-magic", "head_dim_of stands in a cell without %%module; head its cell with: %%module models/config.py head_dim"),
        ("writefile", "head_dim_of stands under %%writefile; head its cell with"),
        ("markdown", "head_dim_of stands in a markdown cell; head its cell with"),
        ("other-name", "head_dim_of is missing; there is a head_dims_of: give it the name that the task says"),
        ("untouched-beside", "left aside: untouched-beside/01_config/01_config.ipynb (nothing is written in it)"),
        ("older-second", "left aside: older-second/01_config/01_config (1).ipynb (older-second/"),
        ("other-chapter", "nothing in it is of 01_config; it holds 02_decoder"),
        ("damaged", "isn't a notebook: its JSON is broken"),
    ],
)
def test_work_that_cannot_count_says_why_by_both_routes(course, rows, student, words):
    page = (course.root / "out" / "feedback" / f"{student}-{CHAPTER}.html").read_text()
    assert words in html.unescape(page)
    autograded = (course.root / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb").read_text()
    assert words in html.unescape(autograded)


@pytest.mark.timeout(900)
def test_every_grade_is_a_finite_number_within_its_cell(course):
    with course.gradebook() as gradebook:
        for submission in gradebook.assignment_submissions(CHAPTER):
            for grade_row in submission.notebooks[0].grades:
                assert 0 <= grade_row.auto_score <= grade_row.cell.max_score
                assert not grade_row.needs_manual_grade
    book = json.loads((course.root / "autograded" / "deleted-both" / CHAPTER / f"{CHAPTER}.ipynb").read_text())
    outputs = {c["metadata"]["nbgrader"]["grade_id"]: c["outputs"] for c in book["cells"] if "nbgrader" in c["metadata"]
               and c["metadata"]["nbgrader"].get("grade")}  # fmt: skip
    assert set(outputs) == {grade_id(part) for part in parts_of_chapter(CHAPTER)}
    for told, number in outputs.values():
        assert (told["output_type"], number["output_type"]) == ("display_data", "execute_result")
        plain, markup = ("".join(number["data"][f"text/{kind}"]) for kind in ("plain", "html"))
        assert 0 <= float(plain) < 100 and f"Earned: {float(plain):g} of" in markup


@pytest.mark.timeout(900)
def test_manual_comments_late_penalties_and_feedback_work_beside_it(course):
    with course.gradebook() as gradebook:
        cell = gradebook.find_grade("check-config-head_dim", CHAPTER, CHAPTER, "blank")
        cell.manual_score = 1.5
        comment = gradebook.find_comment("part-config-head_dim", CHAPTER, CHAPTER, "blank")
        comment.manual_comment = "Nearly: see me."
        submission = gradebook.find_submission(CHAPTER, "right")
        submission.notebooks[0].late_submission_penalty = 3.0
        gradebook.db.commit()
    course.nbgrader("generate_feedback", CHAPTER)
    page = (course.root / "feedback" / "blank" / CHAPTER / f"{CHAPTER}.html").read_text()
    assert "Nearly: see me." in page
    scores = course.scores()
    assert scores["blank"] == 1.5
    assert scores["right"] == sum(part.points for part in parts_of_chapter(CHAPTER)) - 3.0


@pytest.mark.timeout(900)
def test_feedback_says_what_was_expected_and_nothing_hidden(course, rows):
    wrong = next(name for name, row in rows.items() if any(part["status"] == "failed" for part in row["parts"]))
    course.nbgrader("generate_feedback", CHAPTER, "--force")
    page = (course.root / "feedback" / wrong / CHAPTER / f"{CHAPTER}.html").read_text()
    assert "Hint:" in page and "checks passed" in page
    seed = (course.root / "instructor" / "seed").read_text().strip()
    assert seed not in page


@pytest.mark.timeout(900)
def test_validate_gives_the_same_answer_with_the_reason(course):
    place = course.root / "notebooks" / CHAPTER / "mine.ipynb"
    wrong = "def head_dim_of(hf_config):\n    return hf_config.hidden_size // hf_config.num_attention_heads\n"
    place.write_text(json.dumps(fill(course.release(), {"config.head_dim": wrong})))
    shown = course.nbgrader("validate", str(place))
    assert "VALIDATION FAILED ON 11 CELL(S)" in shown
    assert "expected: 128" in shown and "not written yet" in shown
    right = {part.id: piece(part.id) for part in WRITTEN}
    place.write_text(json.dumps(fill(course.release(), right)))
    assert "Success! Your notebook passes all the tests." in course.nbgrader("validate", str(place))


@pytest.mark.timeout(900)
def test_rows_are_written_into_the_gradebook_and_keep_manual_scores(course, rows):
    from autograder.classroom.gradebook import write_rows

    with course.gradebook() as gradebook:
        gradebook.find_grade("check-config-kv_bytes", CHAPTER, CHAPTER, "right").auto_score = 0
        gradebook.find_grade("check-config-kv_bytes", CHAPTER, CHAPTER, "blank").manual_score = 1.0
        gradebook.db.commit()
    write_rows(list(rows.values()), f"sqlite:///{course.root / 'gradebook.db'}")
    with course.gradebook() as gradebook:
        assert gradebook.find_grade("check-config-kv_bytes", CHAPTER, CHAPTER, "right").auto_score == 1
        kept = gradebook.find_grade("check-config-kv_bytes", CHAPTER, CHAPTER, "blank")
        assert (kept.auto_score, kept.manual_score, kept.needs_manual_grade) == (0, 1.0, True)
    with pytest.raises(ValueError, match="run: nbgrader generate_assignment 02_decoder"):
        write_rows([{**rows["blank"], "chapter": "02_decoder"}], f"sqlite:///{course.root / 'gradebook.db'}")


@pytest.mark.timeout(900)
def test_a_notebook_saved_half_way_gets_0_and_is_told_why(tmp_path):
    course = Course(tmp_path)
    course.nbgrader("generate_assignment", CHAPTER)
    whole = json.dumps(course.release())
    damaged = {"half": whole[: len(whole) // 2], "empty": "", "other": "[1, 2]"}
    for student, text in damaged.items():
        course.hand_in(student, HandIn({OWN: text.encode()}))
    shown = course.nbgrader("autograde", CHAPTER)
    assert shown.count("can't be read as a notebook and is graded as an empty one") == 3 and "Traceback" not in shown
    assert course.scores() == dict.fromkeys(damaged, 0)
    course.nbgrader("generate_feedback", CHAPTER)
    for student, text in damaged.items():
        assert (course.root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb").read_text() == text
        page = (course.root / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text()
        assert "This file could not be read as a notebook" in page

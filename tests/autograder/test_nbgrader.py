"""nbgrader stays the system of record: its own commands work with our judge and agree with ``grade`` to the point."""

import csv
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook

from autograder import paths
from autograder.authoring import wrong_solutions
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find
from autograder.parts import BY_ID, grade_id, parts_of_chapter
from autograder.text.reference import piece
from autograder.text.work import read_cell

pytestmark = pytest.mark.sandbox
CHAPTER = "01_config"
WRITTEN = [part for part in parts_of_chapter(CHAPTER) if not part.together]
CHEAP = ["config.head_dim", "config.kv_bytes", "config.biases", "config.moe"]


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

    def hand_in(self, student, book):
        folder = self.root / "submitted" / student / CHAPTER
        folder.mkdir(parents=True)
        (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(book))

    def gradebook(self):
        return Gradebook(f"sqlite:///{self.root / 'gradebook.db'}")

    def scores(self):
        self.nbgrader("export")
        with (self.root / "grades.csv").open() as file:
            # nbgrader adds up floats: 3.8200000000000003
            return {line["student_id"]: round(float(line["score"]), 6) for line in csv.DictReader(file)}


def fill(book, texts):
    """Put texts into a release notebook's part cells."""
    for cell in book["cells"]:
        found = read_cell("".join(cell["source"])) if cell["cell_type"] == "code" else None
        if found and f"config.{found[1]}" in texts:
            cell["source"] = f"%%module {found[0]} {found[1]}\n" + texts[f"config.{found[1]}"]
    return book


def without(book, *grade_ids):
    book["cells"] = [c for c in book["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") not in grade_ids]
    return book


def mixed_class(release):
    """Thirty submissions: right, blank, single mistakes, damaged cells, odd text."""
    right = {part.id: piece(part.id) for part in WRITTEN}
    source = random.Random(3)
    wrong = [entry for entry in wrong_solutions.entries() if entry["part"] in CHEAP]
    made = {"right": fill(release(), right), "blank": release()}
    made["no-metadata"] = fill(release(), {name: right[name] for name in CHEAP})
    for cell in made["no-metadata"]["cells"]:
        cell["metadata"] = {}
    made["deleted-check"] = without(fill(release(), {CHEAP[0]: right[CHEAP[0]]}), "check-config-head_dim")
    gone = [f"{kind}-config-{name}" for kind in ("part", "check") for name in ("moe", "biases", "sizes")]
    made["deleted-both"] = without(fill(release(), {name: right[name] for name in CHEAP[:2]}), *gone)
    made["forged-output"] = fill(release(), {})
    for cell in made["forged-output"]["cells"]:
        if cell["cell_type"] == "code":
            result = {
                "output_type": "execute_result",
                "data": {"text/plain": "1000"},
                "metadata": {},
                "execution_count": 1,
            }
            cell["outputs"] = [result]
    made["more-points"] = fill(release(), {CHEAP[0]: right[CHEAP[0]]})
    for cell in made["more-points"]["cells"]:
        facts = cell["metadata"].get("nbgrader", {})
        if "points" in facts:
            facts["points"], facts["locked"] = 1e9, False
    made["edited-check"] = fill(release(), {CHEAP[0]: right[CHEAP[0]]})
    for cell in made["edited-check"]["cells"]:
        if "".join(cell["source"]).startswith("check("):
            cell["source"] = "2.0"
    while len(made) < 30:
        chosen = source.sample(CHEAP, source.randint(1, 2))
        texts = {name: right[name] for name in chosen}
        entry = source.choice(wrong)
        if source.random() < 0.7:
            texts[entry["part"]] = wrong_solutions.text_of(entry)
        made[f"student-{len(made):02}"] = fill(release(), texts)
    return made


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    made = Course(tmp_path_factory.mktemp("course"))
    made.nbgrader("generate_assignment", CHAPTER)
    for student, book in mixed_class(made.release).items():
        made.hand_in(student, book)
    made.nbgrader("autograde", CHAPTER)
    return made


@pytest.fixture(scope="module")
def rows(course):
    found = find([course.root / "submitted"])
    graded = grade(found, course.root / "out", jobs=2, hidden_folder=course.root / "instructor", show_bar=False)
    return {row["student"]: row for row in graded}


@pytest.mark.timeout(900)
def test_nbgrader_and_grade_agree_to_the_point_on_a_mixed_class(course, rows):
    scores = course.scores()
    assert len(scores) == len(rows) == 30
    assert scores == {student: row["points"] for student, row in rows.items()}
    assert scores["right"] == sum(part.points for part in parts_of_chapter(CHAPTER))
    assert scores["blank"] == scores["forged-output"] == 0
    assert scores["deleted-check"] == scores["more-points"] == scores["edited-check"] == 2
    assert scores["no-metadata"] == sum(BY_ID[name].points for name in CHEAP)


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
        course.hand_in(student, course.release())
        (course.root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb").write_text(text)
    shown = course.nbgrader("autograde", CHAPTER)
    assert shown.count("can't be read as a notebook and is graded as an empty one") == 3 and "Traceback" not in shown
    assert course.scores() == dict.fromkeys(damaged, 0)
    course.nbgrader("generate_feedback", CHAPTER)
    for student, text in damaged.items():
        assert (course.root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb").read_text() == text
        page = (course.root / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text()
        assert "This file could not be read as a notebook" in page

"""A simulated class from the libraries of right and wrong solutions gets the marks that it must get."""

import json

import pytest

from autograder.authoring.simulated import RIGHT, WRONG, Choice, library, students, write_class, wrong_marks
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find

NUM_STUDENTS = 30


def test_the_same_seed_draws_the_same_class_of_every_kind():
    drawn = dict(students("01_config", 200))
    assert drawn == dict(students("01_config", 200)) != dict(students("01_config", 200, seed=1))
    kinds = [choice.kind for choices in drawn.values() for choice in choices.values()]
    assert kinds.count(RIGHT) > kinds.count(WRONG) > kinds.count("missing") > 0
    used = {choice.id for choices in drawn.values() for choice in choices.values()} - {"missing"}
    assert used == {choice.id for versions in library("01_config").values() for choice in versions}


def row(student, points, part="config.moe", full=2.0):
    part = {"id": part, "points": points, "max_points": full, "message": ""}
    return {"student": student, "points": points, "parts": [part]}


def test_each_kind_of_wrong_mark_is_found():
    right, wrong = ({"config.moe": Choice("x", kind, "pass")} for kind in (RIGHT, WRONG))
    assert wrong_marks([row("a", 2.0)], {"a": right}) == []
    assert "it is right" in wrong_marks([row("a", 1.0)], {"a": right})[0]
    assert "it is wrong" in wrong_marks([row("a", 2.0)], {"a": wrong})[0]
    assert "in another submission" in wrong_marks([row("a", 1.0), row("b", 0.5)], {"a": wrong, "b": wrong})[0]
    assert wrong_marks([], {"a": right}) == ["a has no row"]
    missing = Choice("missing", "missing")
    both = {"config.fields": right["config.moe"], "config.moe": missing}
    assert "it is wrong" in wrong_marks([row("a", 2.0, "config.together")], {"a": both})[0]
    both["config.moe"] = wrong["config.moe"]
    assert wrong_marks([row("a", 2.0, "config.together")], {"a": both}) == []
    assert "don't add up" in wrong_marks([{**row("a", 2.0), "points": 3.0}], {"a": right})[0]


@pytest.mark.sandbox
@pytest.mark.timeout(1200)
def test_a_class_gets_its_marks(tmp_path):
    drawn = dict(students("01_config", NUM_STUDENTS, most_parts=2))
    write_class(tmp_path / "class", drawn)
    submissions = find([tmp_path / "class"], "01_config")
    rows = grade(submissions, tmp_path / "out", jobs=2, hidden_folder=tmp_path / "instructor", show_bar=False)
    assert wrong_marks(rows, drawn) == []
    assert len(json.loads((tmp_path / "out" / "report.json").read_text())["submissions"]) == NUM_STUDENTS

"""Work that only looks as if it were partly right earns nothing."""

import re
import zipfile
import zlib
from collections import Counter
from dataclasses import replace

import pytest

from autograder import paths
from autograder.classroom import grading
from autograder.classroom.grading import payload_of
from autograder.classroom.submissions import Submission, find
from autograder.judge.judge_errors import JudgeError
from autograder.judge.results import TestResult, summarize, without_points, worth_nothing
from autograder.parts import PARTS, parts_of_chapter
from autograder.student.display import result_text
from autograder.text.work import Work


def results(visible: str, hidden: str, refusal: str = "passed"):
    tests = [TestResult("a::test_x[small]", visible, "any size")]
    tests += [TestResult(f"a::test_x[hidden-{number}]", hidden, "any size", hidden=True) for number in (1, 2)]
    return [*tests, TestResult("a::test_refusal", refusal, "refused")]


def test_answers_to_the_shown_cases_alone_are_worth_nothing():
    assert "none of the hidden ones (any size)" in worth_nothing(results("passed", "failed"), {})
    assert "none of the hidden ones" in worth_nothing(results("passed", "time_limit"), {})


def test_work_that_is_wrong_in_both_keeps_its_other_points():
    tests = results("failed", "failed")
    assert worth_nothing(tests, {"a::test_refusal": ["error:ConfigError"], "a::test_x[small]": ["abc"]}) == ""
    assert summarize("config.sizes", 4, tests).points == 2  # one of two checks


def test_right_work_is_worth_its_points():
    assert worth_nothing(results("passed", "passed"), {"a::test_refusal": ["error:ConfigError"]}) == ""


def test_refusing_everything_is_worth_nothing():
    tests = [TestResult("a::test_1", "failed", "reads"), TestResult("a::test_2", "passed", "refuses")]
    digests = {"a::test_1": ["error:ConfigError"], "a::test_2": ["error:ConfigError", "error:ConfigError"]}
    reason = worth_nothing(tests, digests)
    assert "whatever it is asked" in reason
    assert without_points(summarize("config.sizes", 4, tests), reason).points == 0
    assert worth_nothing(tests, {**digests, "a::test_2": ["abc"]}) == ""


def check_of(name: str, *statuses: str, gist: bool = False, weight: float = 1):
    tests = [TestResult(f"a::{name}[{number}]", status, name) for number, status in enumerate(statuses)]
    return [replace(test, gist=gist, weight=weight) for test in tests]


@pytest.mark.parametrize(
    ("gist", "others", "points"),
    [
        (["passed"] * 4, [], 10),
        (["failed"] * 4, [], 5),  # half hangs on it, whatever the number of cases
        (["failed", "passed", "passed", "passed"], [], 8.5),  # and any failure is felt
        (["passed"] * 4, ["small"], 8.5),
        (["passed"] * 4, ["big"], 7.14),
        (["passed"] * 4, ["small", "big"], 5.64),
        (["passed"] * 4, ["small", "middle", "big"], 5),  # together no more than their half
        (["failed"] * 4, ["small", "middle", "big"], 0),
    ],
)
def test_marks_follow_gravity_and_the_costs_add_up_to_what_the_mark_lacks(gist, others, points):
    tests = check_of("gist", *gist, gist=True)
    for name, weight in (("small", 1), ("middle", 2), ("big", 4)):
        tests += check_of(name, *["failed" if name in others else "passed"] * 3, weight=weight)
    result = summarize("config.sizes", 10, tests)
    assert result.points == points
    assert round(sum(test.cost for test in result.tests), 2) == round(10 - points, 2)
    shown = [float(cost) for cost in re.findall(r"\[([\d.]+) points? lost\]", result_text(result))]
    assert round(sum(shown), 2) == round(10 - points, 2)


def test_costs_are_whole_cents_that_add_up():
    result = summarize("config.sizes", 1, check_of("thirds", "failed", "failed", "failed"))
    assert sorted(test.cost for test in result.tests) == [0.33, 0.33, 0.34]
    assert result.as_report()["tests"][0]["cost"] == 0.34


def test_every_part_names_the_behaviour_it_exists_for():
    marks = [mark for path in paths.checks_root().glob("test_*.py") for mark in part_marks(path)]
    named = Counter(part for part, is_gist in marks if is_gist)
    assert named == Counter(part.id for part in PARTS)


def part_marks(path):
    """Return part and whether it is its gist, of each check of a file."""
    for name, keywords in re.findall(r"^@pytest\.mark\.part\(\"([\w.]+)\"(.*)\)$", path.read_text(), re.MULTILINE):
        yield name, "gist=True" in keywords


def test_a_part_that_has_nothing_to_refuse_only_fails():
    tests = [TestResult("a::test_1", "failed", "adds"), TestResult("a::test_2", "failed", "takes away")]
    digests = {"a::test_1": ["error:TypeError"], "a::test_2": ["error:TypeError"]}
    assert worth_nothing(tests, digests) == ""
    silent = TestResult("a::test_3", "passed", "asks nothing")
    assert worth_nothing([*tests, silent], digests) == ""


class Broken:
    """A judge that fails on one student's work."""

    def __init__(self, ok: bool) -> None:
        self.ok = ok

    def judge(self, work, parts):
        if ("config.sizes" in work.pieces and work.pieces["config.sizes"] == "hostile") or not self.ok:
            raise JudgeError("canary-of-a-hidden-case")
        return [summarize(part.id, part.points, []) for part in parts]


@pytest.mark.parametrize("ok", [True, False])
def test_a_submission_that_breaks_the_grader_is_refused_and_a_broken_installation_is_not_blamed_on_it(
    monkeypatch, capsys, ok
):
    monkeypatch.setattr(grading, "_judge", lambda payload: Broken(ok))
    payload = payload_of(Submission("eve", "01_config", Work({"config.sizes": "hostile"})), True, {})
    if not ok:
        with pytest.raises(JudgeError):
            grading.grade_one(payload)
        return
    row = grading.grade_one(payload)
    assert (row["status"], row["points"], row["max_points"]) == (
        "refused",
        0.0,
        sum(part.points for part in parts_of_chapter("01_config")),
    )
    assert "canary" not in str(row) and "canary" in capsys.readouterr().err


def test_a_zip_with_a_damaged_entry_is_refused(tmp_path):
    path = tmp_path / "eve.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("01_config.ipynb", zlib.compress(bytes(range(256)) * 40))
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)
    (found,) = find([path])
    assert "can't be read" in found.refusal or "isn't" in found.refusal


def test_many_large_files_are_refused(tmp_path):
    for number in range(4):
        (tmp_path / "eve" / str(number)).mkdir(parents=True)
        (tmp_path / "eve" / str(number) / "config.py").write_bytes(b"#" * (19 << 20))
    (tmp_path / "eve" / "01_config.ipynb").write_text('{"cells": []}')
    (found,) = find([tmp_path / "eve"])
    assert "60 MiB together" in found.refusal


def test_a_link_in_the_place_of_the_notebook_is_named(tmp_path):
    (tmp_path / "eve").mkdir()
    (tmp_path / "eve" / "01_config.ipynb").symlink_to("/etc/passwd")
    found = find([tmp_path / "eve"])
    assert all("links are never followed" in each.refusal for each in found) and found

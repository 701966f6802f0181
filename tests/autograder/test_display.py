"""What a result looks like to a student: one failure once, with the cases it is about, and never a hidden one."""

import re

import pytest

from autograder.judge.results import TestResult, summarize
from autograder.parts import BY_ID, parts_judged_with
from autograder.student import display, progress
from autograder.student.display import result_html, result_text, status_text
from autograder.student.workspace import Workspace

SHOWS = pytest.mark.parametrize("show", [result_text, result_html])
RAISED = "your code raised TypeError: forward() takes 1 argument but 2 were given\nin forward (a.py, line 3): x = f(x)"


def failed(test_id, title, message, hint="", *, hidden=False):
    return TestResult(test_id, "failed", title, message, hint, hidden=hidden)


def result(*tests):
    return summarize("decoder.layer", 3, [TestResult("a::other", "passed", "it exists"), *tests])


@SHOWS
def test_one_error_in_many_checks_is_shown_once(show):
    tests = [failed(f"a::computes[{case}]", "It computes.", RAISED) for case in ("llama", "qwen3")]
    tests += [failed(f"a::logits[{case}]", "It gives logits.", RAISED) for case in ("llama", "qwen2-tied")]
    tests += [failed("a::alone", "It stands alone.", RAISED), failed("a::x", "It is right.", "3 isn't 4", "count")]
    shown = show(result(*tests))
    assert shown.count("your code raised") == shown.count("3 isn") == 1
    assert "It computes. (2 cases: llama, qwen3)" in shown
    line = "… and 3 more checks fail in the same way: It gives logits. (2 cases: llama, qwen2-tied); It stands alone"
    assert line in shown


@SHOWS
def test_one_error_with_other_sizes_is_still_one_error(show):
    sizes = [RAISED.replace("2 were", f"{number} were") for number in (2, 30)]
    tests = [failed(f"a::{number}", f"Title {number}.", message) for number, message in enumerate(sizes)]
    shown = show(result(*tests))
    assert shown.count("your code raised") == 1 and "… and 1 more check fails in the same way: Title 1" in shown
    values = [failed(f"a::{number}", "Title.", f"{number} apples") for number in (1, 2)]
    assert show(result(*values)).count("apples") == 2


@SHOWS
def test_a_list_of_keys_with_other_sizes_is_shown_once(show):
    lists = [f"{number} keys differ:\nmissing  layers.… ({number} keys)" for number in (24, 36)]
    shown = show(result(*[failed(f"a::b[{text[:2]}]", "It has keys.", text) for text in lists]))
    assert shown.count("keys differ") == 1 and "It has keys. (2 cases: 24, 36)" in shown


def test_only_the_first_failure_is_open():
    tests = [failed(f"a::b[{case}]", "It computes.", f"{case} differs") for case in ("llama", "qwen2", "qwen3")]
    shown = result_html(result(*tests, failed("a::c", "It adds.", "wrong")))
    assert shown.count("<details open>") == 1 and shown.count("<details>") == 3


@SHOWS
def test_a_case_is_named_beside_its_title_and_a_hidden_one_never(show):
    tests = [failed("a::b[qwen3-moe-mixed]", "It computes.", "wrong")]
    tests += [
        failed(f"a::b[secret-{number}]", "It computes.", "it fails on a hidden case", hidden=True) for number in "12"
    ]
    tests += [failed("a::c[secret-3]", "It adds.", "it fails on a hidden case", hidden=True)]
    shown = show(result(*tests))
    assert "It computes. (qwen3-moe-mixed)" in shown and "secret" not in shown
    assert "It computes. (2 cases)" in shown and "It adds." in shown and "same way" not in shown
    mixed = [
        failed("a::b[shown]", "It computes.", "wrong"),
        failed("a::b[secret-1]", "It computes.", "wrong", hidden=True),
    ]
    assert "It computes. (shown)" in show(result(*mixed)) and "secret" not in show(result(*mixed))


def test_the_report_keeps_every_failure():
    tests = [failed(f"a::computes[{number}]", "It computes.", RAISED) for number in range(9)]
    reported = result(*tests).as_report()["tests"]
    assert len(reported) == 10 and [test["message"] for test in reported[1:]] == [RAISED] * 9


def test_no_line_is_broken_inside_a_word_where_there_is_a_gap(monkeypatch):
    shown = [result_html(result(failed("a::c", "It adds.", "wrong")))]
    monkeypatch.setattr(display, "_show", lambda text, markup: shown.append(markup))
    display.show_text("a message", title="Title")
    display.show_layers("config.rope", [("A nudge", "a hint"), ("The steps", "more")])
    tags = re.findall(r"<pre[^>]*>", "".join(shown))
    style = 'style="white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"'
    assert len(tags) == 4 and all(style in tag for tag in tags)


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path / "workspace")
    made.ensure()
    return made


def line_of(workspace, part_id):
    shown = status_text(progress.rows(workspace))
    (line,) = re.findall(rf"^ *(\S +{re.escape(part_id)} .*)$", shown, re.MULTILINE)
    return line


def test_a_part_that_judges_others_waits_for_them_and_is_not_unwritten(workspace):
    together = BY_ID["decoder.together"]
    judged = parts_judged_with(together)
    assert line_of(workspace, together.id).endswith(f"waits for {len(judged)} other parts")
    for part in judged[:-2]:
        workspace.write_cell(part.module, "\n".join(f"class {name}:\n    pass\n" for name in part.names))
    left = ", ".join(part.id for part in judged[-2:])
    assert line_of(workspace, together.id).endswith(f"waits for {left}")
    assert line_of(workspace, judged[-1].id).endswith("not written")


def test_what_opens_keeps_its_triangle_on_feedback_pages():
    shown = result_html(result(failed("a::b", "It computes.", "wrong")))
    assert "<details open><summary style=\"display:list-item;" in shown


def test_points_are_a_number_to_nbgrader_and_a_sentence_to_a_person():
    earned = display.Points(1 / 3, 2)
    assert earned == 0.33 and earned.bundle()["text/plain"] == repr(0.33) and earned + 1 == 1.33
    assert "Earned: 0.33 of 2 points" in earned.bundle()["text/html"]
    assert "Earned: 0 points" in display.Points(0.0).bundle()["text/html"]

"""One mistake costs one part, and every kind of unfinished work is told for what it is."""

import pytest

from autograder import paths
from autograder.judge.cases import HiddenCases
from autograder.judge.check_items import is_hidden, part_id
from autograder.judge.check_run import CheckRun
from autograder.judge.checking import failure_of
from autograder.judge.judge import reference_work
from autograder.parts import BY_ID, PARTS, parts_of_chapter
from autograder.text.trees import prerequisites, tree_for
from autograder.text.work import Work
from autograder.worker.limits import Limits
from autograder.worker.outcome import Outcome

HEAD_DIM, KV_BYTES, TOGETHER = BY_ID["config.head_dim"], BY_ID["config.kv_bytes"], BY_ID["config.together"]
CHAPTER = parts_of_chapter("01_config")
WRONG = "def head_dim_of(hf_config):\n    return hf_config.hidden_size // hf_config.num_attention_heads\n"


@pytest.fixture
def work():
    return reference_work(CHAPTER)


def test_one_wrong_part_costs_itself_and_what_all_parts_do_together(judge, work):
    work.pieces[HEAD_DIM.id] = WRONG
    results = {result.id: result for result in judge.judge(work, [HEAD_DIM, KV_BYTES, TOGETHER])}
    assert results[HEAD_DIM.id].status == "failed" and 0 < results[HEAD_DIM.id].points < HEAD_DIM.points
    assert results[KV_BYTES.id].status == "passed" and results[KV_BYTES.id].points == KV_BYTES.points
    assert results[TOGETHER.id].status == "failed"
    failed = [test for test in results[HEAD_DIM.id].tests if test.status != "passed"]
    assert any("expected: 128" in test.message and "came:     64" in test.message for test in failed)
    assert all(test.hint for test in failed)


@pytest.mark.parametrize(
    ("text", "status", "word"),
    [
        (None, "not_written", "not written yet"),
        ("def head_dim_of(h):\n    raise NotImplementedError()\n", "not_written", "still raises NotImplementedError"),
        ("def head_dim_of(h):\n    if h:\n        raise NotImplementedError()\n", "not_written", "isn't written yet"),
        ("def head_dim_of(h)\n    return 1\n", "failed", "syntax error in line 1"),
        ("def head_dim(h):\n    return 1\n", "failed", "must define head_dim_of"),
        ("def head_dim_of():\n    return 1\n", "failed", "TypeError"),
        ("import nothing_of_this_name\ndef head_dim_of(h):\n    return 1\n", "failed", "ModuleNotFoundError"),
    ],
)
def test_unfinished_work_is_told_in_words(judge, work, text, status, word):
    if text is None:
        del work.pieces[HEAD_DIM.id]
    else:
        work.pieces[HEAD_DIM.id] = text
    (result,) = judge.judge(work, [HEAD_DIM])
    assert (result.status, result.points) == (status, 0.0)
    assert word in result.message + "".join(test.message for test in result.tests)


def test_together_waits_for_every_part(judge, work):
    del work.pieces["config.moe"]
    (result,) = judge.judge(work, [TOGETHER])
    assert result.status == "not_written" and "write config.moe first" in result.message


def test_together_takes_nothing_from_the_reference_in_the_place_of_a_broken_part(judge, work):
    work.pieces["config.moe"] = "def moe_fields_of(hf_config, architecture)\n    return {}\n"
    (result,) = judge.judge(work, [TOGETHER])
    assert result.points == 0 and "mend the syntax of config.moe first" in result.message


def test_help_earns_nothing(judge, work):
    work.helped.add(HEAD_DIM.id)
    (result,) = judge.judge(work, [HEAD_DIM])
    assert (result.points, result.helped) == (0.0, True)


def test_problems_of_reading_are_refused(judge):
    (result,) = judge.judge(Work(problems={HEAD_DIM.id: "too long"}), [HEAD_DIM])
    assert (result.status, result.points) == ("refused", 0.0)


def test_judging_twice_gives_the_same(judge, work):
    work.pieces[HEAD_DIM.id] = WRONG
    assert judge.judge(work, [HEAD_DIM, KV_BYTES]) == judge.judge(work, [HEAD_DIM, KV_BYTES])


def test_a_parts_tree_is_the_references_but_for_that_part(work):
    work.pieces[HEAD_DIM.id] = WRONG
    work.pieces["config.sizes"] = "def sizes_of(h):\n    return 'mine'\n"
    files = tree_for(work, HEAD_DIM)
    assert "hidden_size // hf_config.num_attention_heads\n" in files["models/config.py"]
    assert "'mine'" not in files["models/config.py"]
    assert "'mine'" in tree_for(work, TOGETHER)["models/config.py"]


def test_prerequisites_go_all_the_way():
    ids = [part.id for part in prerequisites(BY_ID["config.kv_bytes"])]
    assert {"config.model_config", "config.rope", "config.rope_parameters"} <= set(ids)


STATEFUL = """
{right}
ASKED, RIGHT = [], head_dim_of
def head_dim_of(hf_config):
    ASKED.append(1)
    if len(ASKED) > 1:
        {trouble}
    return RIGHT(hf_config)
"""


@pytest.mark.parametrize("trouble", ["return 1", "import os; os._exit(0)"])
def test_what_an_earlier_call_spoils_costs_the_tests_that_call_twice_and_no_other(judge, work, trouble):
    work.pieces[HEAD_DIM.id] = STATEFUL.format(right=work.pieces[HEAD_DIM.id], trouble=trouble)
    first, second = judge.judge(work, [HEAD_DIM]), judge.judge(work, [HEAD_DIM])
    assert 0 < first[0].points < HEAD_DIM.points and first == second


def test_a_left_over_breakpoint_does_nothing(judge, work):
    work.pieces[HEAD_DIM.id] = work.pieces[HEAD_DIM.id].replace("    head_dim = ", "    breakpoint()\n    head_dim = ", 1)
    assert "breakpoint()" in work.pieces[HEAD_DIM.id]
    assert judge.judge(work, [HEAD_DIM])[0].points == HEAD_DIM.points


SLOW = """
{right}
RIGHT = head_dim_of
def head_dim_of(hf_config):
    import time
    time.sleep(0.3)
    return RIGHT(hf_config)
"""


def test_a_part_whose_answers_take_long_is_left_out_after_a_while(monkeypatch, judge, work):
    work.pieces[HEAD_DIM.id] = SLOW.format(right=work.pieces[HEAD_DIM.id])
    assert judge.judge(work, [HEAD_DIM])[0].status == "passed"
    monkeypatch.setattr("autograder.judge.check_run.MAX_PART_S", 0.5)
    result, other = judge.judge(work, [HEAD_DIM, KV_BYTES])
    assert result.status == "time_limit" and 0 < result.points < HEAD_DIM.points
    assert "not tried: this part took too long" in result.tests[-1].message
    assert other.status == "passed"


def test_all_that_is_shown_of_all_parts_is_asked_before_a_hidden_case_and_no_test_twice(monkeypatch, judge, work):
    asked, subject_of = [], CheckRun.subject_of

    def spy(run, item):
        asked.append((is_hidden(item), part_id(item), item.name))
        return subject_of(run, item)

    monkeypatch.setattr(judge, "hidden", HiddenCases({"seed": "one\n"}))
    monkeypatch.setattr(CheckRun, "subject_of", spy)
    work.pieces[HEAD_DIM.id] = WRONG
    wrong, other = judge.judge(work, [HEAD_DIM, KV_BYTES])
    assert [each[0] for each in asked] == sorted(each[0] for each in asked)
    assert {each[:2] for each in asked} == {(hidden, part.id) for hidden in (False, True) for part in (HEAD_DIM, KV_BYTES)}
    assert len(set(asked)) == len(asked) == len(wrong.tests) + len(other.tests)
    monkeypatch.setattr(judge, "hidden", None)
    alone = [test.id for test in judge.judge(work, [HEAD_DIM])[0].tests]
    assert [test.id for test in wrong.tests if not test.hidden] == alone  # reported in the files' order


@pytest.mark.parametrize("action", ["raise ValueError(str(hf_config))", "while True: pass", "import os; os._exit(3)"])
def test_of_a_hidden_case_comes_back_only_whether_it_is_passed(monkeypatch, judge, work, action):
    work.pieces[HEAD_DIM.id] = f"def head_dim_of(hf_config):\n    {action}\n"
    monkeypatch.setattr(judge, "hidden", HiddenCases({"seed": "one\n"}))
    monkeypatch.setattr(judge, "limits", Limits(cpu_s=1, wall_s=3.0))
    (result,) = judge.judge(work, [HEAD_DIM])
    found = {(test.status, test.message, test.hint) for test in result.tests if test.hidden}
    assert found == {("failed", "it fails on a hidden case", "")}


@pytest.mark.parametrize("chapter", sorted({part.chapter for part in PARTS}))
def test_the_files_that_name_a_chapters_parts_hold_all_of_its_checks(monkeypatch, judge, chapter):
    parts = parts_of_chapter(chapter)
    nothing = Work()
    some = judge.judge(nothing, parts)
    monkeypatch.setattr(CheckRun, "_check_files", lambda self: [str(paths.checks_root())])
    assert judge.judge(nothing, parts) == some
    assert all(result.tests for result in some)


def test_feedback_quotes_the_students_lines_and_none_of_the_references(judge):
    lines = {line.strip() for text in reference_work(CHAPTER).pieces.values() for line in text.splitlines()}
    raising = "def head_dim_of(hf_config):\n    raise KeyError('gone')\n"
    (result,) = judge.judge(Work({HEAD_DIM.id: raising}), [HEAD_DIM])
    assert any("raise KeyError('gone')" in test.message for test in result.tests)
    part = BY_ID["config.rope"]  # its ConfigErrors and TypeErrors come from functions that it calls
    text = "def rotary_config_of(hf_config):\n    return head_dim_of(None)\n"
    (result,) = judge.judge(Work({part.id: text}), [part])
    shown = "\n".join(test.message for test in result.tests)
    assert "return head_dim_of(None)" in shown and "raised in the course's own" in shown
    assert not [line for line in lines if len(line) > 30 and line in shown]


def test_an_error_in_the_courses_code_is_told_without_a_line_of_it():
    frames = [
        {"file": "models/config.py", "line": 9, "function": "mine", "text": "return other(1)"},
        {"file": "models/decoder.py", "line": 5, "function": "other", "text": "secret = solution()"},
    ]
    found = Outcome("error", error={"type": "TypeError", "bases": [], "message": "no", "frames": frames})
    told = str(failure_of(found, frozenset({"return other(1)"})))
    assert "in mine (models/config.py, line 9): return other(1)" in told and "the course's own other" in told
    assert "secret" not in told and "secret" in str(failure_of(found))


def told(judge, part_id, text):
    (result,) = judge.judge(Work({part_id: text}), [BY_ID[part_id]])
    return [test for test in result.tests if test.status != "passed"]


def test_a_message_begins_with_the_input(judge):
    first, *others = told(judge, HEAD_DIM.id, WRONG)
    assert first.asked.startswith("config.head_dim: Qwen3-0.6B's config")
    assert first.told.startswith(f"asked:    {first.asked}\n")
    assert any("head_dim " in test.asked for test in [first, *others])


def test_another_error_is_not_enough_where_a_config_error_is_asked_for(judge):
    right = reference_work(CHAPTER).pieces["config.architecture"]
    failed = told(judge, "config.architecture", right.replace("raise ConfigError", "raise ValueError"))
    assert failed and all("expected: a ConfigError" in test.message for test in failed)


def test_a_library_that_is_not_here_is_told_with_what_to_do(judge):
    text = "def head_dim_of(h):\n    import nothing_of_this_name\n"
    assert "This Python doesn't have that library." in told(judge, HEAD_DIM.id, text)[0].message

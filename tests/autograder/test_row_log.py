"""Rows of a class stay on disk: nothing is lost, and a report of any size is written in little memory."""

import json
import tracemalloc

import pytest

from autograder.classroom.grade import main
from autograder.classroom.grading import refused_row
from autograder.classroom.reports import write_reports
from autograder.classroom.row_log import RowLog, Rows
from autograder.classroom.submissions import Submission
from autograder.judge.results import PartResult, TestResult

NUM, TESTS = 120, 15


def row_of(name):
    tests = tuple(
        TestResult(f"test_config.py::test_{i}", "failed", "a title", f"{name} {i} é\n" * 20) for i in range(TESTS)
    )
    result = PartResult("config.head_dim", 0.0, 2, "failed", "no", tests)
    row = {"student": name, "chapter": "01_config", "status": "graded", "message": "", "points": 0.0, "max_points": 28}
    return json.loads(json.dumps(row | {"parts": [result.as_report()], "feedback": [result.as_plain()]}))


@pytest.fixture
def rows(tmp_path):
    with RowLog(tmp_path / "progress.jsonl") as log:
        for index in reversed(range(NUM)):
            log.add(f"key {index}", row_of(f"student {index:03}"))
    refused = [refused_row(Submission("student 100 too", "01_config", refusal="no notebook"))]
    return Rows(log, [f"key {index}" for index in range(NUM)], refused)


def test_rows_come_by_student_with_the_refused_ones_among_them(rows):
    names = [row["student"] for row in rows]
    assert len(rows) == NUM + 1 and names == sorted(names)
    assert rows[0] == row_of("student 000") and rows[-1]["student"] == "student 119"
    assert [row["status"] for row in rows[100:103]] == ["graded", "refused", "graded"]


def test_the_report_is_what_json_would_write_of_the_whole(rows, tmp_path):
    for given, folder in ((rows, "some"), ([], "none")):
        (tmp_path / folder).mkdir()
        write_reports(given, tmp_path / folder, sandboxed=True)
        whole = [{name: value for name, value in row.items() if name != "feedback"} for row in given]
        whole = {"sandbox": "bubblewrap", "submissions": whole}
        assert (tmp_path / folder / "report.json").read_text() == json.dumps(whole, indent=1, sort_keys=True) + "\n"
    assert len(list((tmp_path / "some/feedback").iterdir())) == NUM + 1


def test_reports_are_written_in_the_memory_of_a_few_rows(rows, tmp_path):
    tracemalloc.start()
    try:
        write_reports(rows[:1], tmp_path, sandboxed=True)  # what is imported and compiled once
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        write_reports(rows, tmp_path, sandboxed=True)
        streamed = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.reset_peak()
        held = list(rows)
        whole = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert len(held) == NUM + 1 and whole > 10 * streamed


def test_a_later_run_finds_what_is_finished_and_takes_out_a_cut_line(rows, tmp_path):
    path = tmp_path / "progress.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    odd = [b"not json\n", b'{"key": "key 3"}\n', b'{"key": "key 3", "row": 3}\n', b"[]\n", b"[" * 200_000 + b"\n", b"\xff\0\n"]
    odd += [b'{"key": "key 3", "row": {}}\n', b'{"key": "key 3", "row": []}\n', lines[1].replace(b'"key 118"', b"[1]")]
    odd += [lines[1].replace(b'"points": 0.0', b'"points": "2"')]
    path.write_bytes(b"".join([lines[0], *odd, lines[1], lines[2][:-1]]))
    with RowLog(path) as log:
        assert [f"key {index}" in log for index in (119, 118, 117, 3)] == [True, True, False, False]
        log.add("key 3", row_of("student 003"))
    assert log["key 118"] == row_of("student 118") and log["key 3"] == row_of("student 003")
    assert path.read_bytes().split(b"\n")[: len(odd) + 2] == [line[:-1] for line in (lines[0], *odd, lines[1])]


def test_two_runs_never_write_into_one_folder(tmp_path, capsys):
    with RowLog(tmp_path / "progress.jsonl") as log:
        log.add("key", row_of("ann"))
        words = [str(tmp_path / "ghost.ipynb"), "--out", str(tmp_path), "--hidden", str(tmp_path / "hidden")]
        assert main([*words, "--no-sandbox"]) == 2
        told = capsys.readouterr().err
        assert "another run of grade writes into" in told and "give another --out" in told
    with RowLog(tmp_path / "progress.jsonl") as log:
        assert "key" in log

"""A class is graded the same whatever the order, the number of jobs or a kill in between; nothing hidden gets out."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from autograder import paths
from autograder.authoring.redteam_files import notebook
from autograder.classroom import hidden
from autograder.classroom.grade import grade, gradebook_here, main
from autograder.classroom.grading import refused_row
from autograder.classroom.reports import feedback_page, write_reports
from autograder.classroom.submissions import Submission, find
from autograder.parts import BY_ID
from autograder.text import reference

CANARY = 7654322  # a size in a hidden case
RIGHT = reference.piece("config.head_dim")
TEXTS = {
    "ann": RIGHT,
    "ben": "def head_dim_of(hf_config):\n    return hf_config.hidden_size // hf_config.num_attention_heads\n",
    "cem": "def head_dim_of(hf_config):\n    raise NotImplementedError()\n",
    "dia": "def head_dim_of(hf_config):\n    import os\n    os._exit(0)\n",
    "eve": "def head_dim_of(hf_config):\n    raise ValueError(str(vars(hf_config)))\n",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Five submissions of one part, a broken one, and hidden cases with a canary."""
    place = tmp_path_factory.mktemp("course")
    for name, text in TEXTS.items():
        book = notebook(f"%%module models/config.py head_dim\n{text}")
        (place / "class").mkdir(exist_ok=True)
        (place / "class" / f"{name}.ipynb").write_text(json.dumps(book))
    (place / "class" / "zoe.ipynb").write_text('{"cells": [')
    sizes = {
        "num_layers": 1,
        "num_qo_heads": 7,
        "num_kv_heads": 7,
        "hidden_size": 84,
        "intermediate_size": 5,
        "vocab_size": CANARY,
    }
    (place / "instructor").mkdir()
    (place / "instructor" / "more.json").write_text(json.dumps({"head_dim": [{"sizes": sizes}]}))
    return place


@pytest.fixture(scope="module")
def graded(course):
    rows = grade(find([course / "class"]), course / "one", jobs=2, hidden_folder=course / "instructor", show_bar=False)
    return {row["student"]: row for row in rows}


def head_dim(row):
    return next(part for part in row["parts"] if part["id"] == "config.head_dim")


@pytest.mark.sandbox
def test_each_submission_gets_its_mark_and_reason(graded):
    assert head_dim(graded["ann"])["points"] == BY_ID["config.head_dim"].points
    assert graded["ann"]["points"] == head_dim(graded["ann"])["points"]
    assert head_dim(graded["ben"])["status"] == "failed" and head_dim(graded["ben"])["points"] < 2
    assert head_dim(graded["cem"])["status"] == "not_written" and graded["cem"]["points"] == 0
    assert head_dim(graded["dia"])["status"] == "crashed" and graded["dia"]["points"] == 0
    assert (graded["zoe"]["status"], graded["zoe"]["points"]) == ("refused", 0)
    assert "JSON is broken" in graded["zoe"]["message"]


@pytest.mark.sandbox
def test_the_table_and_the_pages_say_the_same(course, graded):
    with (course / "one" / "grades.csv").open() as file:
        table = {line["student"]: float(line["points"]) for line in csv.DictReader(file)}
    assert table == {name: row["points"] for name, row in graded.items()}
    page = (course / "one" / "feedback" / "ben-01_config.html").read_text()
    assert "expected: 128" in page and "came:     64" in page and "Hint:" in page


@pytest.mark.sandbox
def test_hidden_cases_count_and_are_told_without_their_values(course, graded):
    tests = {test["id"]: test for test in head_dim(graded["ben"])["tests"]}
    secret = [test for name, test in tests.items() if "hidden-" in name]
    assert len(secret) == 4 and any(test["status"] == "failed" for test in secret)
    assert all("expected" not in test["message"] for test in secret)
    seed = (course / "instructor" / "seed").read_text().strip()
    for path in (course / "one").rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert str(CANARY) not in text and seed not in text, path


@pytest.mark.sandbox
def test_the_report_is_the_same_whatever_the_order_and_jobs(course, graded):
    other = list(reversed(find([course / "class"])))
    grade(other, course / "two", jobs=1, hidden_folder=course / "instructor", show_bar=False)
    for name in ("report.json", "grades.csv", "feedback/ben-01_config.html"):
        assert (course / "one" / name).read_bytes() == (course / "two" / name).read_bytes()


@pytest.mark.sandbox
def test_a_killed_run_goes_on_where_it_stopped(course, graded):
    out = course / "three"
    command = [sys.executable, "-m", "autograder", "grade", str(course / "class"), "--out", str(out), "--jobs", "1"]
    command += ["--hidden", str(course / "instructor")]
    with (course / "log").open("w") as log:
        running = subprocess.Popen(command, cwd=paths.HOME, stderr=log, stdout=log, start_new_session=True)
        progress, deadline = out / "progress.jsonl", time.monotonic() + 150
        while not (progress.is_file() and progress.read_text().count("\n") >= 2):
            assert time.monotonic() < deadline and running.poll() is None, (course / "log").read_text()
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    done = progress.read_text().splitlines(keepends=True)[:2]
    progress.write_text("".join(done) + done[0][:50])  # and the line that was being written is cut short
    assert not (out / "report.json").exists()
    assert main([str(course / "class"), "--out", str(out), "--jobs", "1", "--hidden", str(course / "instructor")]) == 1
    assert (out / "report.json").read_bytes() == (course / "one" / "report.json").read_bytes()
    keys = [json.loads(line)["key"] for line in progress.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == len(TEXTS)
    assert "".join(done) == "".join(progress.read_text().splitlines(keepends=True)[:2])


@pytest.mark.sandbox
def test_graders_go_with_a_run_that_is_killed(course, tmp_path):
    command = [sys.executable, "-m", "autograder", "grade", str(course / "class"), "--out", str(tmp_path / "out")]
    command += ["--jobs", "2", "--hidden", str(course / "instructor")]
    surroundings = {**os.environ, "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(command, cwd=paths.HOME, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=surroundings)
    progress, deadline = tmp_path / "out/progress.jsonl", time.monotonic() + 120
    while not (progress.is_file() and b"\n" in progress.read_bytes()):
        assert time.monotonic() < deadline and running.poll() is None
        time.sleep(0.02)
    below = psutil.Process(running.pid).children(recursive=True)
    assert len(below) >= 4
    running.kill()
    running.wait()
    assert psutil.wait_procs(below, timeout=60)[1] == []
    seed = (course / "instructor" / "seed").read_bytes().strip()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    secrets = (seed, str(CANARY).encode())
    assert progress in left and not [path for path in left for secret in secrets if secret in path.read_bytes()]


def test_without_a_sandbox_it_refuses_unless_told_otherwise(course, monkeypatch, capsys):
    monkeypatch.setattr("autograder.worker.sandbox.problem", lambda: "bubblewrap isn't installed (…)")
    assert main([str(course / "class"), "--out", str(course / "four")]) == 2
    assert "--no-sandbox" in capsys.readouterr().err
    assert not (course / "four").exists()


def test_wrong_usage_ends_with_two(course):
    with pytest.raises(SystemExit) as stop:
        main(["--out", str(course / "five")])
    assert stop.value.code == 2
    with pytest.raises(SystemExit) as stop:
        main([str(course / "class"), "--out", str(course / "five"), "--chapter", "nope"])
    assert stop.value.code == 2


def test_the_shell_names_what_it_refused_and_why(tmp_path, capfd):
    assert main([str(tmp_path / "ghost.ipynb"), "--out", str(tmp_path / "out"), "--no-sandbox"]) == 1
    told = capfd.readouterr()
    assert told.err == "refused: ghost: ghost.ipynb doesn't exist\n"  # and no bar over nothing
    assert told.out.startswith("0 graded, 1 refused; see ")


def test_pages_of_names_that_are_hardly_letters_or_differ_in_case_stay_apart(tmp_path):
    names = ["王伟", "李娜", "Ada K", "Ada_K", "ann", "Ann", "名" * 80]
    write_reports([refused_row(Submission(name, "01_config", refusal="no")) for name in names], tmp_path, True)
    pages = {path.name.casefold(): path.read_text() for path in (tmp_path / "feedback").iterdir()}
    assert len(pages) == len(names)
    assert "李娜: 01_config" in pages["李娜-01_config.html"]


def test_the_page_of_refused_work_says_what_to_do():
    page = feedback_page(refused_row(Submission("zoe", "01_config", refusal="its JSON is broken")))
    assert "its JSON is broken" in page and "hand it in anew" in page


def test_the_gradebook_is_that_of_the_course_one_stands_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gradebook_here() == f"sqlite:///{paths.HOME / 'gradebook.db'}"
    (tmp_path / "nbgrader_config.py").touch()
    assert gradebook_here() == f"sqlite:///{tmp_path / 'gradebook.db'}"


def test_a_seed_is_drawn_once_and_kept(tmp_path):
    first = hidden.prepare(tmp_path / "new")
    assert len(first["seed"].strip()) == 32 and hidden.prepare(tmp_path / "new") == first
    assert hidden.digest(first) != hidden.digest(hidden.prepare(tmp_path / "other"))

"""A gradebook that several graders share: nbgrader's db_url on a real PostgreSQL server that this test starts."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder import paths

CHAPTER = "01_config"
GRADER = """
import sys
from autograder.classroom.gradebook import write_rows
from autograder.parts import parts_of_chapter
chapter, url, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(first, first + 6):
    parts = [{"id": p.id, "points": p.points * number / 20, "max_points": p.points} for p in parts_of_chapter(chapter)]
    for turn in range(2):
        write_rows([{"student": f"student-{number}", "chapter": chapter, "parts": parts}], url)
"""


def program(name):
    """Find one of PostgreSQL's programs, which Debian doesn't put on the path."""
    places = [shutil.which(name), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    found = next((str(place) for place in places if place), None)
    assert found, "this test needs a PostgreSQL server (apt install postgresql)"
    return str(Path(found).resolve()) if name != "postgres" else found


@pytest.fixture
def server(tmp_path):
    """A PostgreSQL server on a socket below a folder of its own; it refuses to run as root."""
    home = Path(
        subprocess.run(["mktemp", "-d", "/tmp/pg-XXXXXX"], capture_output=True, text=True, check=True).stdout.strip()
    )
    as_user = {}
    if os.getuid() == 0:
        account = pwd.getpwnam("nobody")
        os.chown(home, account.pw_uid, account.pw_gid)
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    data = home / "data"

    def run(*words):
        done = subprocess.run(words, env=environment, cwd=home, capture_output=True, text=True, **as_user)
        assert done.returncode == 0, done.stdout + done.stderr

    bin_folder = Path(program("initdb")).parent
    run(str(bin_folder / "initdb"), "-D", str(data), "-U", "grader", "--auth=trust", "-E", "UTF8", "--no-sync")
    options = f"-k {home} -c listen_addresses='' -c fsync=off"
    log = ["-l", str(home / "log")]
    run(str(bin_folder / "pg_ctl"), "-D", str(data), "-w", *log, "-o", options, "start")
    try:
        run(str(bin_folder / "createdb"), "-h", str(home), "-U", "grader", "gradebook")
        yield f"postgresql+psycopg2://grader@/gradebook?host={home}"
    finally:
        run(str(bin_folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_two_graders_write_into_one_shared_gradebook_at_once(server, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    from autograder.parts import grade_id, parts_of_chapter

    with Gradebook(server) as gradebook:
        gradebook.add_assignment(CHAPTER)
        gradebook.add_notebook(CHAPTER, CHAPTER)
        for part in parts_of_chapter(CHAPTER):
            gradebook.add_grade_cell(grade_id(part), CHAPTER, CHAPTER, max_score=part.points, cell_type="code")
    environment = {**os.environ, "PYTHONPATH": str(paths.HOME), "PYTHONWARNINGS": "ignore"}
    graders = [
        subprocess.Popen(
            [sys.executable, "-c", GRADER, CHAPTER, server, str(first)], env=environment, stderr=subprocess.PIPE
        )
        for first in (1, 4)  # they meet at three students
    ]
    for grader in graders:
        _, errors = grader.communicate(timeout=300)
        assert grader.returncode == 0, errors.decode()
    full = sum(part.points for part in parts_of_chapter(CHAPTER))
    with Gradebook(server) as gradebook:
        scores = {each.student.id: each.score for each in gradebook.assignment_submissions(CHAPTER)}
    assert sorted(scores) == sorted(f"student-{number}" for number in range(1, 10))
    for number in range(1, 10):
        assert abs(scores[f"student-{number}"] - full * number / 20) < 0.1

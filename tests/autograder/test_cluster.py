"""The same grading function on a real Dask cluster, one of whose workers is killed half-way."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from autograder import paths
from autograder.authoring.redteam_files import notebook
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find
from autograder.text import reference

NUM = 8


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two worker processes."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.HOME),
        "OMP_NUM_THREADS": "1",
        "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    }
    log = (tmp_path / "scheduler.log").open("w")
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
    ]
    processes = [subprocess.Popen(command, env=environment, stderr=log, stdout=log, cwd=tmp_path)]
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"tcp://127\.0\.0\.1:\d+", (tmp_path / "scheduler.log").read_text())):
            assert time.monotonic() < deadline and processes[0].poll() is None, (tmp_path / "scheduler.log").read_text()
            time.sleep(0.1)
        for number in range(2):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", found[0], "--nthreads", "1", "--no-nanny"]
            worker += ["--no-dashboard", "--local-directory", str(tmp_path / f"worker-{number}")]
            processes.append(subprocess.Popen(worker, env=environment, stderr=log, stdout=log, cwd=tmp_path))
        yield found[0], processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        log.close()


@pytest.mark.sandbox
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_report_although_a_worker_is_killed(cluster, tmp_path):
    address, processes = cluster
    (tmp_path / "class").mkdir()
    texts = [
        reference.piece("config.head_dim"),
        "def head_dim_of(h):\n    return 1\n",
        "def head_dim_of(h):\n    return 128\n",
    ]
    for number in range(NUM):
        book = notebook(f"%%module models/config.py head_dim\n# number {number}\n{texts[number % len(texts)]}")
        (tmp_path / "class" / f"student-{number}.ipynb").write_text(json.dumps(book))
    found = find([tmp_path / "class"])
    hidden = tmp_path / "instructor"
    grade(found, tmp_path / "local", jobs=2, hidden_folder=hidden, show_bar=False)
    progress, killed = tmp_path / "cluster" / "progress.jsonl", threading.Event()

    def kill_half_way():
        while not (progress.is_file() and progress.read_text().count("\n") >= 2):
            time.sleep(0.02)
        processes[1].send_signal(signal.SIGKILL)
        killed.set()

    threading.Thread(target=kill_half_way, daemon=True).start()
    rows = grade(found, tmp_path / "cluster", scheduler=address, hidden_folder=hidden, show_bar=False)
    assert killed.is_set() and len(rows) == NUM
    assert (tmp_path / "cluster" / "report.json").read_bytes() == (tmp_path / "local" / "report.json").read_bytes()

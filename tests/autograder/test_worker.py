"""A test has a process of its own: whatever student code does there costs it alone and is named for what it was.

Every test runs without and with the sandbox.
"""

import os
import subprocess
import sys
import time

import pytest

from autograder import paths
from autograder.judge.figures import QWEN3_0_6B
from autograder.worker.client import Worker, WorkerError, compiled
from autograder.worker.limits import Limits
from autograder.worker.outcome import clean
from tests.autograder.helpers import head_dim

QUESTION = {"config": QWEN3_0_6B, "bare": True}
SHORT = Limits(cpu_s=2, wall_s=4.0, memory_mib=256, output_kib=64, file_mib=16, processes=20)


MODULES = ["models/config.py"]


def ask(worker, files, limits=SHORT, **options):
    """Ask for the head's size; the next test must not suffer from what that did."""
    tree = worker.open(files, MODULES)
    try:
        first = tree.ask("config.head_dim", QUESTION, limits, **options)
        tree.end_test()
        other = tree.ask("config.architecture", QUESTION, limits)
        assert (other.status, other.value) == ("answered", "Qwen3ForCausalLM"), f"the next test suffered: {other}"
        return first
    finally:
        tree.close()


def test_the_file_that_ran_is_the_given_one(worker):
    found = ask(worker, head_dim("return 4242"))
    assert (found.status, found.value) == ("answered", 4242)


def test_an_exception_is_described_with_its_place(worker):
    found = ask(worker, head_dim("x = {}\nreturn x['gone']"))
    assert found.status == "error"
    assert found.error["type"] == "KeyError" and "Exception" in found.error["bases"]
    last = found.error["frames"][-1]
    assert (last["file"], last["function"], last["text"]) == ("models/config.py", "head_dim_of", "return x['gone']")


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ("import os; os._exit(0)", "crashed", "left early, with exit code 0"),
        ("import os; os._exit(7)", "crashed", "exit code 7"),
        ("import sys; sys.exit(0)", "error", "SystemExit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
        ("return head_dim_of(hf_config)", "error", "RecursionError"),
        ("while True: pass", "time_limit", "processor"),
        ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "time_limit", "processor"),
        ("import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", "time_limit", "processor"),
        ("import time; time.sleep(1000)", "time_limit", "no answer after 4 s"),
        ("import ctypes; ctypes.CDLL(None).pause()", "time_limit", "no answer"),
        ("x = bytearray(2 << 30)", "memory_limit", "memory"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "memory_limit", "memory"),
        ("import torch; torch.ones(2 << 30)", "error", "memory"),
        ("import mmap; m = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1", "memory_limit", "MiB"),
        ("print('x' * (1 << 20)); return 1", "output_limit", "KiB"),
        ("import os\nwhile True: os.write(2, b'\\xff\\xfe' * 5000)", "output_limit", "KiB"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()", "error", "OSError"),
        ("return 'x' * (300 << 20)", "refused", "at most"),
        ("import torch; return torch.zeros(1).as_subclass(type('T', (torch.Tensor,), {}))", "refused", "plain data"),
        ("return float('nan')", "refused", "finite"),
        ("class E(Exception):\n    def __str__(self): raise SystemError\nraise E", "error", "can't be read"),
    ],
)
def test_each_way_to_fail_is_named(worker, body, status, word):
    limits = SHORT
    if word == "processor":
        limits = SHORT.changed({"cpu_s": 1, "wall_s": 60.0})  # wall time is the machine's, processor time the code's
    if "300 << 20" in body:
        limits = SHORT.changed({"memory_mib": 1024, "wall_s": 30.0})
    found = ask(worker, head_dim(body), limits)
    if "open('big'" in body:  # the kernel's signal, or the error where Python ignores it: a full tmpfs or file limit
        assert found.status in ("error", "output_limit")
        return
    assert found.status == status, found
    assert word in found.message, found


def test_a_fork_bomb_is_stopped(worker):
    for _ in range(4):
        found = ask(worker, head_dim("import os\nwhile True:\n    os.fork()"), SHORT)
        assert found.status in ("refused", "memory_limit", "time_limit"), found


def test_a_thread_bomb_is_stopped(worker):
    start = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    body = f"import threading, time\nfor _ in range(500): {start}\ntime.sleep(3)"
    found = ask(worker, head_dim(body), SHORT)
    if found.status == "error":  # the limit on memory came first: each thread wants a stack
        assert "can't start new thread" in found.message
    else:
        assert found.status == "refused" and "more than 20 processes or threads" in found.message


def test_threads_and_finalizers_after_the_answer_change_nothing(worker):
    body = (
        "import atexit, threading, time\natexit.register(print, 'late')\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\nreturn 128"
    )
    found = ask(worker, head_dim(body), Limits())
    assert (found.status, found.value, found.output) == ("answered", 128, "")


def test_a_bomb_at_import_costs_its_tree_alone(worker):
    tree = worker.open(head_dim("return 128", before="import os; os._exit(3)"))
    found = tree.ask("config.head_dim", QUESTION, SHORT)
    tree.close()
    assert found.status == "crashed" and "exit code 3" in found.message
    assert ask(worker, head_dim("return 128")).value == 128


def counting(trouble="", before=""):
    """A tree that answers with the number of questions so far, and makes trouble at the second one."""
    return head_dim(f"STATE.append(1)\nif len(STATE) == 2: {trouble or 'pass'}\nreturn len(STATE)", f"STATE = []\n{before}")


def test_each_test_starts_from_the_same_state(worker):
    tree = worker.open(counting(), MODULES)
    found = []
    for _ in range(3):
        found += [tree.ask("config.head_dim", QUESTION, Limits()).value for _ in range(2)]
        tree.end_test()
    tree.close()
    assert found == [1, 2, 1, 2, 1, 2]


def test_files_of_one_test_are_gone_for_the_next(worker):
    body = "import os\nfound = os.path.exists('mark'); open('mark', 'w').close()\nreturn int(found)"
    tree = worker.open(head_dim(body), MODULES)
    found = []
    for _ in range(3):
        found += [tree.ask("config.head_dim", QUESTION, Limits()).value for _ in range(2)]
        tree.end_test()
    tree.close()
    assert found == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        ("import os; os._exit(0)", "crashed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
        ("import time; time.sleep(60)", "time_limit"),
        ("any(iter(int, 1))", "time_limit"),  # an endless loop in C
        ("print('x' * (1 << 20))", "output_limit"),
        ("import os; [os.close(fd) for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]", "crashed"),
    ],
)
def test_a_lost_process_fails_the_rest_of_its_test_and_nothing_else(worker, trouble, status):
    tree = worker.open(counting(trouble), MODULES)
    first = [tree.ask("config.head_dim", QUESTION, SHORT).status for _ in range(4)]
    tree.end_test()
    then = tree.ask("config.head_dim", QUESTION, SHORT)
    tree.close()
    assert first == ["answered", status, status, status] and then.value == 1


THREAD = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.3), {}), daemon=True).start()"


@pytest.mark.parametrize(
    "trouble",
    [
        THREAD.format("__import__('os')._exit(3)"),  # it dies between tests
        "import os\nif os.fork() == 0: os.setsid(); import time; time.sleep(100)",  # it leaves something behind
        "from autograder.worker import isolation, tree_process\nisolation.fork_sibling = lambda: 0",  # it answers itself
        "from autograder.worker import isolation\nisolation.fork_sibling = isolation.fork",  # a grandchild answers
        "from autograder.worker import isolation\nisolation.fork_sibling = lambda: 1",  # nobody answers
    ],
)
def test_a_tree_process_that_dies_or_lies_is_made_anew(worker, trouble):
    tree = worker.open(head_dim("return 128", before=trouble), MODULES)
    found = []
    for _ in range(4):
        found.append(tree.ask("config.head_dim", QUESTION, SHORT.changed({"wall_s": 1.5})))
        tree.end_test()
        time.sleep(0.2)
    tree.close()
    assert all(each.value == 128 or each.status in ("crashed", "time_limit") for each in found), found
    assert ask(worker, head_dim("return 128")).value == 128


def test_an_answer_of_the_codes_own_making_is_refused(worker):
    # A frame ahead of the real one, which then comes as the answer to the next question.
    forged = (
        "import json, os, struct\n"
        "text = json.dumps({'answer': '99'}).encode()\n"
        "for fd in range(3, 64):\n"
        "    try: os.write(fd, struct.pack('>II', len(text), 0) + text)\n"
        "    except OSError: pass\n"
        "return 128"
    )
    tree = worker.open(head_dim(forged), MODULES)
    found = [tree.ask("config.head_dim", QUESTION, SHORT) for _ in range(3)]
    tree.end_test()
    other = tree.ask("config.architecture", QUESTION, SHORT)
    tree.close()
    assert {each.status for each in found} == {"refused"} and found[0].message.startswith("the code sent something")
    assert other.value == "Qwen3ForCausalLM"


def test_what_a_test_leaves_behind_ends_with_it(worker):
    marker = f"sleep 8{os.getpid()}"
    body = f"import subprocess; subprocess.Popen({marker.split()!r}, start_new_session=True); return 128"
    tree = worker.open(head_dim(body), MODULES)
    tree.ask("config.head_dim", QUESTION, SHORT)
    tree.end_test()
    tree.ask("config.architecture", QUESTION, SHORT)
    assert marker not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    tree.close()


def test_memory_that_was_never_written_is_the_same_every_time(worker):
    body = "import torch\ntorch.full((4096,), 7.0)\nreturn torch.empty(4096)[:2]"
    for _ in range(2):
        found = ask(worker, head_dim(body))
        assert found.value.isnan().all()


def test_the_peak_is_the_kernels_and_counts_what_was_freed(worker):
    body = "x = bytearray(100 << 20); x[::4096] = b'x' * len(x[::4096]); del x; return 1"
    found = ask(worker, head_dim(body), measure=True)
    assert found.status == "answered" and 95 << 10 < found.measured["peak_kib"] < 140 << 10
    assert ask(worker, head_dim("return 1"), measure=True).measured["peak_kib"] < 20 << 10


def test_what_a_question_reads_and_leaves_open_is_seen_from_outside(worker):
    body = (
        "import os, threading, time\n"
        "open('big', 'wb').write(bytes(500_000))\nfile = open('big', 'rb'); file.read()\nKEPT.append(file)\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "os.listdir = lambda path: []\nreturn 1"
    )
    found = ask(worker, head_dim(body, before="KEPT = []"), measure=True).measured
    assert 500_000 <= found["bytes_read"] < 600_000 and (found["files"], found["threads"]) == (1, 1)


def test_text_from_student_code_is_cleaned():
    assert clean("a\x1b[31mred\x00\u202e\n", 100) == "a\ufffd[31mred\ufffd\ufffd\n"
    assert clean("x" * 50, 10) == "x" * 10 + " …"


def test_a_worker_that_was_killed_starts_again():
    with Worker() as worker:
        worker.start()
        assert ask(worker, head_dim("return 1")).value == 1
        worker._process.kill()
        worker._process.wait()
        assert ask(worker, head_dim("return 2")).value == 2


def test_nothing_is_left_after_closing():
    worker = Worker()
    worker.start()
    tree = worker.open(head_dim("return 1"))
    tree.ask("config.head_dim", QUESTION, Limits())
    pid, scratch = worker._process.pid, worker.scratch
    tree.close()
    worker.close()
    assert not scratch.exists()
    deadline = time.monotonic() + 10
    while living := _living_of_group(pid):
        assert time.monotonic() < deadline, living
        time.sleep(0.05)


def _living_of_group(pid):
    shown = subprocess.run(["ps", "-o", "stat=,args=", "-g", str(pid)], capture_output=True, text=True, check=False)
    return [line for line in shown.stdout.splitlines() if not line.startswith("Z")]


def test_a_worker_that_cannot_start_says_so(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with Worker() as worker:
        worker.start()
        with pytest.raises(WorkerError, match="didn't start"):
            worker.open({})


@pytest.mark.sandbox
def test_the_sandbox_also_works_from_an_environment_in_tmp(tmp_path):
    # Like that of a clone in /tmp, over which the sandbox has a /tmp of its own.
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    script = "from autograder.worker import sandbox; print(sandbox.problem())"
    environment = {**os.environ, "PYTHONPATH": str(paths.HOME)}
    asked = [place / "bin" / "python", "-c", script]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout == "None\n"


def test_what_was_compiled_beforehand_is_what_runs_and_keeps_its_places(worker):
    found = ask(worker, head_dim("raise KeyError('gone')"))
    last = found.error["frames"][-1]
    assert (last["file"], last["text"]) == ("models/config.py", "raise KeyError('gone')")
    assert compiled("def f(:\n") == "" and compiled("x = 1\n") != compiled("x = 2\n")

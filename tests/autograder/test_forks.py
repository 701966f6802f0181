"""What keeps the worker's forks cheap is there, and changes nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from autograder import paths
from autograder.worker import sandbox

FORK = """
import os
from autograder.worker import isolation

def note():
    os.write(1, b"a handler ran\\n")

os.register_at_fork(before=note, after_in_child=note, after_in_parent=note)
pid = isolation.fork()
if pid == 0:
    os._exit(7 if os.getppid() == PARENT else 8)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
"""
HOLES = """
import ctypes
from autograder.worker import heap

heap._LIBC.mallinfo2.restype = heap._MallocInfo


def free_kib():
    found = heap._LIBC.mallinfo2()
    return (found.fordblks - found.keepcost) >> 10

blocks = [bytes(2000) for _ in range(4000)]
del blocks[::2]
before = free_kib()
heap.fill_holes()
print(before > 2000, free_kib() < 200)
heap.fill_holes()
"""


def printed(program: str) -> list[str]:
    """Run a program as the worker is run."""
    environment = sandbox.environment(str(paths.HOME))
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


@pytest.mark.sandbox
def test_a_child_has_its_parent_and_no_handler_of_a_library_runs():
    assert printed(FORK.replace("pid = iso", "PARENT = os.getpid()\npid = iso")) == ["7"]


@pytest.mark.sandbox
def test_the_holes_of_the_heap_are_filled():
    assert printed(HOLES) == ["True True"]


@pytest.mark.sandbox
def test_malloc_finds_inside_the_sandbox_what_the_kernel_says_of_huge_pages(tmp_path):
    said = Path(sandbox.HUGE_PAGES, "enabled")
    if not said.is_file():
        pytest.skip("a kernel without huge pages")
    command = [*sandbox.command(tmp_path), "/bin/cat", str(said)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == said.read_text()

"""Grade a simulated class of 1,000 submissions: marks checked, memory bounded, submissions a minute.

python -m benchmarks.big_class                     # 1,000 students of 01_config on all cores
python -m benchmarks.big_class --students 100 --jobs 1
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from autograder.authoring.simulated import students, write_class, wrong_marks
from autograder.classroom.grade import grade
from autograder.classroom.submissions import find

SLACK_MIB = 60  # what allocators keep back and caches of compiled text add after the first tenth


class MemoryWatch:
    """Sample the memory that this process and all below it hold privately."""

    def __init__(self, progress: Path) -> None:
        self.progress = progress
        self.samples: list[tuple[int, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(2.0):
            done = self.progress.read_bytes().count(b"\n") if self.progress.is_file() else 0
            self.samples.append((done, held_mib(me)))

    def most(self, first: int, last: int) -> float:
        """Return the most MiB seen while ``first`` to ``last`` submissions were done; 0 without a sample."""
        return max((mib for done, mib in self.samples if first <= done <= last), default=0.0)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.Error:
        return []


def held_mib(process: psutil.Process) -> float:
    """Return the MiB that the long-lived processes hold: this one, the one below it that forks, and the graders below that."""
    total = 0
    below = process.children()
    for each in (process, *below, *(grader for server in below for grader in _children(server))):
        try:
            total += each.memory_info().rss - each.memory_info().shared
        except psutil.Error:
            continue
    return total / 2**20


def main() -> int:
    """Run, print the figures, and end with 1 where a mark is wrong or memory grows with the class."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--chapter", default="01_config")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--most-parts", type=int, help="how many parts each student wrote at most (default: all)")
    parser.add_argument("--no-sandbox", action="store_true")
    options = parser.parse_args()
    drawn = dict(students(options.chapter, options.students, most_parts=options.most_parts))
    with tempfile.TemporaryDirectory() as place:
        write_class(Path(place, "class"), drawn)
        started = time.monotonic()
        with MemoryWatch(Path(place, "out", "progress.jsonl")) as watch:
            rows = grade(
                find([Path(place, "class")], options.chapter),
                Path(place, "out"),
                jobs=options.jobs,
                sandboxed=not options.no_sandbox,
                hidden_folder=Path(place, "instructor"),
            )
        seconds = time.monotonic() - started
        problems = wrong_marks(rows, drawn)
    tenth = options.students // 10
    early, late = watch.most(1, 2 * tenth), watch.most(options.students - tenth, options.students)
    print(
        f"{len(rows)} submissions in {seconds:.0f} s: {60 * len(rows) / seconds:.1f} a minute with {options.jobs} processes"
    )
    print(f"held by the grading processes: {early:.0f} MiB in the first fifth, {late:.0f} MiB in the last tenth")
    print(f"marks: {len(problems)} wrong", *problems[:10], sep="\n  ")
    grown = early > 0 and late > early + SLACK_MIB
    if grown:
        print(f"memory grew by {late - early:.0f} MiB; at most {SLACK_MIB} were expected")
    return 1 if problems or grown else 0


if __name__ == "__main__":
    raise SystemExit(main())

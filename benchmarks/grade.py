"""Grade the same class with ``grade`` and with stock ``nbgrader autograde``, in one run on this machine.

    python benchmarks/grade.py                    # 60 students of 01_config, six of them by stock nbgrader too
    python benchmarks/grade.py --students 12 --stock 2

Stock means nbgrader's own steps, in its own order: its Execute preprocessor runs each notebook in a kernel, where the
grade cells call ``check``. Ours is the ``grade`` command with the sandbox and hidden cases, on one process and on two.
Both see the same notebooks, made from the release notebook and the libraries of right and wrong solutions. Both include
their own start: stock has one for each notebook, so that a few show its speed; ours has one for a class.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nbgrader.api import Gradebook

from autograder.authoring.simulated import Choice, students
from autograder.classroom.grading import close, grade_one, payload_of
from autograder.classroom.submissions import find
from autograder.parts import BY_ID, part_of_grade_id, parts_of_chapter
from autograder.text.work import read_cell

ROOT = Path(__file__).resolve().parent.parent
TARGET = 20.0
CHAPTER = "01_config"
# nbgrader's defaults, which the course's own configuration replaces.
STOCK_CONFIG = """
from nbgrader import preprocessors as stock
c = get_config()
c.CourseDirectory.course_id = "stock"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.Execute.timeout = 600
"""


def fill(release: Path, choices: dict[str, Choice], name: str) -> dict[str, Any]:
    """Return the release notebook with a student's parts in its cells."""
    book = json.loads(release.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        found = read_cell("".join(cell["source"])) if cell["cell_type"] == "code" else None
        if found is None:
            continue
        module, part_name, _ = found
        choice = choices.get(f"{Path(module).stem}.{part_name}")
        if choice is not None and choice.text:
            cell["source"] = f"%%module {module} {part_name}\n# {name}\n{choice.text}"
    return book


class Course:
    """A course folder: ``class`` holds everybody's notebooks, ``submitted`` the first ones', for stock nbgrader."""

    def __init__(self, root: Path, num_students: int, num_stock: int) -> None:
        self.root = root
        (root / "nbgrader_config.py").write_text(STOCK_CONFIG)
        shutil.copytree(ROOT / "solutions" / CHAPTER, root / "solutions" / CHAPTER)
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # nbgrader starts alembic by name
            "PYTHONPATH": str(ROOT),
            "MINISGL_WORKSPACE": str(root / "workspace"),
            "JUPYTER_CONFIG_DIR": str(root / "jupyter"),
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }
        self.nbgrader("generate_assignment", CHAPTER, "--force")
        release = root / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb"
        self.drawn = dict(students(CHAPTER, num_students))
        for number, (name, choices) in enumerate(self.drawn.items()):
            for graders in ("class", "submitted")[: 2 if number < num_stock else 1]:
                folder = root / graders / name / CHAPTER
                folder.mkdir(parents=True)
                (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(fill(release, choices, name)))

    def nbgrader(self, *words: str) -> float:
        """Run one of nbgrader's commands; return the seconds it took."""
        return self._timed([sys.executable, "-m", "nbgrader", *words])

    def grade(self, jobs: int) -> float:
        """Run our grade command; return the seconds it took."""
        words = ["class", "--out", f"out-{jobs}", "--jobs", str(jobs), "--chapter", CHAPTER, "--hidden", "instructor"]
        return self._timed([sys.executable, "-m", "autograder", "grade", *words])

    def _timed(self, command: list[str]) -> float:
        started = time.monotonic()
        run = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(
                f"{' '.join(command[1:])} ended with {run.returncode}:\n{(run.stdout + run.stderr)[-3000:]}"
            )
        return time.monotonic() - started

    def stock_marks(self) -> dict[tuple[str, str], float]:
        """Return the marks that stock nbgrader gave: (student, part id) -> points."""
        found = {}
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            for submission in gradebook.assignment_submissions(CHAPTER):
                for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                    part = part_of_grade_id(grade.name)
                    if part is not None:
                        found[submission.student.id, part.id] = float(grade.auto_score or 0.0)
        return found

    def our_marks(self, jobs: int) -> dict[tuple[str, str], float]:
        """Return the marks that ``grade`` gave: (student, part id) -> points."""
        report = json.loads((self.root / f"out-{jobs}" / "report.json").read_text())
        return {(row["student"], part["id"]): part["points"] for row in report["submissions"] for part in row["parts"]}


def latency(course: Course, most: int = 5) -> list[float]:
    """Return the seconds that single submissions take in a process that is warm, shortest first."""
    submissions = find([course.root / "class"], CHAPTER)[: most + 1]
    seconds = []
    for each in submissions:
        started = time.monotonic()
        grade_one(payload_of(each, True, {"seed": "a benchmark's"}))
        seconds.append(time.monotonic() - started)
    close()
    return sorted(seconds[1:])  # the first one waits until the worker is warm


def disagreements(ours: dict[tuple[str, str], float], stock: dict[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Return the parts that one of the two finds all right and the other doesn't.

    Points of a part that is partly right differ, since hidden cases count too. A part that fails on hidden cases alone is
    no disagreement either.
    """
    return [key for key in stock if ours[key] == BY_ID[key[1]].points > stock[key] or ours[key] > 0.0 == stock[key]]


def main() -> int:
    """Measure and print; end with 1 where the target isn't met."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--stock", type=int, default=6, help="how many of them stock nbgrader grades too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        course = Course(Path(place), options.students, options.stock)
        ours = {jobs: course.grade(jobs) for jobs in (1, 2)}
        stock = course.nbgrader("autograde", CHAPTER)
        single = latency(course)
        marks, again, stock_marks = course.our_marks(1), course.our_marks(2), course.stock_marks()
    full = sum(part.points for part in parts_of_chapter(CHAPTER))
    print(f"{CHAPTER} ({full:g} points), {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':24}{'submissions':>12}{'seconds':>9}{'a minute':>10}{'seconds each':>14}")
    rows = [
        ("grade, 1 process", options.students, ours[1]),
        ("grade, 2 processes", options.students, ours[2]),
        ("stock nbgrader", options.stock, stock),
    ]
    for name, num, seconds in rows:
        print(f"{name:24}{num:12}{seconds:9.1f}{60 * num / seconds:10.2f}{seconds / num:14.2f}")
    times = (stock / options.stock) / (ours[2] / options.students)
    odd = disagreements(marks, stock_marks)
    print(f"one submission, warm: {single[0]:.2f} to {single[-1]:.2f} s")
    print(f"2 processes against 1: {ours[1] / ours[2]:.2f} times; against stock: {times:.1f} times (target {TARGET:g})")
    print(f"the same marks with 1 and 2 processes: {marks == again}")
    print(f"parts that only one of grade and stock nbgrader finds right: {len(odd)} of {len(stock_marks)}")
    return 0 if times >= TARGET and marks == again and not odd else 1


if __name__ == "__main__":
    raise SystemExit(main())

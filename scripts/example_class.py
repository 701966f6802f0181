"""Make a small class to try grading on: right, wrong, late, unfinished and hostile submissions of one chapter.

Usage: ``python scripts/example_class.py FOLDER`` makes a course folder of nbgrader's: its configuration, the chapter's
source, ``submitted/`` and, for one student, a file as a learning platform gives it, in ``downloaded/``. Grade it by
``nbgrader`` in that folder, or by ``python -m autograder grade FOLDER/submitted``. The right answers are the reference's own,
the wrong ones come from the library of known mistakes and the hostile ones from the red team.
"""

import argparse
import json
import shutil
import sys
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from autograder.authoring import wrong_solutions  # noqa: E402
from autograder.parts import parts_of_chapter  # noqa: E402
from autograder.text import reference  # noqa: E402
from autograder.text.work import read_cell  # noqa: E402

CHAPTER = "01_config"
DUE = datetime(2030, 1, 7, 12, tzinfo=UTC)
ATTACKS = ROOT / "tests/attacks"


@dataclass
class Student:
    """One member of the class.

    Attributes:
        name: also the folder's name.
        about: what the work is like, in words.
        mistakes: ids of known wrong solutions in the place of the right ones.
        attacks: part id -> hostile module below tests/attacks.
        left_out: parts not written.
        hours_late: when the work was handed in, counted from the due date.
        broken: whether the notebook is cut short.
    """

    name: str
    about: str
    mistakes: tuple[str, ...] = ()
    attacks: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    hours_late: float = -1
    broken: bool = False


CLASS = (
    Student("ada", "everything right"),
    Student("ben", "everything right, handed in 30 hours late", hours_late=30),
    Student("cleo", "two well-known mistakes", mistakes=("head-dim-recomputed", "biases-qwen2-from-the-file")),
    Student("dan", "stopped half-way", left_out=("config.rope", "config.refusals", "config.model_config", "config.kv_bytes")),
    Student("eve", "leaves early, with forged results", attacks={"config.head_dim": "leaves_early/forged_passed_line.py"}),
    Student("fay", "never ends", attacks={"config.head_dim": "uses_up_resources/endless_loop.py"}),
    Student("gus", "looks for the hidden cases", attacks={"config.head_dim": "borrows_the_answer/reads_hidden_cases.py"}),
    Student("hal", "a notebook that is cut short", broken=True),
    Student("ivy", "everything right, through a learning platform", hours_late=-0.5 - 1 / 3600),
)
ON_PLATFORM = "ivy"


def answers_of(student: Student) -> dict[str, str]:
    """Return part id -> the code that a student wrote."""
    answers = {part.id: reference.piece(part.id) for part in parts_of_chapter(CHAPTER) if not part.together}
    known = {entry["id"]: entry for entry in wrong_solutions.entries()}
    for name in student.mistakes:
        answers[known[name]["part"]] = wrong_solutions.text_of(known[name])
    answers |= {part: (ATTACKS / file).read_text(encoding="utf-8") for part, file in student.attacks.items()}
    return {part: text for part, text in answers.items() if part not in student.left_out}


def notebook_of(student: Student) -> str:
    """Return the released notebook with a student's answers in it."""
    path = ROOT / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb"
    book: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    answers = answers_of(student)
    stem = parts_of_chapter(CHAPTER)[0].id.split(".")[0]
    for cell in book["cells"]:
        magic = read_cell("".join(cell["source"])) if cell["cell_type"] == "code" else None
        if magic and f"{stem}.{magic[1]}" in answers:
            cell["source"] = f"%%module {magic[0]} {magic[1]}\n{answers[f'{stem}.{magic[1]}']}"
    text = json.dumps(book, indent=1)
    return text[: len(text) // 2] if student.broken else text


def make(folder: Path) -> None:
    """Write the course folder.

    Raises:
        SystemExit: the folder exists and isn't empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder} isn't empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    shutil.copytree(ROOT / "solutions" / CHAPTER, folder / "solutions" / CHAPTER)
    for student in CLASS:
        handed_in = DUE + timedelta(hours=student.hours_late)
        if student.name == ON_PLATFORM:
            place = folder / "downloaded" / CHAPTER / "archive"
            place.mkdir(parents=True)
            with zipfile.ZipFile(place / "platform.zip", "w") as archive:
                archive.writestr(f"{student.name}_{handed_in:%Y-%m-%d-%H-%M-%S}_{CHAPTER}.ipynb", notebook_of(student))
        else:
            place = folder / "submitted" / student.name / CHAPTER
            place.mkdir(parents=True)
            (place / f"{CHAPTER}.ipynb").write_text(notebook_of(student), encoding="utf-8")
            (place / "timestamp.txt").write_text(f"{handed_in:%Y-%m-%d %H:%M:%S} UTC\n")


def main(argv: list[str] | None = None) -> int:
    """Make the class and list it."""
    parser = argparse.ArgumentParser(description="Make a small class of submissions to try grading on.")
    parser.add_argument("folder", type=Path, help="a new folder for the course")
    options = parser.parse_args(argv)
    make(options.folder)
    for student in CLASS:
        print(f"{student.name:<5} {student.about}")
    print(f"due   {DUE:%Y-%m-%d %H:%M} UTC")
    return 0


if __name__ == "__main__":
    sys.exit(main())

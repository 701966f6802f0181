"""Read from an entry's name which student a hand-in belongs to, and which attempt it is.

Only the entry directly below the given folder counts: students name what lies further inside. Known are the names that
Moodle and Canvas give, nbgrader's own layout ``submitted/STUDENT/ASSIGNMENT/``, times and numbers of attempts, plain names.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.classroom.submitted_files import SKIPPED, Unreadable
from autograder.parts import CHAPTERS

SUBMITTED = "submitted"
ANY_CHAPTER = "|".join(CHAPTERS)
MOODLE = re.compile(r"(?P<student>.+?)_(?P<account>\d+)_assignsubmission_[a-z]+(?:_.*)?")
CANVAS = re.compile(r"(?P<student>[^_]+)(?:_late)?_(?P<account>\d+)_(?P<attempt>\d+)_.+", re.IGNORECASE)
NUMBER = re.compile(r"(?P<before>.*\S)(?:[ _]*\((?P<browser>\d{1,3})\)|-(?P<platform>\d{1,3}))")
TIME = re.compile(
    r"(?<!\d)(20\d\d)(?:([-_.])(\d\d)\2(\d\d)(?:[-_. T]+(\d\d)[-_.:h]?(\d\d)(?:[-_.:m]?(\d\d))?)?"
    r"|(\d\d)(\d\d)[-_T]?(\d\d)(\d\d)(\d\d)?)(?!\d)"
)
CHAPTER = re.compile(rf"^(?:{ANY_CHAPTER})[-_. ]+|[-_. ]+(?:{ANY_CHAPTER})$")
WORDS = re.compile(r"[-_. ]+(?:attempt|late|submission)$", re.IGNORECASE)
NOBODY = re.compile(
    rf"minisgl|models|workspace|notebooks|(?:copy of )?(?:{ANY_CHAPTER})(?:[ _]*\(\d+\)|-\d+|[-_ ]*copy *\d*)*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Claim:
    """An entry whose name says that it is a student's.

    Attributes:
        path: the entry.
        student: the student's name.
        account: the number that a learning platform gives a student, where it gives one.
        time: when it was handed in, where its name says so.
        attempt: a number that rises from one attempt to the next.
        problem: why its name can't be read; empty where it can.
        alone: whether it was given by itself, and not found in a class's folder.
    """

    path: Path
    student: str
    account: str = ""
    time: datetime | None = None
    attempt: int = 0
    problem: str = ""
    alone: bool = False

    @property
    def order(self) -> tuple[datetime, int]:
        """What is greater in a newer attempt."""
        return (self.time or datetime.min, self.attempt)


def claims_of(paths: list[Path]) -> dict[str, list[Claim]]:
    """Return the claims below some paths, by student.

    Args:
        paths: a class's folder, with an entry for each student or attempt, or one student's folder, zip or notebook.

    Raises:
        ValueError: a folder holds chapters, and each of them a class.
    """
    found: dict[str, list[Claim]] = {}
    for path in paths:
        owner = _owner_of(path)
        for claim in _entries_of(path) if owner is None else [replace(owner, path=path, alone=True)]:
            found.setdefault(claim.student, []).append(claim)
    return found


def chapter_in(name: str) -> str:
    """Return the chapter that a file's name has in it, as in ``01_config (1).ipynb``; empty where it is none."""
    found = re.search(rf"(?<![A-Za-z0-9])({ANY_CHAPTER})(?![A-Za-z0-9])", name)
    return found[1] if found else ""


def time_in(name: str) -> tuple[datetime, int, int] | None:
    """Return the first time in a name and where it begins and ends, or None where there is none.

    Raises:
        Unreadable: there is no such time.
    """
    found = TIME.search(name)
    if found is None:
        return None
    parts = [int(part) for part in found.groups() if part and part.isdigit()]
    try:
        return datetime(*parts), found.start(), found.end()  # type: ignore[arg-type]
    except ValueError:
        raise Unreadable(f"the time {found[0]} in the name {name[:100]} doesn't exist; rename it") from None


def _owner_of(path: Path) -> Claim | None:
    """Return whose a given path is as a whole; None where it is a folder of many."""
    place = path.absolute()
    above = 1 if place.name in CHAPTERS else 2 if place.parent.name in CHAPTERS else 0
    inner = (place, *place.parents)[above]
    if inner.parent.name == SUBMITTED:
        return Claim(path, inner.name)
    if not path.is_symlink() and os.path.isdir(path):  # unlike Path.is_dir, it never raises
        try:
            children = _children_of(path)
        except OSError:
            return Claim(path, place.name)
        if place.name not in ("minisgl", "models") and not any(NOBODY.fullmatch(_stem(child)) for child in children):
            return None
        _refuse_classes(path, children)
    named = next((each for each in (place, *place.parents) if each.name and not NOBODY.fullmatch(_stem(each))), place)
    return claim_of(named)


def _refuse_classes(path: Path, children: list[Path]) -> None:
    for child in children:
        inside = _children_of(child) if child.name in CHAPTERS and child.is_dir() else []
        if len(inside) > 1 and all(each.is_dir() and not NOBODY.fullmatch(each.name) for each in inside):
            raise ValueError(
                f"{path} holds {child.name}, and that holds folders only ({inside[0].name}, {inside[1].name}, …). Expected "
                f"a folder with an entry for each student. If these are students, give the chapter's folder: {child}"
            )


def _entries_of(folder: Path) -> list[Claim]:
    claims = [claim_of(child) for child in _children_of(folder) if os.path.isdir(child) or _suffix(child)]
    students = {claim.student for claim in claims}
    return [_numbered(claim, students) for claim in claims]


def _children_of(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.name not in SKIPPED and child.name[0] != ".")


def _numbered(claim: Claim, students: set[str]) -> Claim:
    """Read ``ann (1)`` as a further attempt of ann's, and ``ann-1`` too where there is an ann; else it may be a name."""
    found = NUMBER.fullmatch(_stem(claim.path))
    if found is None or claim.account:
        return claim
    base = claim_of(claim.path, found["before"])
    if found["browser"] or (claim.time is None and base.student in students):
        return replace(base, attempt=int(found["browser"] or found["platform"]))
    return claim


def claim_of(entry: Path, stem: str = "") -> Claim:
    """Read the name of an entry, or another name in its stead."""
    name = unicodedata.normalize("NFC", stem or _stem(entry))
    if found := MOODLE.fullmatch(name):
        return Claim(entry, found["student"], found["account"])
    if found := CANVAS.fullmatch(name):
        return Claim(entry, found["student"], found["account"], attempt=int(found["attempt"]))
    try:
        dated = time_in(name)
    except Unreadable as error:
        return Claim(entry, name, problem=str(error))
    student, time = name, None
    if dated is not None:
        time, start, end = dated
        student = name[:start].strip("-_. ") or CHAPTER.sub("", name[end:].strip("-_. "))
    return Claim(entry, CHAPTER.sub("", WORDS.sub("", student)) or name, time=time)


def _stem(path: Path) -> str:
    return path.name.removesuffix(_suffix(path))


def _suffix(path: Path) -> str:
    return path.suffix if path.suffix.lower() in (".zip", ".ipynb") else ""

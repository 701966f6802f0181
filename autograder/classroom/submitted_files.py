"""The files of one hand-in that could matter: of a folder, a single file, a zip; nothing is unpacked to disk or followed."""

from __future__ import annotations

import os
import re
import stat
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autograder.parts import GRADED_MODULES

MAX_FILE_BYTES = 20 << 20
MAX_ALL_BYTES = 60 << 20
MAX_FILES = 5000
MAX_DEPTH = 12
MAX_TIGHT_BYTES = 16 << 20
MAX_RATIO = 200
SKIPPED = {".ipynb_checkpoints", "__pycache__", "__MACOSX", ".git"}
MODULES = {PurePosixPath(module).name: module for module in GRADED_MODULES}


class Unreadable(ValueError):
    """Report something in a submission that can't be read, and why."""


@dataclass(frozen=True)
class File:
    """A notebook or a module that was handed in.

    Attributes:
        name: its place below the hand-in, with slashes; the file's own name where it was handed in by itself.
        changed: when it was last changed, in seconds since 1970.
        content: its bytes.
    """

    name: str
    changed: float
    content: bytes


def files_of(path: Path, problems: list[str]) -> Iterator[File]:
    """Yield the files that could matter.

    Args:
        path: a hand-in.
        problems: is given the reasons why something in it can't be read.

    Raises:
        Unreadable: it holds too much.
    """
    num_bytes = 0
    for file in _everything(path, problems):
        num_bytes += len(file.content)
        if num_bytes > MAX_ALL_BYTES:
            raise Unreadable(f"its notebooks and modules are larger than {MAX_ALL_BYTES >> 20} MiB together")
        yield file


def _everything(path: Path, problems: list[str]) -> Iterator[File]:
    """Yield the files at a path, those inside zips among them."""
    for number, (place, name) in enumerate(_places(path, problems)):
        if number >= MAX_FILES:
            raise Unreadable(f"it holds more than {MAX_FILES} files")
        try:
            if place.is_symlink():
                raise Unreadable("is a link; links are never followed")
            if place.suffix.lower() == ".zip":
                inner = "" if place == path else f"{name}/"
                for file in _zip_files(place):
                    yield File(f"{inner}{file.name}", file.changed, file.content)
            else:
                yield _file(place, name)
        except Unreadable as error:
            problems.append(f"{name} {error}")


def _places(path: Path, problems: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the places that could be files that matter, each with its name below the path."""
    if path.is_symlink() or not os.path.isdir(path):
        yield path, path.name
        return
    for folder, folders, names in os.walk(path, followlinks=False, onerror=lambda error: problems.append(_words(error))):
        below = Path(folder).relative_to(path)
        inside = sorted(name for name in folders if name not in SKIPPED)
        if inside and len(below.parts) >= MAX_DEPTH:
            problems.append(
                f"its folders are nested deeper than {MAX_DEPTH}, the most that is searched; hand in fewer levels"
            )
            inside = []
        folders[:] = inside
        links = [name for name in inside if os.path.islink(os.path.join(folder, name))]
        for name in [*links, *sorted(name for name in names if _matters(PurePosixPath(below, name)))]:
            yield Path(folder, name), (below / name).as_posix()


def _words(error: OSError) -> str:
    return f"{Path(error.filename).name} can't be opened: {error.strerror}"


def _file(path: Path, name: str) -> File:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise Unreadable("doesn't exist") from None
    except OSError as error:
        raise Unreadable(f"can't be opened: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable("isn't a regular file")
        if facts.st_size > MAX_FILE_BYTES:
            raise Unreadable(f"is larger than {MAX_FILE_BYTES >> 20} MiB; clear its outputs")
        return File(name, facts.st_mtime, file.read(MAX_FILE_BYTES + 1))


def _zip_files(path: Path) -> Iterator[File]:
    """Yield a zip's files that could matter, without unpacking it."""
    try:
        _file(path, "") if not path.is_file() else None
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES:
                raise Unreadable(f"holds more than {MAX_FILES} files")
            for entry in sorted(entries, key=lambda each: each.filename):
                name = PurePosixPath(entry.filename.replace("\\", "/"))
                if name.is_absolute() or ".." in name.parts or re.match(r"^[A-Za-z]:", entry.filename):
                    raise Unreadable(f"has an entry that leaves it: {entry.filename[:100]!r}")
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise Unreadable(f"has a link: {entry.filename[:100]!r}")
                if not entry.is_dir() and _matters(name) and name.suffix.lower() != ".zip":
                    yield File(name.as_posix(), _changed(entry, path), _zip_content(archive, entry, name.name))
    except Unreadable:
        raise
    except Exception as error:  # of hostile bytes, each decompressor makes errors of its own kind
        raise Unreadable(f"can't be read: {error}") from None


def _changed(entry: zipfile.ZipInfo, path: Path) -> float:
    if entry.date_time[0] > 1980:  # the year of an entry without a time
        with suppress(ValueError, OverflowError):
            return time.mktime((*entry.date_time, 0, 0, -1))
    return path.stat().st_mtime


def _zip_content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    """Unpack one file of a zip in memory, and never more of it than may be read."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack without a limit
        raise Unreadable(f"holds {name}, which is packed by an unusual method; make the zip anew with the method deflate")
    with archive.open(entry) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise Unreadable(f"holds {name}, which is larger than {MAX_FILE_BYTES >> 20} MiB; clear its outputs")
    if len(content) > max(MAX_TIGHT_BYTES, MAX_RATIO * entry.compress_size):
        raise Unreadable(
            f"holds {name}, which is larger than {MAX_TIGHT_BYTES >> 20} MiB and packed too tightly; clear its outputs"
        )
    return content


def _matters(path: PurePosixPath) -> bool:
    """Tell a notebook, a zip, or a graded module: in a package only below ``models``."""
    if SKIPPED.intersection(path.parts) or path.name.startswith("._"):
        return False
    in_package = "minisgl" in path.parts[:-1] and path.parent.name != "models"
    return path.suffix.lower() in (".ipynb", ".zip") or (path.name in MODULES and not in_package)

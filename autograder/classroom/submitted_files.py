"""Where submissions lie and which of their files could matter: folders, single files, zips; nothing is unpacked or followed."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from autograder.parts import CHAPTERS, GRADED_MODULES

MAX_FILE_BYTES = 20 << 20
MAX_FILES = 5000
MAX_DEPTH = 12
MAX_TIGHT_BYTES = 16 << 20
MAX_RATIO = 200
SKIPPED = {".ipynb_checkpoints", "__pycache__", "__MACOSX", ".git"}


class Unreadable(ValueError):
    """Report something in a submission that can't be read, and why."""


def files_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files that could matter.

    Raises:
        Unreadable: something there can't be read, is too large, or is a link.
    """
    return _zip_files(path) if path.suffix.lower() == ".zip" else _plain_files(path)


def _plain_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the regular files at a path that could matter."""
    if path.is_symlink():
        raise Unreadable(f"{path.name} is a link; links are never followed")
    if not path.exists():
        raise Unreadable(f"{path.name} doesn't exist")
    if not path.is_dir():
        yield path.name, _content(path)
        return
    number = 0
    for folder, folders, names in os.walk(path, followlinks=False):
        deep = len(Path(folder).relative_to(path).parts) >= MAX_DEPTH
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not deep)
        for name in sorted(names):
            number += 1
            if number > MAX_FILES:
                raise Unreadable(f"it holds more than {MAX_FILES} files")
            place = Path(folder, name)
            if _matters(name) and not place.is_symlink():
                yield place.relative_to(path).as_posix(), _content(place)


def inner_places(path: Path, *, one_student: bool) -> list[Path]:
    """List what may hold submissions in a folder; nothing where the path is one itself.

    Args:
        path: a folder, or any other place.
        one_student: whether all in it is one student's, so that many notebooks are one submission.

    Raises:
        OSError: the folder can't be opened.
    """
    if path.is_symlink() or not os.path.isdir(path) or _is_submission(path, one_student):
        return []
    children = sorted(child for child in path.iterdir() if child.name not in SKIPPED and not child.name.startswith("."))
    return [
        child
        for child in children
        if child.is_symlink() or child.is_dir() or child.suffix.lower() in (".zip", ".ipynb")
    ]


def _is_submission(path: Path, one_student: bool) -> bool:
    names = {child.name for child in path.iterdir() if not child.is_symlink()}
    stems = {name.removesuffix(".ipynb") for name in names if name.endswith(".ipynb")}
    many_students = not one_student and len(stems) > 1 and not any(name in CHAPTERS for name in stems)
    return (
        (bool(stems) and not many_students) or bool(names & {"minisgl", "models"}) or path.name in ("minisgl", "models")
    )


def linked(path: Path) -> str:
    """Say which link stands in the place of a file that would have been read; empty where none does."""
    children = sorted(path.iterdir()) if os.path.isdir(path) and not path.is_symlink() else []
    links = [child.name for child in children if child.is_symlink() and (_matters(child.name) or os.path.isdir(child))]
    return f"{links[0]} is a link; links are never followed" if links else ""


def _content(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Unreadable(f"{path.name} can't be opened: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable(f"{path.name} isn't a regular file")
        if facts.st_size > MAX_FILE_BYTES:
            raise Unreadable(f"{path.name} is larger than {MAX_FILE_BYTES >> 20} MiB")
        return file.read(MAX_FILE_BYTES + 1)


def _zip_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of a zip's files that could matter, without unpacking it."""
    if path.is_symlink():
        raise Unreadable(f"{path.name} is a link; links are never followed")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES:
                raise Unreadable(f"the zip holds more than {MAX_FILES} files")
            for entry in sorted(entries, key=lambda each: each.filename):
                name = PurePosixPath(entry.filename.replace("\\", "/"))
                if name.is_absolute() or ".." in name.parts or re.match(r"^[A-Za-z]:", entry.filename):
                    raise Unreadable(f"the zip has an entry that leaves it: {entry.filename[:100]!r}")
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise Unreadable(f"the zip has a link: {entry.filename[:100]!r}")
                if entry.is_dir() or not _matters(name.name) or SKIPPED.intersection(name.parts):
                    continue
                yield name.as_posix(), _zip_content(archive, entry, name.name)
    except Unreadable:
        raise
    except Exception as error:  # of hostile bytes, each decompressor makes errors of its own kind
        raise Unreadable(f"the zip can't be read: {error}") from None


def _zip_content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    """Unpack one file of a zip in memory, and never more of it than may be read."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack without a limit
        raise Unreadable(f"the zip's {name} is packed by an unusual method; make the zip anew with the method deflate")
    with archive.open(entry) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise Unreadable(f"the zip's {name} is larger than {MAX_FILE_BYTES >> 20} MiB; clear its outputs")
    if len(content) > max(MAX_TIGHT_BYTES, MAX_RATIO * entry.compress_size):
        raise Unreadable(
            f"the zip's {name} is larger than {MAX_TIGHT_BYTES >> 20} MiB and packed too tightly; clear its outputs"
        )
    return content


def _matters(name: str) -> bool:
    return name.endswith(".ipynb") or name in {Path(module).name for module in GRADED_MODULES}

"""The tree as git sees it, for the tests that hold rules over all of it."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CODE_FOLDERS = ("minisgl", "autograder", "solutions", "benchmarks", "tools", "scripts")
"""Folders with our own code; tests/ has rules of its own."""


@cache
def tracked_files() -> tuple[Path, ...]:
    """All files that git tracks and that are on disk, sorted."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = (ROOT / name for name in listed.decode().split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """The tracked Python files below the given top folders."""
    wanted = [path for path in tracked_files() if path.suffix == ".py"]
    return [path for path in wanted if path.relative_to(ROOT).parts[0] in folders]


def name_of(path: Path) -> str:
    """A tracked file's path as it is written in a message."""
    return path.relative_to(ROOT).as_posix()


def copy_tracked(folder: Path) -> Path:
    """Copy the tracked files, as they stand in the clone, into a folder; return it."""
    for path in tracked_files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return folder

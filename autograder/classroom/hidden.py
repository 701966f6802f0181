"""The instructor's hidden cases: a seed and optional ``*.json`` files in a folder that no student receives."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import tempfile
from pathlib import Path

from autograder import paths

_INSTALLED: dict[int, Path] = {}  # process id -> folder of hidden files


def default_folder() -> Path:
    """Return the course's own folder of hidden things."""
    named = os.environ.get("MINISGL_HIDDEN")
    return Path(named) if named else paths.HOME / "instructor"


def prepare(folder: Path | None = None) -> dict[str, str]:
    """Return the hidden folder's files (name -> text); a seed is drawn on first use."""
    folder = folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    seed = folder / "seed"
    if not seed.is_file():
        seed.write_text(secrets.token_hex(16) + "\n")
        seed.chmod(0o600)
    return {path.name: path.read_text() for path in [seed, *sorted(folder.glob("*.json"))]}


def digest(files: dict[str, str]) -> str:
    """Return a digest of hidden files that gives nothing away: it enters the key under which results are kept."""
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]


def install(files: dict[str, str]) -> None:
    """Make these hidden files the ones of this process; check modules loaded with others are forgotten."""
    uninstall()
    folder = Path(tempfile.mkdtemp(prefix="minisgl-hidden-"))  # of this user's alone, and new: nobody foresees its name
    for name, text in files.items():
        (folder / name).write_text(text)
    _INSTALLED[os.getpid()] = folder
    os.environ["MINISGL_HIDDEN"] = str(folder)
    _forget_checks()


def uninstall() -> None:
    """Remove what ``install`` wrote; from now on this process has no hidden cases."""
    import shutil

    folder = _INSTALLED.pop(os.getpid(), None)  # a forked process leaves its parent's alone
    if folder is None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    if os.environ.get("MINISGL_HIDDEN") == str(folder):
        del os.environ["MINISGL_HIDDEN"]
        _forget_checks()


def _forget_checks() -> None:
    """Have the check files loaded anew: what cases they have was decided when they were loaded."""
    root = str(paths.checks_root())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "") or "").startswith(root):
            del sys.modules[name]

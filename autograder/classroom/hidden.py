"""The instructor's folder: a seed and optional ``*.json`` files with hidden cases, which no student receives.

They are read once and travel from there as text, in the task of each grading process: no copy of them is written.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from autograder import paths
from autograder.judge.hidden_files import syntax_problems


def default_folder() -> Path:
    """Return the course's own folder of hidden things, or the one that ``MINISGL_HIDDEN`` names."""
    named = os.environ.get("MINISGL_HIDDEN")
    return Path(named) if named else paths.HOME / "instructor"


def prepare(folder: Path | None = None) -> dict[str, str]:
    """Return the hidden folder's files (name -> text); a seed is drawn on first use.

    Raises:
        ValueError: a JSON file can't be read as one, or has another form; the message says where.
    """
    folder = folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    seed = folder / "seed"
    if not seed.is_file():
        seed.write_text(secrets.token_hex(16) + "\n")
        seed.chmod(0o600)
    files = {path.name: path.read_text() for path in [seed, *sorted(folder.glob("*.json"))]}
    if broken := syntax_problems(files):
        raise ValueError(f"the hidden cases in {folder} can't be read: " + "\n".join(broken))
    return files


def digest(files: dict[str, str]) -> str:
    """Return a digest of hidden files that gives nothing away: it enters the key under which results are kept."""
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]

"""Where things lie: the provided package, the checks, the student's workspace."""

from __future__ import annotations

import os
from pathlib import Path

from autograder.parts import GRADED_MODULES

HOME = Path(__file__).resolve().parent.parent


def reference_root() -> Path:
    """Return the folder of the ``minisgl`` package beside ``autograder`` (in a student kit: without graded modules)."""
    return HOME / "minisgl"


def has_reference() -> bool:
    """Tell whether the reference's graded modules are here; a student kit has none of them."""
    return all((reference_root() / module).is_file() for module in GRADED_MODULES)


def checks_root() -> Path:
    """Return the folder of the check files: ``tests/checks`` of the project or kit, else the packaged copy."""
    beside = HOME / "tests" / "checks"
    return beside if beside.is_dir() else Path(__file__).resolve().parent / "checks"


def workspace_root(start: Path | None = None) -> Path:
    """Return the folder that holds the student's ``minisgl/``; it needn't exist yet.

    ``MINISGL_WORKSPACE`` decides where set; else ``workspace/`` beside the nearest ``notebooks/`` or ``solutions/``
    folder above ``start``, else ``workspace/`` in the project, or in ``start`` where only the packages are installed.
    """
    named = os.environ.get("MINISGL_WORKSPACE")
    if named:
        return Path(named).expanduser().resolve()
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if folder.name in ("notebooks", "solutions"):
            return folder.parent / "workspace"
        if (folder / "notebooks").is_dir() and (folder / "notebooks").resolve() != here:
            return folder / "workspace"
    return (HOME if (HOME / "tests" / "checks").is_dir() else here) / "workspace"


def provided_entries() -> list[Path]:
    """Return the provided files and folders of the package, as paths below ``minisgl/``: all but the graded modules."""
    root = reference_root()
    graded = set(GRADED_MODULES)
    top = [path.relative_to(root) for path in root.iterdir() if path.name not in ("models", "__pycache__")]
    inner = [path.relative_to(root) for path in (root / "models").iterdir() if path.name != "__pycache__"]
    return sorted(path for path in (*top, *inner) if path.as_posix() not in graded)

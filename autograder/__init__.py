"""Check a student's module tree: sandboxed worker, notebook magic, nbgrader integration, command line.

In a notebook: ``%load_ext autograder``, then ``from autograder import check, hint, use_reference, status``.
Everything is imported on first use, so that ``import autograder`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME_OF = {
    "check": "student.notebook",
    "hint": "student.notebook",
    "status": "student.notebook",
    "status_panel": "student.progress_panel",
    "use_reference": "student.notebook",
    "load_ipython_extension": "student.magic",
    "unload_ipython_extension": "student.magic",
}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)

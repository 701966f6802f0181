"""What the labs need beside minisgl's own dependencies, imported when it is needed and asked for in plain words."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from minisgl.errors import MinisglError


class MissingWidgets(MinisglError, ImportError):
    """Report that a library of the notebook labs isn't installed."""


class NotWrittenYet(MinisglError):
    """Report that a lab needs a module that isn't written yet, or not ready."""


def need(module: str, purpose: str) -> Any:
    """Import a library of the optional extra.

    Raises:
        MissingWidgets: It isn't installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise MissingWidgets(
            f"{library} isn't installed, but {purpose} needs it. Expected the course's notebook environment. "
            f"Install it with `pip install {library}`, or run `make setup` in the course's folder."
        ) from error


def need_written(module: str, name: str) -> Any:
    """Give a name of a module that students write.

    Args:
        module: Below ``minisgl``, as in ``models.register``.
        name: What the lab needs of it.

    Raises:
        NotWrittenYet: The module or the name isn't there, or importing it fails.
    """
    file = module.replace(".", "/") + ".py"
    try:
        return getattr(import_module(f"minisgl.{module}"), name)
    except Exception as error:  # whatever a half-written module does when it is imported
        raise NotWrittenYet(
            f"this lab needs {name} of {file}, which isn't ready: {type(error).__name__}: {error}. "
            f"Expected a module that can be imported. Write that part first, or put the provided version in its place "
            f"with use_reference, and run this cell again."
        ) from error

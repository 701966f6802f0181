"""The reference's graded modules as text, where this installation has them: headers, parts, whole files.

A student kit has only the headers (``headers.json`` beside this file) and, for chapters that the instructor opened, whole
modules below ``catch_up/``.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from autograder import paths
from autograder.parts import BY_ID, GRADED_MODULES, Part
from autograder.text.sources import header_of, split_reference

HEADERS = Path(__file__).resolve().parent / "headers.json"


def _home_of(module: str) -> Path | None:
    for folder in (paths.reference_root(), paths.HOME / "catch_up"):
        if (folder / module).is_file():
            return folder / module
    return None


@functools.cache
def _split(module: str) -> tuple[str, dict[str, str]]:
    home = _home_of(module)
    if home is None:
        raise FileNotFoundError(f"this student kit has no reference for {module}")
    return split_reference(module, home.read_text(encoding="utf-8"))


def text(module: str) -> str:
    """Return a graded module of the reference, as it stands."""
    home = _home_of(module)
    if home is None:
        raise FileNotFoundError(f"this student kit has no reference for {module}")
    return home.read_text(encoding="utf-8")


def header(module: str) -> str:
    """Return the provided top of a graded module; it is there in a kit too."""
    home = _home_of(module)
    if home is not None:
        return header_of(module, home.read_text(encoding="utf-8"))
    return str(json.loads(HEADERS.read_text(encoding="utf-8"))[module])


def pieces(module: str) -> dict[str, str]:
    """Return the reference's source of each part of a module: part name -> text."""
    return dict(_split(module)[1])


def is_here(module: str) -> bool:
    """Tell whether this installation has a graded module of the reference."""
    return _home_of(module) is not None


def has(part: Part) -> bool:
    """Tell whether the reference's version of a part is here."""
    return not part.together and is_here(part.module)


def piece(part_id: str) -> str:
    """Return the reference's source of one part."""
    part = BY_ID[part_id]
    return _split(part.module)[1][part.name]


def headers() -> dict[str, str]:
    """Return the headers of all graded modules."""
    return {module: header(module) for module in GRADED_MODULES}

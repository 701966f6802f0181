"""Find a student's parts in the text of modules and cells. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from autograder.parts import BY_ID, GRADED_MODULES, Part, parts_of_module
from autograder.text.sources import (
    MAX_PART_CHARS,
    defined_names,
    is_stub,
    lines_of,
    normalize,
    split_student,
    syntax_error_of,
    tree_of,
)

MAGIC = re.compile(r"^[ \t]*%%module[ \t]+(?P<module>\S+)[ \t]+(?P<part>\S+)[ \t]*$")


def part_of_magic(module: str, name: str) -> Part:
    """Return the part that ``%%module MODULE NAME`` means.

    Raises:
        ValueError: there is none; the message lists the module's parts, or the modules.
    """
    path = module.removeprefix("minisgl/").removeprefix("./")
    path = path if path.endswith(".py") else path + ".py"
    path = path if "/" in path else f"models/{path}"
    if path not in GRADED_MODULES:
        raise ValueError(f"{module!r} isn't a module that you write; those are {', '.join(GRADED_MODULES)}")
    for part in parts_of_module(path):
        if part.name == name:
            return part
    known = ", ".join(part.name for part in parts_of_module(path))
    raise ValueError(f"{path} has no part {name!r}; its parts are {known}")


def read_cell(source: str) -> tuple[str, str, str] | None:
    """Return module, part name and body of a ``%%module`` cell, or None for another cell.

    Blank lines and comments may stand before the magic, since a kernel would refuse them but a grader can be kind.
    """
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines):
        found = MAGIC.match(line)
        if found:
            return found["module"], found["part"], "\n".join(lines[number + 1 :])
        if line.strip() and not line.lstrip().startswith("#"):
            return None
    return None


def lift_cells(sources: Iterable[str]) -> dict[str, str]:
    """Return part id -> text from the sources of a notebook's code cells.

    Of several cells for one part the last that isn't an untouched stub or empty counts, as the last run would. Cells
    for parts that don't exist are ignored. A text longer than ``MAX_PART_CHARS`` counts too, so that its length is told.
    """
    found: dict[str, str] = {}
    for source in sources:
        cell = read_cell(source)
        if cell is None:
            continue
        try:
            part = part_of_magic(cell[0], cell[1])
        except ValueError:
            continue
        text = normalize(cell[2])
        if not text or (part.id in found and is_stub(text)):
            continue
        found[part.id] = text
    return found


def lift_module(module: str, text: str) -> dict[str, str]:
    """Return part id -> text from a module's file: by its part lines, else by the names that its statements define.

    Without part lines, imports and helpers between the parts go to the part that follows them.
    """
    stem = module.rsplit("/", 1)[-1].removesuffix(".py")
    _, marked = split_student(text)
    if marked:
        return {f"{stem}.{name}": piece for name, piece in marked.items() if f"{stem}.{name}" in BY_ID}
    if obstacle_of_module(module, text):
        return {}
    return {f"{stem}.{name}": piece for name, piece in _by_names(module, normalize(text)).items()}


def obstacle_of_module(module: str, text: str) -> str:
    """Return why no parts can be found in a module's file, in words; empty where they can."""
    _, marked = split_student(text)
    if marked:
        return ""
    most = len(parts_of_module(module)) * MAX_PART_CHARS
    if len(text) > most:
        return f"{module} is longer than {most} characters, the most that its parts may have together; shorten it"
    error = syntax_error_of(text, most)
    return f"{module} has a syntax error in line {error.lineno}: {error.msg}" if error is not None else ""


def _by_names(module: str, text: str) -> dict[str, str]:
    owner = {name: part.name for part in parts_of_module(module) for name in part.names}
    lines = lines_of(text)
    tree = tree_of(text)
    found: dict[str, str] = {}
    start = 0
    for node in tree.body if tree else []:
        part = next((owner[name] for name in defined_names(node) if name in owner), None)
        if part is not None:
            found[part] = found.get(part, "") + "".join(lines[start : node.end_lineno])
            start = node.end_lineno or start
        elif not found:
            start = node.end_lineno or start  # still in the header, which is provided
    return {name: normalize(piece) for name, piece in found.items()}

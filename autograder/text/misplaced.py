"""Say of work that can't count where it stands: outside the ``%%module`` cells of its module, or under another name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from autograder.parts import PARTS, Part
from autograder.text.sources import MAX_PART_CHARS, is_stub, missing_names
from autograder.text.work import Work, module_of_magic, names_written_in, read_cell

IN_ITS_CELL = ""


def reasons(cells: Sequence[tuple[str, str]], work: Work, parts: Iterable[Part] = PARTS) -> dict[str, str]:
    """Return part id -> why it can't count although something was written for it.

    Args:
        cells: kind (``code``, ``markdown``, ``raw``) and source of each cell of a notebook, or of what was run in it.
        work: what counts of them.
        parts: the parts to look at.
    """
    found: dict[str, str] = {}
    defined: dict[str, tuple[set[str], dict[str, str]]] = {}
    known = {name for part in PARTS for name in part.names}
    for part in parts:
        text = work.pieces.get(part.id, "")
        written = bool(text) and not is_stub(text)
        names = missing_names(part, text) if written else part.names
        if names and part.module not in defined:
            defined[part.module] = _defined(cells, part.module)
        own, elsewhere = defined.get(part.module, (set(), {}))
        for name in names:
            if name in elsewhere and (name not in own or (text and not written)):
                found[part.id] = f"{name} {elsewhere[name]}; head its cell with: %%module {part.module} {part.name}"
                break
            if not text and name not in own and (similar := difflib.get_close_matches(name, own - known, 1, 0.75)):
                found[part.id] = f"{name} is missing; there is a {similar[0]}: give it the name that the task says"
                break
    return found


def _defined(cells: Iterable[tuple[str, str]], module: str) -> tuple[set[str], dict[str, str]]:
    """Return the names that cells define for a module, and those that they define elsewhere, with the place in words."""
    own: set[str] = set()
    elsewhere: dict[str, str] = {}
    for kind, source in cells:
        where, text = _place(kind, source[: 2 * MAX_PART_CHARS], module)
        names = names_written_in(text)
        if where == IN_ITS_CELL:
            own.update(names)
        else:
            elsewhere.update(dict.fromkeys(names, where))
    return own, elsewhere


def _place(kind: str, source: str, module: str) -> tuple[str, str]:
    """Return where the definitions of a cell stand, in words, and the text in which to look for them."""
    if kind != "code":
        return f"stands in a {kind} cell", "\n".join(line.lstrip() for line in source.splitlines())
    cell = read_cell(source)
    if cell is None:
        head = next((line.split()[0] for line in source.splitlines() if line.strip()), "")
        return f"stands under {head}" if head.startswith("%%") else "stands in a cell without %%module", source
    try:
        found = module_of_magic(cell[0])
    except ValueError:
        found = cell[0]
    return IN_ITS_CELL if found == module else f"stands in a %%module cell of {found}", cell[2]

"""Which text goes into the tree that a part is judged in.

For one part: the student's version of that part, everything else the reference's, so that one mistake costs one
part. For a "together" part: all that the student wrote. Of a module whose reference isn't here (in a student kit, unless
the instructor opened its chapter), everything is the student's own, and a part whose prerequisites aren't written says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.parts import BY_ID, GRADED_MODULES, Part, parts_judged_with, parts_of_module
from autograder.text import reference
from autograder.text.sources import assemble, is_stub, missing_names, syntax_error_of

MAX_SHOWN = 12


@dataclass
class Work:
    """A student's parts, lifted from a workspace, a notebook or a tree.

    Attributes:
        pieces: part id -> source text.
        helped: ids of parts that were taken from the reference by ``use_reference``.
        problems: part id -> why its text can't be used.
    """

    pieces: dict[str, str] = field(default_factory=dict)
    helped: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)


def state_of(work: Work, part: Part) -> str:
    """Return why a part can't be judged yet, in words; empty when it can."""
    if part.together:
        judged = parts_judged_with(part)
        missing = [other.id for other in judged if not_ready(work, other) or other.id in work.helped]
        if missing:
            return f"write {_some(missing)} first"
        broken = [other.id for other in judged if syntax_error_of(work.pieces[other.id]) is not None]
        return f"mend the syntax of {_some(broken)} first" if broken else ""
    if part.id in work.helped:
        return "the provided version is in place; it earns no points"
    return not_ready(work, part)


def _some(ids: list[str]) -> str:
    """List the first ids, and say how many there are besides."""
    return ", ".join(ids[:MAX_SHOWN] + [f"{len(ids) - MAX_SHOWN} more"] * (len(ids) > MAX_SHOWN))


def not_ready(work: Work, part: Part) -> str:
    """Return why a part's own text can't be judged; empty when it can."""
    piece = work.pieces.get(part.id, "")
    if part.id in work.problems:
        return work.problems[part.id]
    if not piece:
        return "not written yet"
    if is_stub(piece):
        return "not written yet: it still raises NotImplementedError"
    return ""


def prerequisites(part: Part) -> list[Part]:
    """Return the parts that a part needs, directly or through others, in the order in which they are written.

    A "together" part needs what its parts need from other chapters.
    """
    judged = parts_judged_with(part) if part.together else (part,)
    seen: set[str] = set()
    queue = [name for each in judged for name in each.depends]
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            queue += BY_ID[name].depends
    return [BY_ID[name] for name in BY_ID if name in seen and BY_ID[name] not in judged]


def missing_prerequisites(work: Work, part: Part) -> list[str]:
    """Return the ids of the parts that must be written first because no reference stands in for them."""
    return [other.id for other in prerequisites(part) if not reference.has(other) and not_ready(work, other)]


def obstacle_of(work: Work, part: Part) -> tuple[str, str]:
    """Return why a part can't be judged at all: a status and the reason in words; the reason is empty when it can."""
    reason = state_of(work, part)
    status = "refused" if part.id in work.problems else "not_written"
    if not reason and not part.together:
        error = syntax_error_of(work.pieces[part.id])
        if error is not None:
            reason, status = f"syntax error in line {error.lineno}: {error.msg}", "failed"
        elif missing := missing_names(part, work.pieces[part.id]):
            reason, status = f"this part must define {', '.join(missing)}", "failed"
    if not reason and (first := missing_prerequisites(work, part)):
        reason = f"write {', '.join(first)} first"
    return status, reason


def tree_for(work: Work, part: Part) -> dict[str, str]:
    """Return the text of each graded module of the tree that a part is judged in."""
    files = {}
    for module in GRADED_MODULES:
        provided = reference.pieces(module) if reference.is_here(module) else {}
        if part.together or not provided:
            chosen = {**provided, **_usable(work, module)}
        elif module != part.module:
            files[module] = reference.text(module)
            continue
        else:
            chosen = {**provided, part.name: work.pieces[part.id]}
        files[module] = assemble(module, reference.header(module), chosen)
    return files


def _usable(work: Work, module: str) -> dict[str, str]:
    """Return the student's parts of a module that can be compiled: a broken part or a stub mustn't hide the others."""
    found = {part.name: work.pieces.get(part.id, "") for part in parts_of_module(module)}
    return {name: text for name, text in found.items() if text and syntax_error_of(text) is None and not is_stub(text)}

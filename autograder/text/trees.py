"""Which text goes into the tree that a part is judged in.

For one part: the reference's, with the names of that part taken from the student, who brings along every name of their own
that it uses. So one mistake costs one part, a broken helper costs what uses it, and no helper changes what the
reference's functions do. For a "together" part: all that the student wrote. Of a module whose reference isn't here (in a
student kit, unless the instructor opened its chapter), everything is the student's own, and a part whose prerequisites
aren't written says so.
"""

from __future__ import annotations

import ast

from autograder.parts import BY_ID, GRADED_MODULES, Part, parts_judged_with, parts_of_module
from autograder.text import reference
from autograder.text.sources import (
    bound_names,
    is_for_type_checkers,
    is_stub,
    lines_of,
    missing_names,
    syntax_error_of,
)
from autograder.text.statements import STAR, Statement, in_running_order, statements_of
from autograder.text.work import GIVEN, Work, syntax_words

MAX_SHOWN = 12


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
    if part.id in work.problems or part.id in work.broken:
        return work.problems.get(part.id) or work.broken[part.id]
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
    status = "refused" if part.id in work.problems else "failed" if part.id in work.broken else "not_written"
    if not reason and not part.together:
        error = syntax_error_of(work.pieces[part.id])
        if error is not None:
            reason, status = syntax_words(error), "failed"
        elif missing := missing_names(part, work.pieces[part.id]):
            reason, status = f"this part must define {', '.join(missing)}", "failed"
    if not reason and (first := missing_prerequisites(work, part)):
        reason = f"write {', '.join(first)} first"
    if not reason and (foreign := names_of_other_modules(work, part)):
        reason, status = f"{'; '.join(foreign)}; define it in {part.module} as well", "failed"
    return status, reason


def names_of_other_modules(work: Work, part: Part) -> list[str]:
    """Return the names that a part imports from another graded module and that neither the reference nor the work has."""
    found = []
    for module in GRADED_MODULES:
        for name in sorted(_wanted_from(work, _judged(part), module)):
            if not any(name in each.names for each in work.statements(module)):
                found.append(f"it imports {name}, a name of your own, from {module}, which isn't handed in with it")
    return found


def tree_for(work: Work, part: Part) -> dict[str, str]:
    """Return the text of each graded module of the tree that a part is judged in."""
    judged = _judged(part)
    files = {}
    for module in GRADED_MODULES:
        wanted = _wanted_from(work, judged, module)
        if reference.is_here(module) and not wanted and all(each.module != module for each in judged):
            files[module] = reference.text(module)
        else:
            files[module] = module_for(work, module, judged, wanted)
    return files


def _judged(part: Part) -> tuple[Part, ...]:
    return parts_judged_with(part) if part.together else (part,)


def own_text(work: Work, part: Part) -> str:
    """Return all the text of the student's that a verdict on a part depends on."""
    if part.together:
        return "\0".join([*map("\0".join, sorted(work.pieces.items())), *map("\0".join, sorted(work.helpers.items()))])
    blocks = list(_statements(work, part))
    return "\n\n".join(each.text for each in _used_by(work, part.module, blocks, frozenset()) + blocks)


def module_for(work: Work, module: str, judged: tuple[Part, ...], wanted: frozenset[str] = frozenset()) -> str:
    """Return a module's text: some parts of the student's, with what they use, and the reference's others."""
    is_here = reference.is_here(module)
    given = dict(reference.pieces(module)) if is_here else {}
    own: dict[str, str] = {}
    for part in parts_of_module(module):
        text = work.pieces.get(part.id, "")
        if (part in judged or not is_here) and text and syntax_error_of(text) is None and not is_stub(text):
            own[part.name] = text
            given.pop(part.name, None)
    blocks = [each for text in own.values() for each in statements_of(text)]
    helpers = _used_by(work, module, blocks, wanted)
    taken = _taken_names(module, helpers + blocks)
    header = _renamed(reference.header(module), taken)
    pieces = helpers
    for part in parts_of_module(module):
        text = own.get(part.name) or _renamed(given.get(part.name, ""), taken)
        pieces += statements_of(text)
    return "\n\n".join([header, *(each.text for each in in_running_order(pieces))])


def student_module(work: Work, module: str) -> str:
    """Return a module of the student's own tree: the provided top, and everything that they wrote."""
    texts = [each.text for each in in_running_order(work.statements(module))]
    return "\n\n".join([reference.header(module), *texts])


def _used_by(work: Work, module: str, blocks: list[Statement], wanted: frozenset[str]) -> list[Statement]:
    """Return the student's helpers that statements use, directly or through others, in order."""
    helpers = statements_of(work.helpers.get(module, ""))
    used = set(wanted).union(*(each.uses for each in blocks))
    chosen: set[int] = set()
    while True:
        names = {name for each in (*blocks, *(helpers[number] for number in chosen)) for name in each.names}
        more = {
            number
            for number, each in enumerate(helpers)
            if each.names & used or STAR in each.names or (each.acts and each.uses & names)
        } - chosen
        if not more:
            return [helpers[number] for number in sorted(chosen)]
        chosen |= more
        used |= {name for number in more for name in helpers[number].uses}


def _wanted_from(work: Work, judged: tuple[Part, ...], module: str) -> frozenset[str]:
    """Return the names of the student's own in a module that parts import from it."""
    home = "minisgl." + module.removesuffix(".py").replace("/", ".")
    blocks: list[Statement] = []
    for other in dict.fromkeys(part.module for part in judged):
        if other != module:
            parts = [each for part in judged if part.module == other for each in _statements(work, part)]
            blocks += [*parts, *_used_by(work, other, parts, frozenset())]
    wanted = {name for each in blocks for source, name in each.imports if source == home and name != STAR}
    return frozenset(wanted - _reference_names(module))


def _statements(work: Work, part: Part) -> tuple[Statement, ...]:
    return statements_of(work.pieces.get(part.id, ""))


def _reference_names(module: str) -> set[str]:
    names = {name for part in parts_of_module(module) for name in part.names}
    return names | _bound(reference.header(module))


def _bound(text: str) -> set[str]:
    """Return the names that a header binds, for type checkers too."""
    inside = [inner for node in ast.parse(text).body for inner in (node.body if is_for_type_checkers(node) else [node])]  # type: ignore[attr-defined]
    return {name for node in inside for name in bound_names(node)}


def _taken_names(module: str, blocks: list[Statement]) -> set[str]:
    """Return the reference's names, other than parts, that the student's statements bind to something else."""
    parts = {name for part in parts_of_module(module) for name in part.names}
    given = statements_of(reference.header(module))
    imported = {pair for each in given if each.is_import for pair in each.imports}
    mine: set[str] = set()
    for each in blocks:
        mine |= each.names - {name for _, name in each.imports & imported} if each.is_import else each.names
    return mine & ({name for each in given for name in each.names} - parts)


def _renamed(text: str, names: set[str]) -> str:
    """Return a text of the reference's in which some of its names are called otherwise: they are the student's now."""
    if not names:
        return text
    lines = [line.encode() for line in lines_of(text)]
    places: list[tuple[int, int, bytes]] = []  # line, column, what to put in
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in names:
            places.append((node.lineno, node.col_offset, GIVEN.encode()))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            column = lines[node.lineno - 1].index(node.name.encode(), node.col_offset + 3)
            places.append((node.lineno, column, GIVEN.encode()))
        elif isinstance(node, ast.alias) and (node.asname or node.name) in names and node.end_col_offset is not None:
            new = f" as {GIVEN}{node.name}" if node.asname is None else ""
            column = node.end_col_offset if node.asname is None else node.end_col_offset - len(node.asname)
            places.append((node.end_lineno or node.lineno, column, (new or GIVEN).encode()))
    for number, column, more in sorted(places, reverse=True):
        old = lines[number - 1]
        lines[number - 1] = old[:column] + more + old[column:]
    return b"".join(lines).decode()

"""What the text of a module says about itself: lines, names, stubs, syntax errors, and where the reference's parts begin.

No file carries markers: parts are found by name in the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import io
from collections.abc import Iterator

from autograder.parts import Part, parts_of_module

MAX_PART_CHARS = 100_000
MAX_FINALLY_DEPTH = 4
MAX_COPIED_NODES = 100_000
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HIDING = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # keep what they bind to themselves
_CANT_PARSE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError, SystemError)


def normalize(text: str) -> str:
    """Return the text without a byte-order mark, with ``\\n`` line ends and one newline at its end."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.strip("\n") + "\n" if text.strip() else ""


def lines_of(text: str) -> list[str]:
    """Split normalized text into the lines that the syntax tree counts: at ``\\n`` only, not at form feeds and the like."""
    return io.StringIO(text).readlines()


def tree_of(text: str) -> ast.Module | None:
    """Return the syntax tree of any text, or None where there is none: broken, nested too deeply, odd characters."""
    try:
        return ast.parse(text)
    except _CANT_PARSE:
        return None


def bound_names(statement: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds where it stands, also inside ``if``, ``try``, ``for`` and ``with``."""
    waiting = [statement]
    while waiting:  # not by recursion, which nested text could exhaust
        node = waiting.pop()
        if isinstance(node, _SCOPES):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif not (isinstance(node, _HIDING) or is_for_type_checkers(node)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name
            waiting += ast.iter_child_nodes(node)


def is_for_type_checkers(node: ast.AST) -> bool:
    """Tell whether a statement is an ``if TYPE_CHECKING``, which binds nothing when it is run."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def split_reference(module: str, text: str) -> tuple[str, dict[str, str]]:
    """Cut a reference file into its header and the exact source text of each part.

    Args:
        module: the file's path below ``minisgl/``, as in ``models/config.py``.
        text: the file.

    Returns:
        The header (everything before the first part) and a dict part name -> source, in file order.

    Raises:
        ValueError: a part isn't in the file, parts are out of order or interleaved, or something after the first
            part belongs to none.
    """
    parts = parts_of_module(module)
    owner = {name: part.name for part in parts for name in part.names}
    lines = lines_of(normalize(text))
    header_end, start = 0, 0
    pieces: dict[str, str] = {}
    order: list[str] = []
    for node in ast.parse("".join(lines)).body:
        owners = {owner.get(name) for name in bound_names(node)} or {None}
        part = owners.pop()
        if part is None:
            if order:
                raise ValueError(
                    f"{module}, line {node.lineno}: this statement belongs to no part; name it in parts.py"
                )
            header_end = start = node.end_lineno or start
            continue
        if part in order and order[-1] != part:
            raise ValueError(f"{module}: the pieces of part {part!r} must stand next to each other")
        if part not in order:
            order.append(part)
        pieces[part] = pieces.get(part, "") + "".join(lines[start : node.end_lineno])
        start = node.end_lineno or start
    expected = [part.name for part in parts]
    if order != expected:
        raise ValueError(f"{module}: its parts are {order}, but parts.py expects {expected} in this order")
    return normalize("".join(lines[:header_end])), {name: normalize(piece) for name, piece in pieces.items()}


@functools.lru_cache(maxsize=32)
def header_of(module: str, text: str) -> str:
    """Return the provided top of a reference file: everything before the first statement of a part."""
    names = {name for part in parts_of_module(module) for name in part.names}
    lines = lines_of(normalize(text))
    end = 0
    for node in ast.parse("".join(lines)).body:
        if names.intersection(bound_names(node)):
            break
        end = node.end_lineno or end
    return normalize("".join(lines[:end]))


@functools.lru_cache(maxsize=512)
def syntax_error_of(text: str) -> SyntaxError | None:
    """Return the syntax error in a piece of source, or None (compiling runs nothing).

    What would take too much time or memory to compile is an error too, found before it is compiled.
    """
    if len(text) > MAX_PART_CHARS:
        return _error(f"this is longer than {MAX_PART_CHARS} characters, the most that is read; shorten it")
    try:
        tree = ast.parse(text)
        error = _finally_error(tree) if "finally" in text else None  # the keyword can't be spelt otherwise
        del tree
        if error is None:
            compile(text, "<part>", "exec", dont_inherit=True)
        return error
    except SyntaxError as error:
        return error.with_traceback(None)
    except _CANT_PARSE as error:
        return _error(f"this can't be compiled: {error}")


def _error(message: str, line: int = 1) -> SyntaxError:
    return SyntaxError(message, ("<part>", line, 1, None))


def _finally_error(tree: ast.Module) -> SyntaxError | None:
    """Return an error where ``finally`` blocks would be copied too often: each is compiled once more for every way out.

    Counted over the whole text, through nested functions and classes, without recursion.
    """
    order: list[ast.AST] = [tree]
    for node in order:
        order += ast.iter_child_nodes(node)
    facts: dict[int, tuple[int, int, int]] = {}  # of a node: nodes compiled, ways out, depth of finally blocks
    for node in reversed(order):
        is_exit = isinstance(node, (ast.Return, ast.Break, ast.Continue))
        size, exits, depth = 1, int(is_exit), 0
        last = {id(child) for child in getattr(node, "finalbody", [])}
        for child in ast.iter_child_nodes(node):
            if id(child) not in last:
                more = facts[id(child)]
                size, exits, depth = size + more[0], exits + more[1], max(depth, more[2])
        if last:
            inner = [facts[child] for child in last]
            copies = exits + 2
            size += copies * sum(each[0] for each in inner)
            exits += copies * sum(each[1] for each in inner)
            depth = max(depth, 1 + max(each[2] for each in inner))
        line = getattr(node, "lineno", 1)
        if depth > MAX_FINALLY_DEPTH:
            return _error(
                f"finally blocks are nested deeper than {MAX_FINALLY_DEPTH}, the most that is compiled; take the inner "
                "try statements out of the finally blocks",
                line,
            )
        if size - len(order) > MAX_COPIED_NODES:
            return _error(
                "Python copies a finally block for each return, break and continue before it, and these copies are more "
                "than is compiled; use fewer of them, or shorter finally blocks",
                line,
            )
        facts[id(node)] = (size, exits, depth)
    return None


@functools.lru_cache(maxsize=512)
def is_stub(text: str) -> bool:
    """Tell whether a part is still the untouched stub: its functions do nothing but raise NotImplementedError.

    An abstract method may do so for good.
    """
    tree = tree_of(text) if len(text) <= MAX_PART_CHARS else None
    if tree is None:
        return False
    bodies = [
        [item for item in node.body if not _is_docstring(item)]
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_abstract(node)
    ]
    classes = [
        [item for item in node.body if not _is_docstring(item)]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    # A class whose very body raises is a stub as a whole: it does so as soon as its module is imported.
    bodies += [body for body in classes if body and _raises_not_implemented(body[0])]
    stubs = [body for body in bodies if body and _raises_not_implemented(body[0])]
    return bool(stubs) and len(stubs) == len([body for body in bodies if body])


def missing_names(part: Part, text: str) -> list[str]:
    """Return the names that a part should define and its source doesn't define at the top level."""
    tree = tree_of(text)
    found = {name for node in (tree.body if tree else []) for name in bound_names(node)}
    return [name for name in part.names if name not in found]


def _is_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [getattr(each, "attr", getattr(each, "id", "")) for each in node.decorator_list]
    return any(name.endswith("abstractmethod") for name in names)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _raises_not_implemented(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"

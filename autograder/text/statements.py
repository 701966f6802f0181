"""The top-level statements of a student's text: which names each one binds, and which it uses. Nothing is run."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autograder.text.sources import MAX_PART_CHARS, bound_names, is_stub, lines_of, normalize, syntax_error_of, tree_of

STAR = "*"
MAX_MAGIC_LINES = 200
MAX_STATEMENTS = 400  # of one module; the reference has forty at most
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True)
class Statement:
    """One top-level statement with the comments before it.

    Attributes:
        text: its source.
        names: the names that it binds in the module; ``*`` for a star import.
        uses: every name in it, wherever it is looked up, and every string that could be one.
        needs: the names that are looked up as soon as the module is imported.
        imports: (module, name) of each ``from module import name``, wherever it stands.
        acts: whether running it can change what other statements made, as ``TABLE["x"] = 1`` does.
    """

    text: str
    names: frozenset[str]
    uses: frozenset[str]
    needs: frozenset[str]
    imports: frozenset[tuple[str, str]]
    acts: bool

    @property
    def is_import(self) -> bool:
        """Whether it only imports; the same import twice does no harm."""
        tree = tree_of(self.text)
        return tree is not None and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)


@functools.lru_cache(maxsize=512)
def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text that can be parsed, without docstrings and ``__future__`` imports."""
    tree = tree_of(text)
    lines = lines_of(text)
    found, start = [], 0
    for node in tree.body if tree is not None else []:
        source = "".join(lines[start : node.end_lineno])
        start = node.end_lineno or start
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            continue
        found.append(_statement(node, normalize(source)))
    return tuple(found)


def _statement(node: ast.stmt, text: str) -> Statement:
    every = list(ast.walk(node))
    uses = {each.id for each in every if isinstance(each, ast.Name)}
    uses |= {
        each.value
        for each in every
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier()
    }
    imports = {
        (each.module, alias.name)
        for each in every
        if isinstance(each, ast.ImportFrom) and each.module and not each.level
        for alias in each.names
    }
    running = list(_run_at_import(node))
    needs = {each.id for each in running if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    needs |= {each.target.id for each in running if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)}
    return Statement(text, frozenset(bound_names(node)), frozenset(uses), frozenset(needs), frozenset(imports), _acts(node))


def _acts(node: ast.stmt) -> bool:
    if isinstance(node, _SCOPES):
        return bool(node.decorator_list)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    only_names = all(isinstance(target, (ast.Name, ast.Tuple)) for target in targets)
    return not (isinstance(node, (ast.Import, ast.ImportFrom)) or (targets and only_names))


def _run_at_import(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: all but what stands in the bodies of functions."""
    waiting = [statement]
    while waiting:  # not by recursion, which nested text could exhaust
        node = waiting.pop()
        yield node
        if isinstance(node, _FUNCTIONS):
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif isinstance(node, ast.AnnAssign):
            waiting += [node.target, *filter(None, [node.value])]
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def replaced_by(earlier: Statement, later: Statement) -> bool:
    """Tell whether a later statement takes the place of an earlier one: it binds the same names anew."""
    if not earlier.names or not earlier.names <= later.names or earlier.names & later.needs:
        return False
    return "." not in earlier.text if earlier.is_import and not earlier.imports else True


def merge(earlier: list[Statement], later: Iterable[Statement]) -> list[Statement]:
    """Return the statements of a module in order, after those of one text were added: the last definition of a name wins.

    A stub never replaces an answer. Where a text keeps a name's first meaning and then defines it anew
    (``plain = f``, then ``def f``), both definitions stay.
    """
    kept, later = list(earlier), list(later)
    kept_meanings = {id(each) for each in later if any(each.names & other.needs - other.names for other in later)}
    for statement in later:
        answers = [each for each in kept if replaced_by(each, statement) and id(each) not in kept_meanings]
        if answers and is_stub(statement.text) and not all(is_stub(each.text) for each in answers):
            continue
        kept = [each for each in kept if each not in answers and each.text != statement.text]
        kept.append(statement)
    return kept


def in_running_order(statements: Iterable[Statement]) -> list[Statement]:
    """Return statements in an order in which the module can be imported: as they are, but what a statement needs first."""
    waiting = list(statements)
    done: list[Statement] = []
    binders: dict[str, list[Statement]] = {}
    for each in waiting:
        for name in each.names:
            binders.setdefault(name, []).append(each)
    reached = {id(each): _reached(each, binders) - each.names for each in waiting}
    while waiting:
        pending = {name for each in waiting for name in each.names} - {name for each in done for name in each.names}
        ready = next((each for each in waiting if not reached[id(each)] & pending), waiting[0])
        waiting.remove(ready)
        done.append(ready)
    return done


def _reached(statement: Statement, binders: dict[str, list[Statement]]) -> set[str]:
    """Return the names that must be bound before a statement runs, also those that the functions it calls use."""
    seen, queue = set(), list(binders.keys() & statement.needs)
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            queue += [other for binder in binders[name] for other in binders.keys() & binder.uses]
    return seen


def readable(text: str) -> tuple[list[str], list[tuple[str, SyntaxError]], list[str]]:
    """Take a text apart so far that one syntax error costs only its own statement.

    Returns:
        The pieces that can be compiled, in order; the broken ones, each with its error; the lines for IPython that were
        taken out.
    """
    text, taken = without_magics(normalize(text))
    error = syntax_error_of(text)
    if error is None:
        return [text], [], taken
    if len(text) > MAX_PART_CHARS:
        return [], [(text, error)], taken
    good: list[str] = []
    broken: list[tuple[str, SyntaxError]] = []
    number = 0
    for chunk in _chunks(text):
        fault = syntax_error_of(chunk)
        if fault is None:
            good.append(chunk)
        else:
            line = (fault.lineno or 1) + number
            broken.append((chunk, SyntaxError(fault.msg, ("<part>", line, fault.offset, fault.text))))
        number += chunk.count("\n")
    return good, broken, taken


def _chunks(text: str) -> Iterator[str]:
    """Cut a text before each line that begins a definition or an assignment at the margin, decorators with it."""
    chunk: list[str] = []
    decorated = False
    for line in lines_of(text):
        begins = line[:1].isalpha() or line[:1] in "_@"
        if begins and not decorated and chunk and not line.startswith(("else", "elif", "except", "finally")):
            yield "".join(chunk)
            chunk = []
        decorated = line.startswith("@") or (decorated and not begins)
        chunk.append(line)
    if chunk:
        yield "".join(chunk)


def without_magics(text: str) -> tuple[str, list[str]]:
    """Take out the lines that only IPython understands (``!pip …``, ``%timeit …``), and say which."""
    taken: list[str] = []
    if len(text) > MAX_PART_CHARS or not any(line.lstrip()[:1] in ("%", "!", "?") for line in text.split("\n") if line.strip()):
        return text, taken
    lines = lines_of(text)
    for _ in range(MAX_MAGIC_LINES):
        try:
            ast.parse("".join(lines))
            break
        except SyntaxError as error:
            number = (error.lineno or 0) - 1
            while number >= 0 and number < len(lines) and not lines[number].strip():
                number -= 1
            if not 0 <= number < len(lines) or lines[number].lstrip()[:1] not in ("%", "!", "?"):
                break
            taken.append(lines[number].strip())
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            lines[number] = f"{indent}pass\n" if indent else "\n"
        except (ValueError, RecursionError, MemoryError):
            break
    return "".join(lines), taken

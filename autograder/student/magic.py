"""The ``%%module`` cell magic: write a part into the student's tree, reload the tree, show what it has.

``%load_ext autograder`` registers it, puts the student's tree first on the path (so that ``import minisgl`` is the
student's own), and starts the background checker.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from autograder.parts import Part, parts_of_module
from autograder.student.checker_client import CHECKER
from autograder.student.workspace import Workspace, WorkspaceError, overview
from autograder.text.sources import is_stub, missing_names, normalize, syntax_error_of
from autograder.text.statements import statements_of, without_magics
from autograder.text.work import Work, module_of_magic


class PartError(Exception):
    """Report a cell that couldn't become a part; shown as its text alone, without a traceback of the machinery."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def load_ipython_extension(shell: Any) -> None:
    """Register the magic, make ``import minisgl`` the student's tree, and warm the checker up."""
    _own_workspace_when_executed_by_nbgrader()
    shell.register_magic_function(module, magic_kind="cell", magic_name="module")
    workspace = Workspace()
    try:
        workspace.ensure()
    except WorkspaceError as error:
        print(error)
    reload_tree(workspace, shell.user_ns)
    CHECKER.start()


def unload_ipython_extension(shell: Any) -> None:
    """Forget the magic and end the checker."""
    shell.magics_manager.magics["cell"].pop("module", None)
    CHECKER.close()


def module(line: str, cell: str) -> None:
    """Write the cell's code into your tree, as ``%%module models/config.py rope`` says, and reload the tree.

    Which parts it holds, the names that it defines say; the word behind the file is for the reader.

    Raises:
        PartError: the module doesn't exist, the code has a syntax error (the earlier version stays), or the workspace
            can't be written.
    """
    from IPython import get_ipython

    shell = get_ipython()
    path, part = _target(line)
    text, taken = without_magics(normalize(cell))
    if not statements_of(text) and syntax_error_of(text) is None:
        wanted = f" Write {', '.join(part.names)} in it." if part else ""
        raise PartError(f"This cell holds no code, so nothing was changed.{wanted}")
    _refuse_syntax_error(path, text)
    workspace = Workspace()
    try:
        workspace.ensure()
        work = workspace.write_cell(path, text, cell=_cell_id(shell))
        whole = workspace.read()
    except WorkspaceError as error:
        raise PartError(str(error)) from None
    for each in taken:
        print(f"This line is for IPython and stays out of your package: {each}")
    _say_what_was_written(path, text, work, part)
    _show_tree(overview(whole))
    reload_tree(workspace, shell.user_ns)
    _offer_names(path, text, shell.user_ns)
    print("minisgl was reloaded, with the names this notebook has from it. Objects made before are of the old version.")


def _target(line: str) -> tuple[str, Part | None]:
    """Return the module, and the part that the second word names, if it names one."""
    words = line.split()
    if not words:
        raise PartError("%%module needs a file, as in %%module models/config.py rope; it got nothing.")
    try:
        path = module_of_magic(words[0])
    except ValueError as error:
        raise PartError(f"{error}.") from None
    return path, next((part for part in parts_of_module(path) if words[1:2] == [part.name]), None)


def _cell_id(shell: Any) -> str:
    """Return the id of the cell that is run, where the front end tells it."""
    try:
        return str(shell.kernel.get_parent("shell")["metadata"]["cellId"])
    except (AttributeError, LookupError, TypeError):
        return ""


def _say_what_was_written(path: str, text: str, work: Work, part: Part | None) -> None:
    """Say which parts and which names of the student's own a cell holds, and what is still to be defined."""
    bound = {name for each in statements_of(text) for name in each.names}
    for each in parts_of_module(path):
        lacking = missing_names(each, work.pieces.get(each.id, ""))
        if bound.intersection(each.names) and is_stub(text) and not is_stub(work.pieces[each.id]):
            print(f"This cell is still the stub, so your tree keeps the version of {each.id} that it has.")
        elif bound.intersection(each.names):
            print(f"{path}: part {each.name} written, {len(work.pieces[each.id].splitlines())} lines.")
        if lacking and (bound.intersection(each.names) or each == part):
            print(f"Part {each.name} must also define {', '.join(lacking)}, which no cell does yet.")
        bound -= set(each.names)
    if bound:
        print(f"{path}: written for your own use: {', '.join(sorted(bound))}.")


def _refuse_syntax_error(path: str, text: str) -> None:
    error = syntax_error_of(text)
    if error is None:
        return
    number = error.lineno or 0
    lines = [f"SyntaxError in line {number + 1} of this cell: {error.msg}"]
    if error.text:
        lines.append(f"    {error.text.rstrip()}")
        lines.append("    " + " " * max(0, (error.offset or 1) - 1) + "^")
    lines.append(f"Nothing was changed: your tree keeps what it had of {path}.")
    raise PartError("\n".join(lines))


def _show_tree(rows: list[tuple[str, list[str], int]]) -> None:
    print("minisgl/")
    for path, names, total in rows:
        print(f"  {path:<20} {len(names)} of {total} parts{': ' if names else ''}{', '.join(names)}")


def reload_tree(workspace: Workspace, namespace: dict[str, Any]) -> None:
    """Drop every module of ``minisgl`` and import the tree anew; renew the names that came from it.

    Modules, classes and functions in the namespace are renewed; their instances aren't.
    """
    root = str(workspace.root)
    if root in sys.path:
        sys.path.remove(root)
    sys.path.insert(0, root)
    for name in [name for name in sys.modules if name == "minisgl" or name.startswith("minisgl.")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for name, value in list(namespace.items()):
        home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if not isinstance(home, str) or home.split(".")[0] != "minisgl" or name.startswith("_"):
            continue
        if isinstance(value, (types.ModuleType, type, types.FunctionType)):
            _renew(name, value, home, namespace)


def _renew(name: str, value: Any, home: str, namespace: dict[str, Any]) -> None:
    try:
        imported = importlib.import_module(home)
        new = imported if isinstance(value, types.ModuleType) else getattr(imported, value.__qualname__)
    except Exception:  # the tree may be broken just now; what the student does next will show it
        return
    namespace[name] = new


def _offer_names(path: str, text: str, namespace: dict[str, Any]) -> None:
    """Make the names that a cell defines usable in the notebook."""
    name = "minisgl." + path.removesuffix(".py").replace("/", ".")
    try:
        imported = importlib.import_module(name)
    except Exception as error:
        print(f"{path} can't be imported yet: {type(error).__name__}: {error}")
        return
    for each in statements_of(text):
        for bound in each.names:
            if hasattr(imported, bound):
                namespace[bound] = getattr(imported, bound)


def _own_workspace_when_executed_by_nbgrader() -> None:
    """Give a run by nbgrader its own workspace: grading one student must not see another's tree, nor change anybody's."""
    reason = os.environ.get("NBGRADER_EXECUTION")
    if reason is None or "MINISGL_WORKSPACE_OF" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="minisgl-workspace-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if reason == "validate":
        earlier = Workspace().package / "models"
        if earlier.is_dir():
            shutil.copytree(earlier, folder / "minisgl" / "models", ignore=shutil.ignore_patterns("__pycache__"))
            state = earlier.parents[1] / ".course.json"
            if state.is_file():
                shutil.copy(state, folder)
    os.environ["MINISGL_WORKSPACE"] = str(folder)
    os.environ["MINISGL_WORKSPACE_OF"] = str(os.getpid())

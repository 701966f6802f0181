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

from autograder.parts import Part
from autograder.student import notebook
from autograder.student.workspace import Workspace, WorkspaceError, overview
from autograder.text.lifting import part_of_magic
from autograder.text.sources import is_stub, missing_names, normalize, syntax_error_of


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
    notebook.CHECKER.start()


def unload_ipython_extension(shell: Any) -> None:
    """Forget the magic and end the checker."""
    shell.magics_manager.magics["cell"].pop("module", None)
    notebook.CHECKER.close()


def module(line: str, cell: str) -> None:
    """Write the cell's code into your tree, as ``%%module models/config.py rope`` says, and reload the tree.

    Raises:
        PartError: the module or part doesn't exist, the code has a syntax error (the earlier version stays), or the
            workspace can't be written.
    """
    from IPython import get_ipython

    shell = get_ipython()
    part = _part(line)
    text = normalize(cell)
    if not text:
        raise PartError(f"This cell is empty. Write {', '.join(part.names)} in it.")
    _refuse_syntax_error(part, cell)
    workspace = Workspace()
    try:
        workspace.ensure()
        work = workspace.read()
        if is_stub(text) and _keeps_earlier(part, work.pieces.get(part.id, "")):
            print(f"This cell is still the stub, so your tree keeps the version of {part.id} that it has.")
            return
        workspace.write_part(part, text)
        work = workspace.read()
    except WorkspaceError as error:
        raise PartError(str(error)) from None
    print(f"{part.module}: part {part.name} written, {len(text.splitlines())} lines.")
    lacking = missing_names(part, text)
    if lacking:
        print(f"It must define {', '.join(lacking)}, which this cell doesn't.")
    _show_tree(overview(work))
    reload_tree(workspace, shell.user_ns)
    _offer_names(part, shell.user_ns)
    print("minisgl was reloaded, with the names this notebook has from it. Objects made before are of the old version.")


def _part(line: str) -> Part:
    words = line.split()
    if len(words) != 2:
        raise PartError(f"%%module needs a file and a part, as in %%module models/config.py rope; it got {line!r}.")
    try:
        return part_of_magic(words[0], words[1])
    except ValueError as error:
        raise PartError(f"{error}.") from None


def _refuse_syntax_error(part: Part, cell: str) -> None:
    error = syntax_error_of(cell.removeprefix("\ufeff").replace("\r\n", "\n"))
    if error is None:
        return
    number = error.lineno or 0
    lines = [f"SyntaxError in line {number + 1} of this cell: {error.msg}"]
    if error.text:
        lines.append(f"    {error.text.rstrip()}")
        lines.append("    " + " " * max(0, (error.offset or 1) - 1) + "^")
    lines.append(f"Nothing was changed: your tree keeps the version of {part.id} that it had.")
    raise PartError("\n".join(lines))


def _keeps_earlier(part: Part, earlier: str) -> bool:
    """Tell whether an untouched stub may not replace what is there: work or help must not get lost by "Run all"."""
    by_nbgrader = "NBGRADER_EXECUTION" in os.environ
    return bool(earlier) and not is_stub(earlier) and not by_nbgrader


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


def _offer_names(part: Part, namespace: dict[str, Any]) -> None:
    """Make the part's names usable in the notebook."""
    name = "minisgl." + part.module.removesuffix(".py").replace("/", ".")
    try:
        imported = importlib.import_module(name)
    except Exception as error:
        print(f"{part.module} can't be imported yet: {type(error).__name__}: {error}")
        return
    for each in part.names:
        if hasattr(imported, each):
            namespace[each] = getattr(imported, each)


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

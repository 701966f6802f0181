"""What a student calls in a notebook: ``check``, ``hint``, ``status``, ``use_reference``."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.judge.judge_errors import JudgeError
from autograder.judge.results import PartResult
from autograder.parts import BY_ID, Part, parts_judged_with, select
from autograder.student import display, progress
from autograder.student.checker_client import CHECKER
from autograder.student.workspace import Workspace, WorkspaceError
from autograder.student.workspace import use_reference as _use_reference
from autograder.text.misplaced import reasons

LAYERS = (("nudge", "A nudge"), ("shapes", "What goes in and what comes out"), ("pseudo", "The steps, in words"))


def check(target: str = "all") -> float:
    """Check a part (``"config.rope"``), a module (``"config"``) or a chapter (``"01_config"``) of your tree.

    Returns:
        The points, from 0 to the full marks of what was checked; a number.
    """
    try:
        wanted = select(target)
        workspace = Workspace()
        workspace.ensure()
        results = CHECKER.judge(workspace.root, [part.id for part in wanted])
    except (ValueError, JudgeError) as error:
        display.show_text(str(error), title="This can't be checked")
        return display.Points(0.0)
    display.show_results(_say_where(results, workspace), progress.changed_cells(wanted))
    return display.Points(sum(result.points for result in results), sum(result.max_points for result in results))


def _say_where(results: list[PartResult], workspace: Workspace) -> list[PartResult]:
    """Say of parts that aren't written where something stands that looks like them: in a cell that doesn't count."""
    waiting = [BY_ID[result.id] for result in results if result.status == "not_written"]
    if not waiting:
        return results
    cells = [("code", source) for source in _cells_run()] + [(cell.kind, cell.source) for cell in progress.saved_cells()]
    why = reasons(cells, workspace.read(), waiting)
    return [replace(each, message=why[each.id], tests=()) if each.id in why else each for each in results]


def hint(target: str, layer: int | None = None) -> None:
    """Show the hints for a part, each layer folded until it is opened; ``layer`` 1, 2 or 3 opens one."""
    try:
        found = select(target)
    except ValueError as error:
        display.show_text(str(error), title="No such hint")
        return
    wanted = [part for part in found if not part.together]
    if not wanted:
        display.show_text(
            "It runs all of your parts together and has no hint of its own. Check the parts by themselves; each has hints, "
            f'as hint("{parts_judged_with(found[0])[0].id}").',
            title=found[0].id,
        )
    for part in wanted:
        texts = _hints(part)
        layers = [(title, str(texts[name]).strip()) for name, title in LAYERS if name in texts]
        if not layers:
            display.show_text(f"There is no hint for {part.id} in this installation.", title=part.id)
        elif layer is None:
            display.show_layers(part.id, layers)
        elif layer not in range(1, len(layers) + 1):
            display.show_text(f"{part.id} has no layer {layer!r}; it has {_numbered(layers)}.", title="No such hint")
        else:
            display.show_text(layers[layer - 1][1], title=f"{part.id}: {layers[layer - 1][0]}")


def status() -> None:
    """Show every part: written or not, what the last check said, which were done with help, what comes next."""
    try:
        workspace = Workspace()
        workspace.ensure()
        rows = progress.rows(workspace)
    except WorkspaceError as error:
        display.show_text(str(error), title="The workspace can't be read")
        return
    display.show_status(rows, progress.changed_cells(BY_ID.values()))


def use_reference(target: str) -> None:
    """Put the provided version of a part, a module or a chapter in place, so that you can go on; `status` will say so."""
    from autograder.student.magic import reload_tree

    try:
        workspace = Workspace()
        workspace.ensure()
        done = _use_reference(workspace, list(select(target)))
    except ValueError as error:
        display.show_text(str(error), title="Nothing was changed")
        return
    namespace = _user_namespace()
    if namespace is not None:
        reload_tree(workspace, namespace)
    display.show_text(
        f"The provided version of {', '.join(done)} is in place; it is marked as help and earns no points. "
        f"Running your own %%module cell puts your version back. minisgl was reloaded.",
        title="Provided version",
    )


def _numbered(layers: list[tuple[str, str]]) -> str:
    return ", ".join(f"{number} ({title})" for number, (title, _) in enumerate(layers, start=1))


def _hints(part: Part) -> dict[str, Any]:
    path = Path(__file__).resolve().parent / "hints" / f"{part.chapter}.toml"
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        return dict(tomllib.load(file).get(part.id, {}))


def _user_namespace() -> dict[str, Any] | None:
    shell = _shell()
    return None if shell is None else shell.user_ns


def _cells_run() -> list[str]:
    """Return what was run in this kernel, cell by cell."""
    shell = _shell()
    return [] if shell is None else list(shell.history_manager.input_hist_raw)


def _shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()

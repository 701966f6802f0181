"""The students' commands: ``check``, ``status`` and ``hint``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from autograder.judge.judge_errors import failure_text
from autograder.judge.results import PartResult
from autograder.parts import CHAPTERS, Part, parts_of_chapter, select
from autograder.student import display, notebook, progress
from autograder.student.workspace import Workspace, WorkspaceError

EXIT_CODES = "Exit codes: 0 everything passed, 1 something didn't, 2 wrong usage, 3 the grader itself failed."


def check(argv: list[str]) -> int:
    """Check parts of the workspace."""
    parser = argparse.ArgumentParser(prog="python -m autograder check", description=check.__doc__, epilog=EXIT_CODES)
    parser.add_argument(
        "target", nargs="?", help="a chapter, a module or a part: 01_config, config, config.rope; default: all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--workspace", type=Path, help="the folder that holds your minisgl/")
    options = parser.parse_args(argv)
    try:
        wanted = select(options.target)
    except ValueError as error:
        parser.error(str(error))
    if not wanted:
        parser.error(f"{options.target} has no graded parts")
    workspace = Workspace(options.workspace.resolve() if options.workspace else None)
    try:
        results = judge_workspace(workspace, list(wanted))
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        print(failure_text(error), file=sys.stderr)
        return 3
    print("\n".join(display.result_text(result) for result in results))
    points, full = sum(result.points for result in results), sum(result.max_points for result in results)
    print(f"{points:g} of {full:g} points")
    if options.json:
        options.json.write_text(json.dumps(report(results), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0 if all(result.status == "passed" for result in results) else 1


def judge_workspace(workspace: Workspace, wanted: list[Part]) -> list[PartResult]:
    """Judge parts of a workspace in this process."""
    from autograder.judge.judge import Judge
    from autograder.text.trees import state_of

    if workspace.package.is_dir() or not workspace.root.exists():
        workspace.ensure()
    work = workspace.read()
    if all(state_of(work, part) for part in wanted):  # nothing to run: no worker needed
        judge = Judge()
        try:
            results = judge.judge(work, wanted)
        finally:
            judge.worker.close()
    else:
        with Judge() as judge:
            results = judge.judge(work, wanted)
    workspace.note_results(results, work)
    return results


def report(results: list[PartResult]) -> dict[str, object]:
    """Return results chapter by chapter, in the form of the class report."""
    chapters = []
    for chapter in CHAPTERS:
        ids = {part.id for part in parts_of_chapter(chapter)}
        found = [result for result in results if result.id in ids]
        if found:
            points, full = sum(result.points for result in found), sum(result.max_points for result in found)
            rows = [result.as_report() for result in found]
            chapters.append({"chapter": chapter, "points": round(points, 2), "max_points": full, "parts": rows})
    return {"chapters": chapters}


def status(argv: list[str]) -> int:
    """Show every part: written, checked, points, and what comes next."""
    parser = argparse.ArgumentParser(prog="python -m autograder status", description=status.__doc__)
    parser.add_argument("--workspace", type=Path, help="the folder that holds your minisgl/")
    options = parser.parse_args(argv)
    try:
        workspace = Workspace(options.workspace.resolve() if options.workspace else None)
        print(display.status_text(progress.rows(workspace)))
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def hint(argv: list[str]) -> int:
    """Show one layer of the hints for a part."""
    parser = argparse.ArgumentParser(prog="python -m autograder hint", description=hint.__doc__)
    parser.add_argument("part")
    numbers = range(1, len(notebook.LAYERS) + 1)
    parser.add_argument("layer", nargs="?", type=int, choices=numbers, default=1, help="1, 2 or 3")
    options = parser.parse_args(argv)
    try:
        select(options.part)
    except ValueError as error:
        parser.error(str(error))
    notebook.hint(options.part, options.layer)
    return 0

"""``python -m autograder grade``: a class of submissions into a report, a table, feedback pages and the gradebook.

Each finished submission is appended to ``DIR/progress.jsonl`` at once, so that a run that was killed goes on where it
stopped. The report is the same, byte for byte, whatever the order or the number of jobs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from autograder import paths
from autograder.classroom import hidden
from autograder.classroom.grading import grade_one, payload_of, refused_row
from autograder.classroom.reports import write_reports
from autograder.classroom.row_log import RowLog, Rows
from autograder.classroom.schedulers import run_all
from autograder.classroom.self_check import expect_full_marks, rules_digest
from autograder.classroom.submissions import Submission, find
from autograder.judge.judge_errors import failure_text
from autograder.parts import select
from autograder.worker import sandbox

SHOWN_REFUSALS = 20


def main(argv: list[str]) -> int:
    """Grade submissions. Exit codes: 0 all graded, 1 some refused, 2 wrong usage, 3 the grader itself failed."""
    options = _parser().parse_args(argv)
    chapter = None
    if options.chapter:
        try:
            chapter = select(options.chapter)[0].chapter
        except (ValueError, IndexError) as error:
            _parser().error(f"--chapter: {error}")
    problem = None if options.no_sandbox else sandbox.problem()
    if problem:
        print(
            f"refused: {problem}. Student code would run with your rights; --no-sandbox accepts that.", file=sys.stderr
        )
        return 2
    try:
        rows = grade(
            find(options.paths, chapter),
            options.out,
            sandboxed=not options.no_sandbox,
            jobs=options.jobs,
            scheduler=options.scheduler,
            hidden_folder=options.hidden,
        )
        if options.gradebook is not None:
            from autograder.classroom.gradebook import write_rows

            database = options.gradebook or gradebook_here()
            write_rows(rows, database)
            print(f"the gradebook {database} has these marks")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        print(failure_text(error), file=sys.stderr)
        return 3
    refused = [row for row in rows if row["status"] == "refused"]
    for row in refused[:SHOWN_REFUSALS]:
        whose = ", ".join(filter(None, (row["student"], row["chapter"])))
        print(f"refused: {whose}: {row['message']}", file=sys.stderr)
    print(f"{len(rows) - len(refused)} graded, {len(refused)} refused; see {options.out / 'report.json'}")
    return 1 if refused else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autograder grade", description=main.__doc__)
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="notebooks, zip files, module trees, or folders"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where report.json and grades.csv go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="submissions graded at a time")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, as tcp://host:8786, in the place of jobs"
    )
    parser.add_argument("--no-sandbox", action="store_true", help="run student code without bubblewrap")
    parser.add_argument("--chapter", help="grade this chapter only; otherwise those that a submission has parts of")
    parser.add_argument("--hidden", type=Path, metavar="DIR", help="folder of the hidden cases (default: instructor/)")
    parser.add_argument(
        "--gradebook",
        nargs="?",
        const="",
        metavar="URL",
        help="also write into nbgrader's gradebook (default: that of the course in this folder, else the clone's)",
    )
    return parser


def gradebook_here() -> str:
    """Return the gradebook of the course in this folder; in a folder without nbgrader's configuration, the clone's."""
    here = Path.cwd()
    return f"sqlite:///{(here if (here / 'nbgrader_config.py').is_file() else paths.HOME) / 'gradebook.db'}"


def grade(
    submissions: list[Submission],
    out: Path,
    *,
    sandboxed: bool = True,
    jobs: int = 1,
    scheduler: str | None = None,
    hidden_folder: Path | None = None,
    show_bar: bool = True,
) -> Rows:
    """Grade submissions and write ``report.json``, ``grades.csv`` and ``feedback/`` below ``out``.

    Returns:
        The report's rows, each with its ``feedback``; they stay on disk until they are asked for.
    """
    out.mkdir(parents=True, exist_ok=True)
    hidden_files = hidden.prepare(hidden_folder)
    rules = rules_digest(hidden_files, sandboxed)
    readable = [each for each in submissions if not each.refusal]
    payloads = {
        _key(payload, rules): payload for payload in (payload_of(each, sandboxed, hidden_files) for each in readable)
    }
    with RowLog(out / "progress.jsonl") as log:
        pending = {key: payload for key, payload in payloads.items() if key not in log}
        chapters = {payload["chapter"] for payload in pending.values()}
        expect_full_marks(chapters, hidden_files, sandboxed=sandboxed, rules=rules, jobs=jobs, scheduler=scheduler)
        show_bar = show_bar and bool(pending)
        for key, row in run_all(pending, grade_one, jobs=jobs, scheduler=scheduler, total=len(payloads), show_bar=show_bar):
            log.add(key, row)
        rows = Rows(log, list(payloads), [refused_row(each) for each in submissions if each.refusal])
        write_reports(rows, out, sandboxed)
    return rows


def _key(payload: dict[str, Any], rules: str) -> str:
    facts = [rules, payload["student"], payload["chapter"], payload["message"], payload["work"]]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]

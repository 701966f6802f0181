"""What a graded class is written into: ``report.json``, ``grades.csv`` and a feedback page for each student."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from autograder.judge.results import PartResult
from autograder.student.display import result_html

COLUMNS = ("student", "chapter", "points", "max_points", "status", "message")
STYLE = "body{font-family:sans-serif;line-height:1.4;max-width:60em;margin:2em auto;padding:0 1em}pre{overflow-x:auto}"


def write_reports(rows: Sequence[dict[str, Any]], out: Path, sandboxed: bool) -> None:
    """Write the report, the table and the pages, a row at a time; each file is the old one or the whole new one.

    Args:
        rows: the report's rows, each with its ``feedback``.
        out: the folder.
        sandboxed: whether student code ran in bubblewrap, which the report says.
    """
    with _replacing(out / "report.json") as file:
        file.write(f'{{\n "sandbox": {json.dumps("bubblewrap" if sandboxed else "none")},\n "submissions": [')
        for index, row in enumerate(rows):
            public = {name: value for name, value in row.items() if name != "feedback"}
            text = json.dumps(public, indent=1, sort_keys=True)
            file.write(("," if index else "") + "\n" + textwrap.indent(text, "  "))
        file.write("\n ]\n}\n" if rows else "]\n}\n")
    with _replacing(out / "grades.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([_harmless(row[column]) for column in COLUMNS])
    (out / "feedback").mkdir(exist_ok=True)
    for name, row in _pages(rows):
        with _replacing(out / "feedback" / name) as file:
            file.write(feedback_page(row))


def feedback_page(row: dict[str, Any]) -> str:
    """Return a student's feedback as a page of its own; everything in it is escaped."""
    title = html.escape(f"{row['student']}: {row['chapter']}")
    body = "".join(result_html(PartResult.from_plain(values)) + "<hr>" for values in row["feedback"])
    note = f"<p>{html.escape(row['message'])}</p>" if row["message"] else ""
    if row["status"] == "refused":
        note += (
            "<p>So nothing could be graded. Expected a notebook as JupyterLab saves it. Open yours, save it, see that it "
            "opens again, and hand it in anew.</p>"
        )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head><body>'
        f"<h1>{title}</h1><p>{row['points']:g} of {row['max_points']:g} points</p>{note}{body}</body></html>\n"
    )


def _pages(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file name for each student's page; no two are one, on a disk that ignores case either."""
    taken: set[str] = set()
    for row in rows:
        student = re.sub(r"[^\w.-]", "_", row["student"]).encode()[:150].decode(errors="ignore")
        while (name := f"{student}-{row['chapter']}.html").casefold() in taken:
            student += "_"
        taken.add(name.casefold())
        yield name, row


def _harmless(cell: Any) -> Any:
    """Keep a spreadsheet from taking a name for a formula."""
    return "'" + cell if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t") else cell


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """Open a new file that takes the place of ``path`` once it is whole."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8", newline="") as file:
        yield file
    os.replace(temporary, path)

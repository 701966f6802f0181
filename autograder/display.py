"""Show results in a notebook (HTML, with plain text beside it) or in a terminal. Never writes to standard error."""

from __future__ import annotations

import html
import sys
from itertools import groupby
from typing import Any

from autograder.parts import BY_ID
from autograder.progress import Row, minutes_left, next_step
from autograder.results import PartResult, TestResult

MARKS = {
    "passed": ("✓", "passed", "#1a7f37"),
    "failed": ("✗", "not yet right", "#b42318"),
    "not_written": ("○", "not written", "#57606a"),
    "unchecked": ("?", "written, not checked", "#9a6700"),
    "helped": ("↓", "provided version", "#8250df"),
    "time_limit": ("✗", "took too long", "#b42318"),
    "memory_limit": ("✗", "took too much memory", "#b42318"),
    "output_limit": ("✗", "printed or wrote too much", "#b42318"),
    "crashed": ("✗", "crashed", "#b42318"),
    "refused": ("✗", "not accepted", "#b42318"),
}
HELPED = "the provided version is in place; it earns no points"


class _Shown:
    """Something with an HTML and a plain form, as notebooks display it."""

    def __init__(self, text: str, markup: str) -> None:
        self.text, self.markup = text, markup

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def _show(text: str, markup: str) -> None:
    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            display(_Shown(text, markup))
            return
    print(text)


def show_text(text: str, *, title: str) -> None:
    """Show a message."""
    _show(f"{title}\n{text}", f"<b>{html.escape(title)}</b><pre>{html.escape(text)}</pre>")


def show_layers(name: str, layers: list[tuple[str, str]]) -> None:
    """Show hints that open on demand; in plain text only the first is written out."""
    folded = "".join(
        f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"
        for title, text in layers
    )
    more = f'\n(more: hint("{name}", 2))' if len(layers) > 1 else ""
    _show(f"{name}: {layers[0][0]}\n{layers[0][1]}{more}", f"<b>Hints for {html.escape(name)}</b>{folded}")


def result_text(result: PartResult) -> str:
    """Return a part's result as plain text: a line, then each test that isn't passed."""
    sign = MARKS[result.status][0]
    lines = [f"{sign} {result.id}: {result.message} ({result.points:g} of {result.max_points:g} points)"]
    if result.helped:
        lines = [f"↓ {result.id}: {HELPED}"]
    if result.trap:
        lines.append(f"  The answers look like a known trap: {result.trap}.")
    for test, title in _to_show(result):
        lines.append(f"  {MARKS[test.status][0]} {title}")
        lines += [f"      {line}" for line in _written_lines(test.message)]
        if test.hint:
            lines.append(f"      hint: {test.hint}")
    return "\n".join(lines)


def result_html(result: PartResult) -> str:
    """Return a part's result as HTML; everything that came from a student or a test is escaped."""
    sign, word, colour = MARKS["helped" if result.helped else result.status]
    message = result.message
    if result.helped or result.status == "not_written":  # the message says it all: not written, or what to write first
        word, message = HELPED if result.helped else message, ""
    head = (
        f'<b style="color:{colour}">{sign} {html.escape(result.id)}: {html.escape(word)}</b> '
        f"({result.points:g} of {result.max_points:g} points) {html.escape(message)}"
    )
    blocks = [head.rstrip()]
    if result.trap:
        blocks.append(f"<br><b>A known trap:</b> {html.escape(result.trap)}.")
    for test, title in _to_show(result):
        lines = "\n".join(_written_lines(test.message))
        body = f"<pre>{html.escape(lines)}</pre>" if lines else ""
        tip = f"<i>Hint: {html.escape(test.hint)}</i>" if test.hint else ""
        blocks.append(
            f"<details open><summary>{MARKS[test.status][0]} {html.escape(title)}</summary>{body}{tip}</details>"
        )
    return f"<div>{''.join(blocks)}</div>"


def _to_show(result: PartResult) -> list[tuple[TestResult, str]]:
    """Return the tests that aren't passed with their titles; neighbours that say the same are one, with their number."""
    if result.status == "not_written" or result.helped:
        return []
    bad = (test for test in result.tests if test.status != "passed")
    alike = [list(group) for _, group in groupby(bad, lambda test: (test.status, test.title, test.message, test.hint))]
    return [(tests[0], tests[0].title + (f" ({len(tests)} cases)" if len(tests) > 1 else "")) for tests in alike]


def _written_lines(text: str) -> list[str]:
    """Return the lines that aren't blank: a progress bar's output is full of those."""
    return [line for line in text.splitlines() if line.strip("\ufffd \t")]


def show_results(results: list[PartResult], changed: list[str]) -> None:
    """Show the results of a check; warn about cells that were edited and not run."""
    text = "\n".join(result_text(result) for result in results)
    markup = "".join(result_html(result) for result in results)
    if changed:
        note = f"The saved notebook has newer text for {', '.join(changed)}: run that cell, this is about the version before."
        text, markup = f"{note}\n{text}", f"<p><b>{html.escape(note)}</b></p>{markup}"
    _show(text, markup)


def status_text(found: list[Row]) -> str:
    """Return the table of all parts as plain text, with the sums and the next step."""
    lines, chapter = [], ""
    for row in found:
        if row.part.chapter != chapter:
            chapter = row.part.chapter
            lines.append(chapter)
        sign, word, _ = MARKS[row.state]
        lines.append(f"  {sign} {row.part.id:<28} {row.points:>4g} of {row.part.points:g}  {word}")
    points, full = sum(row.points for row in found), sum(part.points for part in BY_ID.values())
    lines.append(f"{points:g} of {full:g} points; about {minutes_left(found)} minutes left; next: {next_step(found)}")
    return "\n".join(lines)


def show_status(found: list[Row], changed: list[str]) -> None:
    """Show the table of all parts."""
    lines = "".join(
        f'<tr><td style="text-align:left">{html.escape(row.part.chapter)}</td><td style="text-align:left">'
        f"{html.escape(row.part.id)}</td><td>{row.points:g} of {row.part.points:g}</td>"
        f'<td style="text-align:left;color:{MARKS[row.state][2]}">{MARKS[row.state][0]} {MARKS[row.state][1]}</td></tr>'
        for row in found
    )
    text = status_text(found)
    last = text.splitlines()[-1]
    note = f"<p><b>Edited since run: {html.escape(', '.join(changed))}</b></p>" if changed else ""
    if changed:
        text += f"\nEdited since run: {', '.join(changed)}"
    _show(text, f"{note}<table>{lines}</table><p>{html.escape(last)}</p>")

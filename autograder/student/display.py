"""Show results in a notebook (HTML, with plain text beside it) or in a terminal. Never writes to standard error."""

from __future__ import annotations

import html
import re
import sys
from typing import Any

from autograder.judge.results import PartResult, TestResult
from autograder.parts import BY_ID
from autograder.student.progress import Row, minutes_left, next_step


def _colour(variable: str, otherwise: str) -> str:
    """Return a colour of JupyterLab's theme, drawn towards its text's so that both themes are easy to read."""
    return f"color-mix(in srgb,var({variable},{otherwise}) 65%,var(--jp-content-font-color0,{otherwise}))"


# The second colour is for white pages without JupyterLab.
GREEN = _colour("--jp-success-color1", "#1a7f37")
RED = _colour("--jp-error-color1", "#b42318")
YELLOW = _colour("--jp-warn-color1", "#9a6700")
PURPLE = _colour("--jp-content-link-visited-color", "#8250df")
GREY = "var(--jp-inverse-layout-color3,#57606a)"
MARKS = {
    "passed": ("✓", "passed", GREEN),
    "failed": ("✗", "not yet right", RED),
    "not_written": ("○", "not written", GREY),
    "unchecked": ("?", "written, not checked", YELLOW),
    "helped": ("↓", "provided version", PURPLE),
    "time_limit": ("✗", "took too long", RED),
    "memory_limit": ("✗", "took too much memory", RED),
    "output_limit": ("✗", "printed or wrote too much", RED),
    "crashed": ("✗", "crashed", RED),
    "refused": ("✗", "not accepted", RED),
}
MAX_CASES = 8
MAX_NAMED = 2
# JupyterLab would break an output's lines anywhere, also inside words.
PRE = '<pre style="white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere">'
# The styles of nbgrader's feedback pages would take the triangle away that tells that something opens.
SUMMARY = '<summary style="display:list-item;cursor:pointer">'
HELPED = "the provided version is in place; it earns no points"


class _Shown:
    """Something with an HTML and a plain form, as notebooks display it."""

    def __init__(self, text: str, markup: str) -> None:
        self.text, self.markup = text, markup

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


class Points(float):
    """Points earned: a number whose plain form is what nbgrader reads, and that a notebook shows with what it means."""

    full: float | None

    def __new__(cls, earned: float, full: float | None = None) -> Points:
        """Make the number ``earned``, rounded to cents; ``full`` is what could be had, if that is known."""
        self = super().__new__(cls, round(earned, 2))
        self.full = full
        return self

    def bundle(self) -> dict[str, str]:
        """Return what a notebook's output holds."""
        of_full = "" if self.full is None else f" of {self.full:g}"
        markup = f'<span style="color:{GREY}">Earned: {self:g}{of_full} points</span>'
        return {"text/html": markup, "text/plain": repr(self)}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.bundle()


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
    _show(f"{title}\n{text}", f"<b>{html.escape(title)}</b>{PRE}{html.escape(text)}</pre>")


def show_layers(name: str, layers: list[tuple[str, str]]) -> None:
    """Show hints that open on demand; in plain text only the first is written out."""
    folded = "".join(
        f"<details>{SUMMARY}{html.escape(title)}</summary>{PRE}{html.escape(text)}</pre></details>"
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
    for test, title, rest in _to_show(result):
        lines.append(f"  {MARKS[test.status][0]} {title}")
        lines += [f"      {line}" for line in _written_lines(test.told)]
        if test.hint:
            lines.append(f"      hint: {test.hint}")
        if rest:
            lines.append(f"      {rest}")
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
    for number, (test, title, rest) in enumerate(_to_show(result)):
        lines = "\n".join(_written_lines(test.told))
        body = f"{PRE}{html.escape(lines)}</pre>" if lines else ""
        tip = f"<i>Hint: {html.escape(test.hint)}</i>" if test.hint else ""
        more = f"<p>{html.escape(rest)}</p>" if rest else ""
        state = "" if number else " open"  # the first block is what to mend now; the others open on demand
        blocks.append(
            f"<details{state}>{SUMMARY}{MARKS[test.status][0]} {html.escape(title)}</summary>{body}{tip}{more}</details>"
        )
    return f"<div>{''.join(blocks)}</div>"


def _to_show(result: PartResult) -> list[tuple[TestResult, str, str]]:
    """Return each way in which tests fail: one that does, its title with its cases, and a line about all other ones."""
    if result.status == "not_written" or result.helped:
        return []
    ways: dict[tuple[str, ...], list[TestResult]] = {}
    for test in result.tests:
        if test.status != "passed":
            ways.setdefault(_way(test), []).append(test)
    return [(tests[0], _with_cost(title, tests), rest) for tests in ways.values() for title, rest in [_titles(tests)]]


def _with_cost(title: str, tests: list[TestResult]) -> str:
    """Put behind a title what its tests cost; all such costs of a part are what its mark lacks."""
    cost = round(sum(test.cost for test in tests), 2)
    return f"{title} [{cost:g} point{'' if cost == 1 else 's'} lost]" if cost else title


def _way(test: TestResult) -> tuple[str, ...]:
    """Return what is the same for tests that fail in the same way, whatever sizes an error or a list of keys speaks of."""
    speaks_of_sizes = test.message.startswith("your code raised") or re.match(r"\d+ keys? differs?:", test.message)
    message = re.sub(r"\d+", "#", test.message) if speaks_of_sizes else test.message
    own = test.title if test.hidden or not message else ""  # a hidden case says nothing about how it fails
    return test.status, message, test.hint, own


def _titles(tests: list[TestResult]) -> tuple[str, str]:
    """Return the first title with its cases, and a line that says how many more fail and what they are about."""
    by_title: dict[str, list[TestResult]] = {}
    for test in tests:
        by_title.setdefault(test.title, []).append(test)
    first, *others = [_with_cases(title, alike) for title, alike in by_title.items()]
    others = [text.removesuffix(".") for text in others]
    number = len(tests) - len(by_title[tests[0].title])
    checks = "check fails" if number == 1 else "checks fail"
    return first, f"… and {number} more {checks} in the same way: {'; '.join(others)}" if others else ""


def _with_cases(title: str, tests: list[TestResult]) -> str:
    """Put the cases' names beside a title; those of hidden cases are never shown."""
    names = ", ".join([test.case for test in tests if test.case][:MAX_CASES])
    dots = ", …" if len(tests) > MAX_CASES else ""
    if len(tests) > 1:
        return f"{title} ({len(tests)} cases{': ' if names else ''}{names}{dots if names else ''})"
    return f"{title} ({names})" if names else title


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
        sign, word, _ = _state(row)
        lines.append(f"  {sign} {row.part.id:<28} {row.points:>4g} of {row.part.points:g}  {word}")
    points, full = sum(row.points for row in found), sum(part.points for part in BY_ID.values())
    lines.append(f"{points:g} of {full:g} points; about {minutes_left(found)} minutes left; next: {next_step(found)}")
    return "\n".join(lines)


def _state(row: Row) -> tuple[str, str, str]:
    """Return a row's sign, words and colour; in a part that judges others there is nothing to write."""
    sign, word, colour = MARKS[row.state]
    if row.waits_for:
        some = ", ".join(row.waits_for) if len(row.waits_for) <= MAX_NAMED else f"{len(row.waits_for)} other parts"
        word = f"waits for {some}"
    return sign, word, colour


def show_status(found: list[Row], changed: list[str]) -> None:
    """Show the table of all parts."""
    lines = "".join(
        f'<tr><td style="text-align:left">{html.escape(row.part.chapter)}</td><td style="text-align:left">'
        f"{html.escape(row.part.id)}</td><td>{row.points:g} of {row.part.points:g}</td>"
        f'<td style="text-align:left;color:{colour}">{sign} {html.escape(word)}</td></tr>'
        for row in found
        for sign, word, colour in [_state(row)]
    )
    text = status_text(found)
    last = text.splitlines()[-1]
    note = f"<p><b>Edited since run: {html.escape(', '.join(changed))}</b></p>" if changed else ""
    if changed:
        text += f"\nEdited since run: {', '.join(changed)}"
    _show(text, f"{note}<table>{lines}</table><p>{html.escape(last)}</p>")

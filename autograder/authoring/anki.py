"""``python -m autograder anki``: the chapters' questions, exercises and answers as a deck of Anki flash cards.

The deck is made from the chapters' source, never typed twice. Its ids come from the texts, so that importing a newer
deck updates cards and keeps what a learner has learned; the same chapters give the same bytes.
"""

from __future__ import annotations

import argparse
import html
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbconvert.filters import markdown2html
from nbformat import NotebookNode

from autograder.authoring.notebook_cells import BEGIN, END
from autograder.authoring.notebooks import ROOT, chapters, source_notebook

FOLDED = re.compile(r"<details><summary>(?P<question>.*?)</summary>\n+(?P<answer>.*?)\n+</details>", re.DOTALL)
HEADING = re.compile(r"^#+ +(?P<text>.+)$", re.MULTILINE)
NUMBER = re.compile(r"^\d+\. ")
SOLUTION = re.compile(rf"[ \t]*{BEGIN}\n(?P<code>.*?)\n[ \t]*{END}", re.DOTALL)
# Drawn once; Anki recognizes deck and note type by them, whatever their names.
DECK_ID, NOTE_TYPE_ID = 1_604_270_735, 1_884_153_206
FIXED_TIME_S = 1_700_000_000  # the deck shall not depend on when it is made
FIXED_ZIP_TIME = (2024, 1, 1, 0, 0, 0)
CARD = '<div class="where">{{Where}}</div>{{Question}}'
CSS = """.card { font-family: sans-serif; font-size: 18px; text-align: left; max-width: 46em; margin: auto; }
.where { color: #57606a; font-size: 13px; margin-bottom: 8px; } pre { font-size: 14px; white-space: pre-wrap; }"""


@dataclass(frozen=True)
class Card:
    """One question.

    Attributes:
        chapter: the chapter's id.
        where: title of the chapter and section, as text.
        question: HTML.
        answer: HTML.
        kind: ``question`` or ``exercise``.
    """

    chapter: str
    where: str
    question: str
    answer: str
    kind: str


def cards_of(chapter: str, root: Path = ROOT) -> list[Card]:
    """List a chapter's cards: what is folded behind a question, and the exercises with their worked answers."""
    return list(_cards(chapter, source_notebook(chapter, root).cells))


def _cards(chapter: str, cells: list[NotebookNode]) -> Iterator[Card]:
    title = heading = task = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            headings = [found["text"] for found in HEADING.finditer(cell.source)]
            title = title or headings[0]
            yield from _folded(chapter, title, heading, cell.source)
            heading = [heading, *headings][-1]
            task = FOLDED.sub("", cell.source)
        elif _is_exercise(cell):
            code = SOLUTION.sub("    …", cell.source)
            answer = f"<pre>{html.escape(_without_marks(cell.source))}</pre>"
            question = markdown2html(_last_section(task)) + f"<pre>{html.escape(code)}</pre>"
            yield Card(chapter, f"{title} › {heading}", question, answer, "exercise")


def _folded(chapter: str, title: str, heading: str, text: str) -> Iterator[Card]:
    for found in FOLDED.finditer(text):
        above = HEADING.findall(text[: found.start()])
        where = f"{title} › {(above or [heading])[-1]}"
        question = f"<p>{NUMBER.sub('', found['question'].strip())}</p>"
        yield Card(chapter, where, question, markdown2html(found["answer"]), "question")


def _is_exercise(cell: NotebookNode) -> bool:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", "")).startswith("exercise-")


def _last_section(text: str) -> str:
    """Return the text from its last heading on, without short forms such as {{ expected }}."""
    start = max([found.start() for found in HEADING.finditer(text)], default=0)
    return re.sub(r"^\{\{.*\}\}$", "", text[start:], flags=re.MULTILINE).strip()


def _without_marks(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if line.strip() not in (BEGIN, END))


def write_deck(out: Path, root: Path = ROOT) -> int:
    """Write all chapters' cards as an .apkg file and return their number."""
    import genanki

    model = genanki.Model(
        NOTE_TYPE_ID,
        "minisgl course",
        fields=[{"name": "Question"}, {"name": "Answer"}, {"name": "Where"}],
        templates=[{"name": "Card", "qfmt": CARD, "afmt": "{{FrontSide}}<hr id=answer>{{Answer}}"}],
        css=CSS,
    )
    deck = genanki.Deck(DECK_ID, "minisgl: loading language models")
    number = 0
    for chapter in chapters(root):
        for card in cards_of(chapter, root):
            fields = [card.question, card.answer, html.escape(card.where)]
            guid = genanki.guid_for(card.chapter, card.kind, card.where, card.question[:120])
            deck.add_note(genanki.Note(model=model, fields=fields, guid=guid, tags=[card.chapter, card.kind]))
            number += 1
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "deck.apkg")
        genanki.Package(deck).write_to_file(made, timestamp=FIXED_TIME_S)
        _copy_without_times(made, out)
    return number


def _copy_without_times(source: Path, target: Path) -> None:
    with zipfile.ZipFile(source) as made, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in sorted(made.namelist()):
            copy.writestr(zipfile.ZipInfo(name, FIXED_ZIP_TIME), made.read(name), zipfile.ZIP_DEFLATED)


def main(argv: list[str]) -> int:
    """Export the course's questions, exercises and answers as an Anki deck. Exit code 0 when written."""
    parser = argparse.ArgumentParser(prog="python -m autograder anki", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "minisgl-course.apkg", help="the file to write")
    options = parser.parse_args(argv)
    number = write_deck(options.out)
    print(f"{options.out}: {number} cards. In Anki: File, Import.")
    return 0

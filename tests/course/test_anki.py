"""The Anki deck: every question and exercise of the chapters, with its answer, the same bytes each time."""

import json
import sqlite3
import zipfile

import pytest

from autograder.authoring.anki import cards_of, write_deck
from autograder.authoring.notebooks import ROOT, chapters


@pytest.mark.parametrize("chapter", chapters())
def test_every_folded_question_and_every_exercise_becomes_a_card(chapter):
    text = (ROOT / "solutions" / f"{chapter}.md").read_text(encoding="utf-8")
    cards = cards_of(chapter)
    assert sum(card.kind == "question" for card in cards) == text.count("<details><summary>") > 0
    assert sum(card.kind == "exercise" for card in cards) == text.count('```python exercise="')


@pytest.mark.parametrize("chapter", chapters())
def test_cards_are_whole_and_free_of_marks(chapter):
    for card in cards_of(chapter):
        assert card.where and card.question and card.answer
        for mark in ("SOLUTION", "{{", "<details", "<!--"):
            assert mark not in card.question + card.answer, card
    exercises = [card for card in cards_of(chapter) if card.kind == "exercise"]
    assert all("…" in card.question and card.question != card.answer for card in exercises)


def test_the_deck_is_readable_and_the_same_each_time(tmp_path):
    number = write_deck(tmp_path / "one.apkg")
    write_deck(tmp_path / "two.apkg")
    assert (tmp_path / "one.apkg").read_bytes() == (tmp_path / "two.apkg").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.apkg") as archive:
        archive.extract("collection.anki2", tmp_path)
    with sqlite3.connect(tmp_path / "collection.anki2") as database:
        notes = database.execute("select guid, flds, tags from notes").fetchall()
        decks = json.loads(database.execute("select decks from col").fetchone()[0])
    assert len(notes) == number == len({guid for guid, _, _ in notes})
    assert {tag for _, _, tags in notes for tag in tags.split()} == {*chapters(), "question", "exercise"}
    assert "minisgl: loading language models" in {deck["name"] for deck in decks.values()}

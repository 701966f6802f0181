"""The test of the checks: every plausible wrong solution is caught by its part's checks, with the hint meant for it."""

import json
import tomllib
from itertools import zip_longest

import pytest

from autograder import parts
from autograder.authoring.notebooks import ROOT, chapters
from autograder.judge.diagnosis import FINGERPRINTS
from autograder.judge.judge import Judge, reference_work
from autograder.text import reference

LIBRARY = [
    (path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "autograder" / "authoring" / "misconceptions").glob("*.toml"))
]
WRONG = [entry for _, library in LIBRARY for entry in library["wrong"]]
RECORDED = {facts["id"] for rows in json.loads(FINGERPRINTS.read_text(encoding="utf-8")).values() for facts in rows}
RIGHT = [entry for _, library in LIBRARY for entry in library.get("right", [])]


def edited(entry):
    """Return a part's text with the entry's edit, or the entry's own code in its place."""
    if "code" in entry:
        return entry["code"].strip("\n") + "\n"
    text = reference.piece(entry["part"])
    assert text.count(entry["find"]) == 1, (
        f"{entry['id']}: its text is in the reference {text.count(entry['find'])} times"
    )
    return text.replace(entry["find"], entry["replace"])


def rounds(entries):
    """Deal the entries into rounds with at most one for each part: a round is judged in one go."""
    by_part = {}
    for entry in entries:
        by_part.setdefault(entry["part"], []).append(entry)
    return [[entry for entry in dealt if entry] for dealt in zip_longest(*by_part.values())]


@pytest.fixture(scope="module")
def judge():
    with Judge() as started:
        yield started


def judged(judge, entries):
    work = reference_work(parts.PARTS)
    work.pieces.update({entry["part"]: edited(entry) for entry in entries})
    return judge.judge(work, [parts.BY_ID[entry["part"]] for entry in entries])


@pytest.mark.parametrize(
    "entries", rounds(WRONG), ids=lambda entries: f"{entries[0]['id']}-and-{len(entries) - 1}-more"
)
def test_wrong_solutions_are_caught_with_their_hint(judge, entries):
    missed = []
    for entry, result in zip(entries, judged(judge, entries), strict=True):
        told = "\n".join(
            f"{test.title}\n{test.message}\n{test.hint}" for test in result.tests if test.status != "passed"
        )
        if result.status != "failed":
            missed.append(f"{entry['id']}: {result.status}, {result.message}")
        elif entry["hint"] not in told:
            missed.append(f"{entry['id']}: caught, but without its hint {entry['hint']!r}:\n{told}")
        elif entry["id"] in RECORDED and entry["concept"] not in result.trap.split("; or: "):
            missed.append(f"{entry['id']}: named as another trap, {result.trap!r} (recompute the fingerprints?)")
    assert not missed, "\n\n".join(missed)


@pytest.mark.parametrize(
    "entries", rounds(RIGHT), ids=lambda entries: f"{entries[0]['id']}-and-{len(entries) - 1}-more"
)
def test_right_solutions_written_another_way_pass(judge, entries):
    failed = []
    for entry, result in zip(entries, judged(judge, entries), strict=True):
        if result.status != "passed":
            told = "\n".join(f"{test.title}: {test.message}" for test in result.tests if test.status != "passed")
            failed.append(f"{entry['id']}: {told}")
    assert not failed, "\n\n".join(failed)


def test_every_part_has_several_wrong_solutions_each_with_concept_and_hint():
    for part in (part for chapter in chapters() for part in parts.parts_of_chapter(chapter)):
        entries = [entry for entry in WRONG if entry["part"] == part.id]
        assert part.together or len(entries) >= 3, f"{part.id} has {len(entries)} wrong solutions"
    assert all(entry["concept"] and entry["hint"] for entry in WRONG)
    names = [entry["id"] for entry in WRONG + RIGHT]
    assert len(names) == len(set(names))

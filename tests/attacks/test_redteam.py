"""No trick earns a point, each cause is named, and honest work beside it keeps its marks: the red team's own run as tests."""

import json
import re

import pytest

from autograder.authoring import redteam
from autograder.authoring.redteam_files import CASES, judge_files
from autograder.judge.cases import HiddenCases
from autograder.judge.judge import Judge, warm_up
from autograder.text import reference
from autograder.worker import sandbox

ATTACKS = redteam.all_attacks()
KINDS = {
    "leaves early",
    "changes the judge",
    "borrows the answer",
    "lies with objects",
    "writes where it shouldn't",
    "uses up resources",
    "crashes",
    "leaves something behind",
    "calls out",
    "hands in trouble",
    "fools the memory measure",
    "overfits",
    "honest bad luck",
}


@pytest.fixture(scope="module")
def judge():
    assert sandbox.problem() is None, "these tests need bubblewrap (apt install bubblewrap)"
    before = redteam.traces()
    with Judge(sandboxed=True, limits=redteam.LIMITS, hidden=HiddenCases(redteam.HIDDEN)) as started:
        warm_up()
        yield started
    assert redteam.traces() == before, "an attack left something on this machine"


@pytest.mark.sandbox
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.kind}: {attack.name}".replace(" ", "_"))
def test_the_defence_holds(judge, attack):
    verdict = redteam.judge_attack(judge, attack)
    assert not verdict.problems, redteam.line(verdict)
    assert verdict.named or attack.points == "full", "every cause is named"


def test_trouble_that_is_handed_in_is_read_as_text_or_refused_with_the_reason(tmp_path):
    verdicts = list(judge_files(tmp_path))
    assert len(verdicts) == len(CASES)
    assert not [redteam.line(verdict) for verdict in verdicts if verdict.problems]


def test_every_kind_has_an_attack_and_every_attack_an_example():
    assert {attack.kind for attack in ATTACKS} | {"hands in trouble"} == KINDS
    assert all(attack.example and attack.statuses for attack in ATTACKS)
    assert all(attack.cause for attack in ATTACKS if attack.points != "full")


def planted(folder, **facts):
    """An attack folder with one file whose code is right, and which claims the given facts."""
    lines = {"kind": "overfits", "example": "planted", "part": "config.kv_bytes", "status": "failed", "cause": "x", **facts}
    text = "".join(f"# {name}: {words}\n" for name, words in lines.items()) + reference.piece("config.kv_bytes")
    (folder / "overfits").mkdir()
    (folder / "overfits" / "planted.py").write_text(text)
    return str(folder)


@pytest.mark.sandbox
def test_a_trick_that_works_is_reported_and_ends_with_1(tmp_path, capsys):
    code = redteam.main(["planted", "--attacks", planted(tmp_path), "--json", str(tmp_path / "verdicts.json")])
    shown = capsys.readouterr().out
    assert code == 1
    assert re.search(r"BROKEN \| overfits: planted .*\n +! status passed, expected failed\n +! it earned 1 points", shown)
    assert "! the cause isn't named" in shown and "1 broken" in shown
    assert json.loads((tmp_path / "verdicts.json").read_text())[0]["points"] == 1


def test_without_a_sandbox_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap isn't installed")
    assert redteam.main([]) == 3
    assert "bubblewrap isn't installed" in capsys.readouterr().err

"""Every command of the guides is run: the student's and the developer's here, the instructor's in test_example_class.py."""

import json
from pathlib import Path

import pytest

from autograder import paths
from autograder.authoring import wrong_solutions
from autograder.judge.diagnosis import FINGERPRINTS
from tests.project.documents import commands_of
from tests.project.elsewhere import ELSEWHERE, not_run
from tests.project.shell import shell
from tests.project.test_example_class import HERE as INSTRUCTOR_S
from tests.project.tree import ROOT

STUDENT_S = (
    "python -m autograder check 01_config",
    "python -m autograder check config.rope",
    "python -m autograder status",
    "python -m autograder hint config.rope",
    "python -m autograder hint config.rope 2",
)
DEVELOPER_S = {
    "python -m minisgl inspect tiny-qwen3 --tp 2": "On each rank:",
    'python -m minisgl generate --model tiny-qwen3 --prompt "Once upon a time" --max-new-tokens 20': " ",
}
GUIDES = {"student": STUDENT_S, "instructor": INSTRUCTOR_S, "developer": tuple(DEVELOPER_S)}


def commands_in(guide: str) -> list[str]:
    return commands_of((ROOT / f"docs/{guide}.md").read_text())


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_of_the_guide_is_run(guide: str):
    assert not not_run(commands_in(guide), GUIDES[guide]), "let a test run it, and enter it here or in elsewhere.py"
    assert not set(GUIDES[guide]) - set(commands_in(guide)), "the guide no longer has it"


def test_the_beginning_of_a_longer_command_counts_as_run():
    commands = ["nbgrader export", "nbgrader export --to x", "brew --size=…", "brew --size=9", "make coffee"]
    assert not_run(commands, {"nbgrader export --to x", "brew --size=9"}) == ["make coffee"]


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_runs_elsewhere_is_run_there(command: str):
    file, words = ELSEWHERE[command]
    assert words in (ROOT / file).read_text()
    assert any(command in commands_of(path.read_text()) for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))


def test_the_student_s_commands_tell_how_far_one_is(tmp_path: Path):
    chapter, part, status, first, second = STUDENT_S
    mine = {"MINISGL_WORKSPACE": str(tmp_path / "workspace")}
    told = shell(chapter, expect=(1,), environment=mine)
    assert "config.rope: not written yet" in told and "0 of 28 points" in told
    written = tmp_path / "workspace/minisgl/models/config.py"
    written.write_text((paths.reference_root() / "models/config.py").read_text())
    assert "config.rope: " in shell(part, environment=mine)
    assert "next: " in shell(status, environment=mine)
    nudge, table = shell(first, environment=mine), shell(second, environment=mine)
    assert "A nudge" in nudge and "What goes in" in table


@pytest.mark.parametrize("command", DEVELOPER_S)
def test_the_developer_s_five_minutes(command: str):
    assert DEVELOPER_S[command] in shell(command)


def test_the_fingerprints_of_two_mistakes_are_computed_as_they_are_recorded(tmp_path: Path, monkeypatch):
    part, count = "config.kv_bytes", 2
    some = [entry for entry in wrong_solutions.entries() if entry["part"] == part][:count]
    monkeypatch.setattr(wrong_solutions, "entries", lambda: some)
    assert wrong_solutions.main(["--out", str(tmp_path / "fingerprints.json")]) == 0
    computed = json.loads((tmp_path / "fingerprints.json").read_text())[part]
    recorded = json.loads(FINGERPRINTS.read_text())[part]
    assert len(computed) == count and not [facts for facts in computed if facts not in recorded]

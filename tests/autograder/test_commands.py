"""The students' commands: what they print, and exit codes that mean what they say."""

import json
import re
import subprocess
import sys

import pytest

from autograder import paths
from autograder.__main__ import main
from autograder.judge.judge_errors import failure_text
from autograder.parts import parts_of_chapter
from autograder.student import commands, notebook
from autograder.student.workspace import Workspace
from autograder.text import reference


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "workspace"))
    return Workspace()


def test_an_untouched_workspace_has_nothing_written_and_ends_with_one(workspace, capsys):
    assert main(["check", "01"]) == 1
    shown = capsys.readouterr().out
    written = [part for part in parts_of_chapter("01_config") if not part.together]
    assert shown.count("not written yet") == len(written)
    assert "0 of 28 points" in shown.splitlines()[-1]


def test_a_right_part_ends_with_zero_and_a_wrong_one_with_one_and_a_reason(workspace, tmp_path, capsys):
    workspace.ensure()
    part = next(part for part in parts_of_chapter("01_config") if part.id == "config.head_dim")
    workspace.write_cell(part.module, reference.piece(part.id))
    assert main(["check", "config.head_dim", "--json", str(tmp_path / "out.json")]) == 0
    (chapter,) = json.loads((tmp_path / "out.json").read_text())["chapters"]
    assert (chapter["chapter"], chapter["points"], chapter["parts"][0]["status"]) == ("01_config", 2, "passed")
    workspace.write_cell(part.module, "def head_dim_of(hf_config):\n    return 64\n")
    assert main(["check", "config.head_dim"]) == 1
    shown = capsys.readouterr().out
    assert "expected: 128" in shown and "hint:" in shown
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "config.head_dim" in shown and "next: write config.architecture" in shown


@pytest.mark.parametrize(
    "words",
    [["check", "nope"], ["check", "--nope"], ["hint", "nope"], ["hint", "config.rope", "9"], ["check", "00_orientation"]],
    ids=" ".join,
)
def test_wrong_usage_ends_with_two(workspace, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "usage: python -m autograder" in capsys.readouterr().err


def test_an_unknown_command_ends_with_two_and_lists_the_known(capsys):
    assert main(["nope"]) == 2 and main([]) == 2
    assert "there is no command 'nope'" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "check a chapter, a module or a part" in capsys.readouterr().out


def test_a_grader_that_fails_itself_ends_with_three(workspace, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("no worker today")

    monkeypatch.setattr(commands, "judge_workspace", broken)
    assert main(["check", "config.head_dim"]) == 3
    assert "the grader itself failed: RuntimeError: no worker today" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["check", "config.head_dim"], ["grade", "--help"], ["anki", "--help"]])
def test_a_python_without_the_packages_is_told_which_one_to_use(workspace, words):
    program = [sys.executable, "-S", "-m", "autograder", *words]  # -S: the standard library alone
    done = subprocess.run(program, cwd=paths.HOME, capture_output=True, text=True)
    assert done.returncode == 3 and not done.stdout
    failure, advice = done.stderr.splitlines()
    assert failure.startswith("the grader itself failed: ModuleNotFoundError: No module named ")
    assert ".venv/bin/python -m autograder" in advice and "source .venv/bin/activate" in advice


def test_a_module_of_the_course_that_is_missing_is_no_matter_of_the_python():
    assert "activate" not in failure_text(ModuleNotFoundError("No module named 'minisgl.x'", name="minisgl.x"))


def test_a_workspace_that_cannot_be_written_is_one_clear_message(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINISGL_WORKSPACE", str(tmp_path / "file" / "workspace"))
    assert main(["check", "config.head_dim"]) == 1
    assert "set MINISGL_WORKSPACE to a folder of yours" in capsys.readouterr().err


def test_hints_are_shown_layer_by_layer(workspace, capsys):
    for layer, title in ((1, "A nudge"), (2, "What goes in"), (3, "The steps")):
        assert main(["hint", "config.head_dim", str(layer)]) == 0
        assert title in capsys.readouterr().out


def test_a_layer_that_is_not_there_is_refused_with_those_that_are(workspace, capsys):
    with pytest.raises(SystemExit):
        main(["hint", "config.head_dim", "9"])
    assert "invalid choice: 9 (choose from 1, 2, 3)" in capsys.readouterr().err
    for layer in (0, 9, "2"):
        notebook.hint("config.head_dim", layer)
        shown = capsys.readouterr().out
        assert shown.splitlines() == [
            "No such hint",
            f"config.head_dim has no layer {layer!r}; it has 1 (A nudge), 2 (What goes in and what comes out), "
            "3 (The steps, in words).",
        ]


def test_the_hint_of_a_check_of_all_parts_says_where_the_hints_are(workspace, capsys):
    for target, module in (("weight.together", "weight"), ("04_into_the_model", "config")):
        notebook.hint(target)
        shown = capsys.readouterr().out
        assert "has no hint of its own" in shown
        first = re.search(r'as hint\("(.+)"\)', shown)[1]
        assert first.startswith(f"{module}.")
        notebook.hint(first)
        assert "A nudge" in capsys.readouterr().out

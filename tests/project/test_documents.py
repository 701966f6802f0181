"""What the documents tell people to type, open and expect is so."""

import os
import re
import subprocess
import sys

import pytest

from tests.project.documents import (
    documents,
    folder_map,
    links_named,
    make_targets_named,
    module_commands_named,
)
from tests.project.tree import ROOT, name_of, tracked_files

README = (ROOT / "README.md").read_text()
TEXTS = {name_of(path): path.read_text() for path in documents()}
COMMANDS = sorted(set().union(*map(module_commands_named, TEXTS.values())))


def phony_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text()
    return set(re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)[1].split())


def test_commands_are_found_in_a_document():
    fenced = "```bash\nmake lab   # go\npython -m minisgl generate --model X --prompt 'a b'\n```\n"
    text = fenced + "Run `python -m autograder\ncheck` or `make doctor`; make sense of it."
    assert make_targets_named(text) == {"lab", "doctor"}
    assert module_commands_named(text) == {("minisgl", "generate", "--model", "--prompt"), ("autograder", "check")}


@pytest.mark.parametrize("name", TEXTS)
def test_every_make_target_exists(name: str):
    assert make_targets_named(TEXTS[name]) <= phony_targets()


def test_make_help_lists_targets_that_exist():
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"make ([a-z-]+)", done.stdout)) <= phony_targets()
    assert {"setup", "lab", "test", "notebooks"} <= set(re.findall(r"make ([a-z-]+)", done.stdout))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_exists_with_its_options(command: tuple[str, ...]):
    words = [word for word in command if not word.startswith("--")]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert {word for word in command if word.startswith("--")} <= set(re.findall(r"--[a-z][a-z-]*", done.stdout))


@pytest.mark.parametrize("name", TEXTS)
def test_every_link_leads_to_a_file(name: str):
    folder = (ROOT / name).parent
    assert not [target for target in links_named(TEXTS[name]) if not (folder / target).exists()]


def test_the_map_of_folders_is_the_tree():
    tracked = {path.relative_to(ROOT).parts[0] for path in tracked_files() if path.parent != ROOT}
    assert folder_map(README) == {name for name in tracked if not name.startswith(".")}


def test_the_requirements_are_those_that_doctor_examines():
    from autograder import doctor

    assert f"{doctor.FREE_DISK_GIB} GiB of free disk and {doctor.AVAILABLE_MEMORY_GIB} GiB of\nfree memory" in README


def test_readme_s_first_commands_are_the_two_promised():
    block = re.search(r"```bash\n(.*?)```", README, flags=re.DOTALL)[1]
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["make setup", "make lab"]

"""What the documents tell people to type, open and expect is so."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.documents import (
    DASK,
    NBGRADER,
    commands_of,
    documents,
    folder_map,
    links_named,
    make_targets_named,
    module_commands_named,
    python_blocks,
    scripts_named,
    tool_commands_named,
)
from tests.project.shell import shell
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
    columns = {len(line) - len(words) for line, words in re.findall(r"^(make [a-z]+ {2,}(\S.*))$", done.stdout, re.MULTILINE)}
    assert len(columns) == 1, done.stdout


def test_make_help_names_every_variable_that_a_target_passes_on():
    text = (ROOT / "Makefile").read_text()
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not [name for name in re.findall(r"^([A-Z]+_ARGS|JOBS) \?=", text, re.MULTILINE) if f"{name}=" not in shown]


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
    from autograder.student import doctor

    assert f"{doctor.FREE_DISK_GIB} GiB of free disk and {doctor.AVAILABLE_MEMORY_GIB} GiB of\nfree memory" in README


def test_readme_s_first_commands_are_the_two_promised():
    block = re.search(r"```bash\n(.*?)```", README, flags=re.DOTALL)[1]
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["make lab", "make test"]


@pytest.mark.parametrize("name", TEXTS)
def test_every_script_named_exists(name: str):
    assert not [script for script in scripts_named(TEXTS[name]) if not (ROOT / script).is_file()]


NBGRADER_COMMANDS = sorted(set().union(*(tool_commands_named(text, NBGRADER) for text in TEXTS.values())))


def test_nbgrader_commands_are_found_in_the_guide():
    assert {"autograde", "zip_collect", "generate_feedback", "export"} <= {command[0] for command in NBGRADER_COMMANDS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", NBGRADER_COMMANDS, ids=" ".join)
def test_every_nbgrader_command_exists_with_its_options(command: tuple[str, ...]):
    from nbgrader.apps.dbapp import DbAssignmentAddApp
    from nbgrader.apps.nbgraderapp import NbGraderApp

    subcommand, *options = command
    if subcommand == "db assignment add":
        app = DbAssignmentAddApp()
    else:
        assert subcommand in NbGraderApp.subcommands
        app = NbGraderApp.subcommands[subcommand][0]()
    known = {f"--{name}" for name in (*app.flags, *app.aliases)}
    assert set(options) <= known


@pytest.mark.parametrize("command", sorted(tool_commands_named(TEXTS["docs/instructor.md"], DASK)), ids=" ".join)
def test_every_dask_command_exists_with_its_options(command: tuple[str, ...]):
    words = [sys.executable, "-m", f"distributed.cli.dask_{command[0]}", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert set(command[1:]) <= set(re.findall(r"--[a-z][a-z-]*", done.stdout))


def test_the_developer_s_guide_s_python_runs():
    program = "\n".join(python_blocks(TEXTS["docs/developer.md"]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "load_weight(" in program and "Engine(" in program


def test_readme_s_picture_has_words_for_those_who_do_not_see_it():
    (words, file) = re.search(r"!\[([^\]]+)\]\((docs/[^)]+)\)", README).groups()
    assert len(words) > 60
    assert (ROOT / file).is_file()


def test_the_readme_has_what_is_shown_when_a_first_cell_was_forgotten():
    from IPython.core.error import UsageError
    from IPython.core.interactiveshell import InteractiveShell

    with pytest.raises(UsageError) as told:
        InteractiveShell().run_cell_magic("module", "models/config.py rope", "x = 1")
    assert f'| "{str(told.value).replace("`", "").rstrip(".")}" |' in README
    for path in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        first = next(cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code")
        assert first["source"][0].strip() == "%load_ext autograder"


def test_contributing_says_how_to_try_a_chapter_and_how_to_undo_it(tmp_path):
    from autograder.paths import workspace_root

    copy, undo = "mkdir -p build/mine && cp -r notebooks build/mine", "git restore notebooks"
    assert {copy, undo} <= set(commands_of(TEXTS["CONTRIBUTING.md"]))
    chapter = tmp_path / "notebooks/01_config/01_config.ipynb"
    chapter.parent.mkdir(parents=True)
    chapter.write_text("built")
    (tmp_path / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    author = "-c user.name=A -c user.email=a@b.c"
    shell("git init -q && git add .", cwd=tmp_path, more=f"&& git {author} commit -qm built")
    shell(copy, cwd=tmp_path)
    assert workspace_root(tmp_path / "build/mine/notebooks/01_config") == tmp_path / "build/mine/workspace"
    assert shell("git status --short", cwd=tmp_path) == ""
    chapter.write_text("worked on")
    assert "01_config.ipynb" in shell("git status --short", cwd=tmp_path)
    shell(undo, cwd=tmp_path)
    assert chapter.read_text() == "built"


def test_the_guide_s_hidden_case_is_read_by_a_check():
    from autograder.judge.cases import HiddenCases, cases

    guide = TEXTS["docs/instructor.md"]
    (text,) = re.findall(r"^```json\n(.*?)^```", guide, flags=re.MULTILINE | re.DOTALL)
    ((name, wanted),) = json.loads(text).items()
    (case,) = HiddenCases({"mine.json": text}).of(cases(name))
    assert case.hidden and case["sizes"] == wanted[0]["sizes"]
    check_file = (ROOT / "tests/checks/test_config_drawn.py").read_text()
    assert f'cases("{name}", visible=[{{"id": "small", "sizes": SMALL}}]' in check_file


def test_the_guide_s_workspace_for_a_hub_is_in_each_user_s_home(monkeypatch):
    from autograder.paths import workspace_root

    name, value = re.search(r"`(MINISGL_WORKSPACE)=(\S+)`", TEXTS["docs/instructor.md"]).groups()
    monkeypatch.setenv(name, value)
    assert workspace_root() == Path.home().resolve() / "workspace"


def test_the_red_team_is_as_large_as_the_guide_says():
    from autograder.authoring.redteam_files import CASES as files

    attacks = [path for path in tracked_files() if path.is_relative_to(ROOT / "tests/attacks") and path.parent.name != "attacks"]
    assert "more than a hundred hostile submissions" in TEXTS["docs/instructor.md"]
    assert len(attacks) + len(files) > 100

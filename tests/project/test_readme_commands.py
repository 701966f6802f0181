"""Every command in README is run, by a test here or by one that is named here; a new one without a test is a failure."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.project.documents import commands_of
from tests.project.elsewhere import not_run
from tests.project.shell import BIN, shell
from tests.project.tree import ROOT

COMMANDS = commands_of((ROOT / "README.md").read_text())

# In the clone: the command -> what is added or put in place of a part of it, the right exit codes, and what must be shown.
IN_THE_CLONE = {
    "python -m autograder doctor --role instructor": ({"expect": (0, 1)}, ("sandbox: ", "piece")),
    "python -m minisgl inspect tiny-qwen3": ({}, ("Qwen3ForCausalLM", "tp sizes")),
    "make doctor": ({"expect": (0, 2)}, ("packages: all", "piece")),
    # JupyterLab reads its arguments, says how it would run, and ends.
    'make lab LAB_ARGS="--no-browser --port 9999"': (
        {"swap": ("--no-browser", "--show-config --no-browser")},
        ("SmolLM2-135M-Instruct", ".open_browser = False", ".port = 9999", "00_orientation.ipynb"),
    ),
}
# In an empty project with this Makefile and lock: what makes, uses and removes an environment, in this order.
IN_AN_EMPTY_PROJECT = (
    "make setup PYTHON=/path/to/python3.11",
    "make setup",
    "source .venv/bin/activate",
    "make test",
    "make clean",
)
HERE = (*IN_THE_CLONE, *IN_AN_EMPTY_PROJECT)
# What the empty project has of ours.
COPIED = (
    "Makefile",
    "requirements.lock",
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
)


def test_every_command_of_the_readme_is_run():
    assert len(COMMANDS) > 10
    assert not not_run(COMMANDS, HERE), "let a test run it, and enter it here or in elsewhere.py"


def test_a_planted_command_without_a_test_is_found():
    text = "| `notebooks/` | as `import minisgl` |\n\nRun `make\ncoffee`.\n\n```bash\nmake lab   # go\nbrew\n```\n"
    assert commands_of(text) == ["make coffee", "make lab", "brew"]
    assert not_run(commands_of(text), HERE) == ["make coffee", "brew"]


def test_nothing_is_run_that_the_readme_no_longer_names():
    assert not set(HERE) - set(COMMANDS)


@pytest.mark.parametrize("command", IN_THE_CLONE)
def test_it_runs_in_the_clone(command: str):
    options, shown = IN_THE_CLONE[command]
    text = shell(command, **options)
    assert not [words for words in shown if words not in text], text


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our Makefile, lock and scripts, a single test, and no environment."""
    folder = tmp_path_factory.mktemp("project")
    for name in COPIED:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "tests").mkdir()
    (folder / "tests/test_one.py").write_text("def test_one():\n    pass\n")
    (folder / "requirements-transformers4.lock").write_text("# nothing to lay over, so that nothing is downloaded\n")
    return folder


def test_they_make_use_and_remove_an_environment(project: Path):
    # The new environment sees this one's packages, so that nothing is downloaded.
    (packages,) = (path for path in map(Path, sys.path) if path.name == "site-packages" and path.is_relative_to(BIN.parent))
    seen = {"PYTHONPATH": str(packages), "PIP_NO_INDEX": "1"}
    made, again, activate, test, clean = IN_AN_EMPTY_PROJECT
    text = shell(made, cwd=project, swap=("/path/to/python3.11", sys.executable), environment=seen)
    assert f"with {sys.executable}" in text and ".venv/ is ready" in text
    assert "is ready" not in shell(again, cwd=project, environment=seen)
    assert shell(activate, cwd=project, more="&& command -v python").strip() == str(project / ".venv/bin/python")
    assert "1 passed" in shell(test, cwd=project, more="JOBS=0", environment=seen)
    shell(clean, cwd=project)
    assert not (project / ".venv").exists() and (project / "tests").is_dir()

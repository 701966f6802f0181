"""What `make setup` finds on a machine, and what it says when something is missing."""

import os
import subprocess
from pathlib import Path

from tests.project.tree import ROOT


def executable(path: Path, script: str) -> Path:
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


def run(*command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path} if path else None
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_fitting_python_is_printed():
    done = run("scripts/find_python.sh")
    assert done.returncode == 0
    assert Path(done.stdout.strip()).is_absolute()


def test_an_unfit_python_is_refused_with_what_to_do(tmp_path: Path):
    old = executable(tmp_path / "python3", '[ "$1" = --version ] && echo "Python 3.9.2"; exit 1\n')
    done = run("scripts/find_python.sh", str(old))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "found:     Python 3.9.2" in done.stderr
    assert "expected:  Python 3.11 or newer with the modules venv and ensurepip" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_an_old_first_python_is_passed_over(tmp_path: Path):
    executable(tmp_path / "python3", "exit 1\n")
    executable(tmp_path / "python3.12", "exit 0\n")
    done = run("scripts/find_python.sh", path=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 0
    assert not done.stdout.strip().endswith("/python3")


def test_missing_system_packages_are_named_where_they_can_not_be_installed(tmp_path: Path):
    executable(tmp_path / "uname", "echo Linux\n")
    executable(tmp_path / "id", "echo 1000\n")
    sh = subprocess.run(["sh", "-c", "command -v sh"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "sh").symlink_to(sh)
    done = run(sh, "scripts/system_packages.sh", path=str(tmp_path))
    assert done.returncode == 0
    assert "Still missing: chromium bubblewrap" in done.stderr
    assert "sudo apt-get install chromium bubblewrap" in done.stderr


def test_system_packages_are_installed_where_apt_may(tmp_path: Path):
    log = tmp_path / "log"
    for name, script in {
        "uname": "echo Linux\n",
        "id": "echo 0\n",
        "bwrap": "",
        "apt-get": f'echo "$@" >>{log}\n',
    }.items():
        executable(tmp_path / name, script)
    done = run("/bin/sh", "scripts/system_packages.sh", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == ["update -qq", "install -y -qq --no-install-recommends chromium"]


def dry_run(*arguments: str) -> str:
    done = run("make", "--dry-run", "--always-make", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_lab_fetches_a_model_opens_the_first_chapter_and_passes_arguments_on():
    text = dry_run("lab", "LAB_ARGS=--no-browser --port 9999")
    assert text.index("-m minisgl fetch") < text.index("jupyter lab")
    command = text[text.index("jupyter lab") :]
    assert "--no-browser --port 9999" in command
    assert ("--allow-root" in command) == (os.getuid() == 0)
    chapters = sorted((ROOT / "notebooks").glob("*/*.ipynb"))
    assert not chapters or f"/lab/tree/{chapters[0].relative_to(ROOT)}" in command


def test_test_runs_everything_and_then_the_other_line_of_transformers():
    text = dry_run("test")
    assert ".venv/bin/python -m pytest -n 2" in text
    second = text.index("PYTHONPATH=.venv/transformers4 .venv/bin/python -m pytest")
    assert text.index(".venv/bin/python -m pytest") < second


def test_ci_runs_make_test_without_standard_input():
    text = (ROOT / ".ci/run").read_text()
    assert "exec </dev/null" in text
    assert text.rstrip().endswith("make test")
    assert "bash .ci/run" in (ROOT / ".github/workflows/tests.yml").read_text()

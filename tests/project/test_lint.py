"""ruff and mypy have nothing to say; every public module, class and function has a docstring (ruff's D1)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT, name_of, tracked_files


def run_module(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def test_ruff_is_content_with_code_and_notebooks():
    files = [name_of(path) for path in tracked_files() if path.suffix in (".py", ".ipynb")]
    done = run_module("ruff", "check", "--force-exclude", "--output-format=concise", *files)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_mypy_is_content():
    done = run_module("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_planted_function_without_docstring_is_found(tmp_path: Path):
    (tmp_path / "planted.py").write_text('"""A module."""\n\n\ndef public():\n    return 1\n')
    done = run_module(
        "ruff", "check", "--config", str(ROOT / "pyproject.toml"), "--output-format=concise", ".", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "D103" in done.stdout

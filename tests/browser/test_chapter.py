"""A student's hour in JupyterLab: a part written wrong, then right, Validate, and the mark in formgrader."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.pages import Notebook, click_validate

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "01_config"
NOTEBOOK = f"notebooks/{CHAPTER}/{CHAPTER}.ipynb"
WRONG = """%%module models/config.py head_dim
def head_dim_of(hf_config):
    return hf_config.hidden_size // hf_config.num_attention_heads
"""
pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]


def solution_of(part):
    """Return the instructor's version of a part cell."""
    notebook = json.loads((ROOT / "solutions" / CHAPTER / f"{CHAPTER}.ipynb").read_text(encoding="utf-8"))
    cell = next(cell for cell in notebook["cells"] if cell["id"] == f"part-config-{part}")
    return "".join(cell["source"])


def test_lab_opens_at_the_first_chapter(page):
    page.wait_for_selector(".jp-NotebookPanel h1", timeout=60_000)
    assert "Orientation" in page.inner_text(".jp-NotebookPanel h1 >> nth=0")
    assert page.url.split("?")[0].endswith("/lab/tree/notebooks/00_orientation/00_orientation.ipynb")
    assert page.errors == []


@pytest.mark.sandbox
def test_a_part_written_wrong_then_right_then_validated_and_graded(page, lab, course):
    notebook = Notebook(page, lab, NOTEBOOK)
    notebook.run("code-20a69abba4")  # %load_ext autograder

    notebook.write("part-config-head_dim", WRONG)
    notebook.run("part-config-head_dim")
    told = notebook.run("check-config-head_dim")
    assert "2 of 5 checks passed; first: Given it wins" in told
    notebook.screenshot("1-wrong-with-hint", "check-config-head_dim")

    notebook.write("part-config-head_dim", solution_of("head_dim"))
    assert "part head_dim written" in notebook.run("part-config-head_dim")
    assert "passed" in notebook.run("check-config-head_dim")
    notebook.screenshot("2-right", "check-config-head_dim")
    assert (course / "workspace" / "minisgl" / "models" / "config.py").read_text().count("def head_dim_of(") == 1

    notebook.save()
    verdict = click_validate(page)
    notebook.screenshot("3-validate")
    assert "config.sizes: not written yet" in verdict
    assert "config.head_dim" not in verdict
    page.keyboard.press("Escape")
    assert page.errors == []

    grade(course)
    page.goto(f"{lab}/formgrader/gradebook/{CHAPTER}/{CHAPTER}?token=course")
    page.wait_for_function("() => /Submission #1/.test(document.querySelector('tbody')?.innerText)", timeout=60_000)
    page.screenshot(path=notebook.picture("4-formgrader"), full_page=True)
    assert "2 / 28" in " ".join(page.inner_text("tbody").split())


def grade(course):
    """Hand the notebook in as a student's and autograde it with nbgrader's own commands."""
    submitted = course / "submitted" / "ada" / CHAPTER
    submitted.mkdir(parents=True)
    (submitted / f"{CHAPTER}.ipynb").write_bytes((course / NOTEBOOK).read_bytes())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by its name
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(course),
        "JUPYTER_CONFIG_DIR": str(course / ".jupyter"),
    }
    for command in (["generate_assignment", CHAPTER, "--force"], ["autograde", CHAPTER]):
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command],
            cwd=course,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stdout + run.stderr

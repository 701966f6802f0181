"""``%%module`` and ``check`` in a real kernel: written, reloaded, judged, and no process left behind."""

import os
import re
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.judge.results import PartResult, TestResult, summarize
from autograder.student.display import result_html, result_text

WRONG = "return hf_config.hidden_size // hf_config.num_attention_heads"
PIDS = "['pgrep', '-P', str(os.getpid())], capture_output=True, text=True"
CELLS = {
    "load": "%load_ext autograder\nfrom autograder import check, hint, status, use_reference",
    "wrong": "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    {wrong}",
    "check_wrong": 'check("config.head_dim")',
    "use": "import minisgl\nkept = head_dim_of\nprint(minisgl.__file__)",
    "syntax": "%%module models/config.py head_dim\ndef head_dim_of(hf_config)\n    return 1",
    "unknown": "%%module models/nope.py head_dim\nx = 1",
    "empty": "%%module models/config.py head_dim\n\n  \n",
    "right": "%%module models/config.py head_dim\n{right}",
    "renewed": "print(head_dim_of is kept, kept.__doc__ is None)",
    "check_right": 'check("config.head_dim")',
    "stub": "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    raise NotImplementedError()",
    "check_stub": 'check("config.head_dim")',
    "helper": 'use_reference("config.kv_bytes")',
    "check_helped": 'check("config.kv_bytes")',
    "status": "status()",
    "hint": 'hint("config.head_dim")\nhint("config.head_dim", 2)\nhint("nope")',
    "nothing": 'check("nope")',
    "quick": 'import time\nstart = time.monotonic()\nvalue = check("config.moe")\nprint(value, time.monotonic() - start)',
    "pids": f"import subprocess, os\nprint(subprocess.run({PIDS}).stdout)",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    from autograder import paths
    from autograder.text import reference

    place = tmp_path_factory.mktemp("session")
    right = reference.piece("config.head_dim")
    cells = [
        nbformat.v4.new_code_cell(source.replace("{right}", right).replace("{wrong}", WRONG))
        for source in CELLS.values()
    ]
    book = nbformat.v4.new_notebook(cells=cells)
    environment = {**os.environ, "MINISGL_WORKSPACE": str(place / "workspace"), "PYTHONPATH": str(paths.HOME)}
    environment |= {"IPYTHONDIR": str(place / "ipython"), "PYTHONWARNINGS": "ignore"}
    NotebookClient(book, timeout=300, allow_errors=True, kernel_name="python3").execute(env=environment)
    return {name: cell.outputs for name, cell in zip(CELLS, book.cells, strict=True)}


def text(outputs):
    words = []
    for output in outputs:
        assert output.get("name") != "stderr", output
        words.append(output.get("text") or "\n".join(output.get("traceback", [])) or output.data["text/plain"])
    return "\n".join(words)


def number(outputs):
    (found,) = [output for output in outputs if output.output_type == "execute_result"]
    return float(found.data["text/plain"])


def test_a_part_is_written_and_the_tree_is_shown(session):
    shown = text(session["wrong"])
    assert "models/config.py: part head_dim written" in shown
    assert re.search(r"models/config\.py +1 of 10 parts: head_dim", shown)
    assert "minisgl was reloaded" in shown


def test_a_wrong_part_gets_its_reason_and_a_finite_number(session):
    shown = text(session["check_wrong"])
    assert "expected: 128" in shown and "came:     64" in shown and "hint:" in shown
    assert 0 <= number(session["check_wrong"]) < 2
    html = session["check_wrong"][0].data["text/html"]
    assert "config.head_dim" in html and "<pre " in html


def test_import_minisgl_is_the_students_tree(session):
    assert "/workspace/minisgl/__init__.py" in text(session["use"])


def test_a_syntax_error_is_shown_at_its_line_and_changes_nothing(session):
    shown = text(session["syntax"])
    assert "SyntaxError in line 2 of this cell: expected ':'" in shown
    assert "your tree keeps what it had of models/config.py" in shown
    assert "Traceback" not in shown


def test_a_wrong_magic_says_what_exists(session):
    assert "isn't a module that you write; those are models/config.py" in text(session["unknown"])
    assert "This cell holds no code" in text(session["empty"])


def test_a_right_part_passes_and_names_from_the_old_tree_are_renewed(session):
    (told,) = re.findall(r"minisgl was reloaded.*", text(session["right"]))
    assert told == text(session["wrong"]).splitlines()[-1], "the line doesn't grow with the notebook's names"
    assert text(session["renewed"]).split() == ["True", "False"]
    assert number(session["check_right"]) == 2.0
    assert "all public checks passed" in text(session["check_right"])


def test_running_the_stub_again_loses_nothing(session):
    assert "keeps the version of config.head_dim that it has" in text(session["stub"])
    assert number(session["check_stub"]) == 2.0


@pytest.mark.parametrize("show", [result_text, result_html])
def test_a_verdict_says_once_that_a_part_is_not_written(show):
    unwritten = summarize("config.moe", 2, [TestResult("a::b", "not_written", "any size", "not written yet")])
    assert show(unwritten).count("not written") == 1
    waiting = show(PartResult("config.moe", 0.0, 2, "not_written", "write config.sizes first"))
    assert "write config.sizes first" in waiting and "not written" not in waiting
    helped = show(PartResult("config.moe", 0.0, 2, "not_written", "not written yet", helped=True))
    assert helped.count("provided version") == 1 and "not written" not in helped


@pytest.mark.parametrize("show", [result_text, result_html])
def test_what_fails_alike_is_shown_once_and_without_a_progress_bars_blank_lines(show):
    alike = [
        TestResult(f"a::b[{number}]", "failed", "any <size>", "\n\nit fell\n \ufffd\n", "look") for number in "123"
    ]
    other = TestResult("a::b[4]", "failed", "any <size>", "it rose", "look")
    shown = show(summarize("config.moe", 2, [*alike, other]))
    assert shown.count("it fell") == shown.count("(3 cases: 1, 2, 3)") == shown.count("it rose") == 1
    assert "\ufffd" not in shown and all(line.strip() for line in shown.splitlines())


def test_help_is_marked_and_earns_nothing(session):
    assert "config.kv_bytes is in place; it is marked as help" in text(session["helper"])
    assert number(session["check_helped"]) == 0.0
    shown = text(session["status"])
    assert re.search(r"config\.kv_bytes +0 of 1 +provided version", shown)
    assert re.search(r"config\.head_dim +2 of 2 +passed", shown)
    assert "next: write config.architecture" in shown


def test_hints_come_in_layers(session):
    shown = text(session["hint"])
    assert "config.head_dim: A nudge" in shown and "What goes in and what comes out" in shown
    assert shown.count("No such hint") == 1
    assert "no chapter or part called 'nope'" in text(session["nothing"])


def test_the_checker_ends_with_the_kernel(session):
    children = [int(word) for word in text(session["pids"]).split()]
    assert children, "the checker is a child of the kernel while it runs"
    deadline = time.monotonic() + 20
    while living := subprocess.run(["ps", "-o", "args=", *map(str, children)], capture_output=True, text=True).stdout:
        assert time.monotonic() < deadline, living
        time.sleep(0.1)
    assert sys.executable

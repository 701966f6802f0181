"""Work that can't count says where it stands: in the notebook's check, and wherever a notebook is read."""

from types import SimpleNamespace

import pytest

from autograder.judge.results import PartResult
from autograder.parts import BY_ID
from autograder.student import notebook
from autograder.text.misplaced import reasons
from autograder.text.notebook import Cell, work_of_notebook

DEFINITION = "def head_dim_of(hf_config):\n    return 1\n"
STUB = "%%module models/config.py head_dim\ndef head_dim_of(hf_config):\n    raise NotImplementedError()\n"
HEAD = "head its cell with: %%module models/config.py head_dim"
PLACES = {
    f"head_dim_of stands in a cell without %%module; {HEAD}": ("code", f"import torch\n\n{DEFINITION}"),
    f"head_dim_of stands under %%writefile; {HEAD}": ("code", f"%%writefile models/config.py\n{DEFINITION}"),
    f"head_dim_of stands in a markdown cell; {HEAD}": ("markdown", f"My answer:\n\n    {DEFINITION}"),
    f"head_dim_of stands in a raw cell; {HEAD}": ("raw", DEFINITION),
    f"head_dim_of stands in a %%module cell of models/utils.py; {HEAD}": ("code", f"%%module models/utils.py\n{DEFINITION}"),
    "head_dim_of is missing; there is a head_dim_off: give it the name that the task says": (
        "code",
        f"%%module models/config.py head_dim\n{DEFINITION.replace('_of', '_off')}",
    ),
}


@pytest.mark.parametrize("expected", PLACES)
def test_each_place_is_named(expected):
    kind, source = PLACES[expected]
    for before in ([], [Cell("code", STUB)]):
        work = work_of_notebook([*before, Cell(kind, source)])
        if "is missing" in expected and before:
            assert work.problems == {}  # the stub has the name already
        else:
            assert work.problems == {"config.head_dim": expected}


def test_work_that_counts_needs_no_reason():
    cells = [("code", f"%%module models/config.py\n{DEFINITION}"), ("code", DEFINITION), ("markdown", DEFINITION)]
    assert work_of_notebook(Cell(*cell) for cell in cells).problems == {}
    calls = [("code", "head_dim_of(config)\nx = head_dim_of\nif True:\n    def head_dim_of(): pass\nmodel.head_dim_of = 1")]
    assert reasons(calls, work_of_notebook([])) == {}


def test_check_says_it_in_the_notebook(monkeypatch):
    history = SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=["", DEFINITION]))
    monkeypatch.setattr(notebook, "_shell", lambda: history)
    unwritten = PartResult("config.head_dim", 0.0, 2.0, "not_written", "not written yet")
    passed = PartResult("config.moe", 2.0, 2.0, "passed", "all public checks passed")
    workspace = SimpleNamespace(read=lambda: work_of_notebook([]))
    first, second = notebook._say_where([unwritten, passed], workspace)
    assert first.message == f"head_dim_of stands in a cell without %%module; {HEAD}"
    assert second == passed and BY_ID["config.head_dim"].points == first.max_points

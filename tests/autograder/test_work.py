"""A student's work is all statements of all their cells; names decide which part they belong to."""

import ast
import sys
import types

import pytest

from autograder import parts
from autograder.parts import BY_ID, GRADED_MODULES, PARTS
from autograder.text import reference
from autograder.text.sources import MAX_PART_CHARS, missing_names, syntax_error_of
from autograder.text.statements import in_running_order, statements_of
from autograder.text.trees import obstacle_of, student_module, tree_for
from autograder.text.work import Work, module_of_magic, read_cell, work_of_cells, work_of_modules

CONFIG = "models/config.py"
HEAD = "%%module models/config.py head_dim\n"
HEAD_DIM = BY_ID["config.head_dim"]
ANSWER = "def head_dim_of(c):\n    return _half(c.hidden_size)\n"
HELPER = "def _half(n):\n    return n // 2\n"
STUB = "def head_dim_of(c):\n    raise NotImplementedError()\n"
WRITTEN = [part for part in PARTS if not part.together]
CELLS = [f"%%module {part.module} {part.name}\n{reference.piece(part.id)}" for part in WRITTEN]


def tree(work, part_id="config.head_dim", module=CONFIG):
    """The names of a tree's module and what they are after it was run, as far as plain Python goes."""
    text = tree_for(work, BY_ID[part_id])[module]
    assert ast.parse(text)
    return text


def run(work, part_id="config.head_dim"):
    """Run the functions of the tree's config.py, without the imports that need a package."""
    module = sys.modules["tree"] = types.ModuleType("tree")
    try:
        exec(compile(tree(work, part_id), "tree", "exec"), module.__dict__)
    finally:
        del sys.modules["tree"]
    return module.__dict__


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_the_references_own_text_makes_the_reference_tree_from_cells_and_from_files(part):
    from_cells = work_of_cells(CELLS)
    from_files = work_of_modules({module: reference.text(module) for module in GRADED_MODULES})
    assert from_cells == from_files and not from_files.helpers and obstacle_of(from_cells, part)[1] == ""
    for module, text in tree_for(from_cells, part).items():
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(reference.text(module))), module


@pytest.mark.parametrize(
    "cells",
    [
        [HEAD + HELPER + ANSWER],
        [HEAD + HELPER, HEAD + ANSWER],
        [HEAD + ANSWER, "%%module models/config.py sizes\n" + HELPER],
        ["%%module config\n" + HELPER, "%%module config.py haed_dmi\n" + ANSWER],
        [HEAD + HELPER + ANSWER, HEAD + "# done, see above\n", HEAD],
        [HEAD + HELPER + ANSWER, HEAD + STUB],
        [HEAD + "from __future__ import annotations\n!pip install numpy\n" + HELPER + ANSWER],
        [HEAD + HELPER.replace("    return", "    %timeit 1\n    return") + ANSWER],
        ["\ufeff\r\n# mine\r\n" + (HEAD + HELPER + ANSWER).replace("\n", "\r\n")],
        [HEAD + "def _half(n):\n    return 1 / 0\n" + ANSWER, HEAD + HELPER],
        [HEAD + HELPER + ANSWER, HEAD + "def head_dim_of(c:\n    return 3\n"],
        [HEAD + HELPER + ANSWER + "\ndef sizes_of(:\n    pass\n"],
        [HEAD + HELPER + ANSWER, HEAD + "BROKEN = 1 / 0\nraise ValueError(BROKEN)\n"],
        [HEAD + "half = 2\nTABLE = {}\nTABLE['half'] = half\ndef _half(n):\n    return n // TABLE['half']\n" + ANSWER],
        [HEAD + HELPER + "def first(f):\n    return f\n@first\n" + ANSWER],
        [HEAD + HELPER + ANSWER + "ASKED, plain = [], head_dim_of\ndef head_dim_of(c):\n    return plain(c)\n"],
        [HEAD + HELPER + "if HALF := True:\n    def head_dim_of(c):\n        return _half(c.hidden_size)\n"],
        [HEAD + HELPER + ANSWER, HEAD + "import functools\nhead_dim_of = functools.cache(head_dim_of)\n"],
        [HEAD + "@first\n" + ANSWER, HEAD + HELPER + "def first(f):\n    return f\n"],
    ],
)
def test_a_part_and_its_helpers_count_however_they_are_spread_over_cells(cells):
    class Config:
        hidden_size = 8

    work = work_of_cells(cells)
    assert obstacle_of(work, HEAD_DIM)[1] == ""
    assert run(work)["head_dim_of"](Config) == 4
    assert run(work_of_modules({CONFIG: student_module(work, CONFIG).replace("BROKEN", "PASS")}))["head_dim_of"](Config) == 4


def test_a_helper_never_changes_what_the_references_functions_do():
    own = "def ConfigError(text):\n    return KeyError('mine')\n" + STUB.replace("NotImplementedError()", "ConfigError('no')")
    work = work_of_cells([HEAD + own])
    space = run(work)
    with pytest.raises(KeyError, match="mine"):
        space["head_dim_of"](None)
    with pytest.raises(ValueError, match="architectures"):
        space["architecture_of"](type("Config", (), {"architectures": ["Nope"]}))


def test_the_references_own_names_are_never_parameters_of_its_functions():
    for module in GRADED_MODULES:
        tree_ = ast.parse(reference.text(module))
        given = {name for each in statements_of(reference.header(module)) for name in each.names}
        assert not given & {node.arg for node in ast.walk(tree_) if isinstance(node, ast.arg)}, module


def test_a_helper_in_another_module_of_the_hand_in_comes_along_and_a_missing_one_is_named():
    layer = "from minisgl.models.utils import mine\n" + reference.piece("decoder.layer").replace("(", "(mine and ", 1)
    cells = ["%%module models/decoder.py layer\n" + layer]
    status, reason = obstacle_of(work_of_cells(cells), BY_ID["decoder.layer"])
    assert (status, reason.split(",")[0]) == ("failed", "it imports mine")
    tree_text = tree_for(work_of_cells([*cells, "%%module models/utils.py\nmine = 3\n"]), BY_ID["decoder.layer"])
    assert "mine = 3" in tree_text["models/utils.py"] and "class RopeAttn" in tree_text["models/utils.py"]


def test_a_syntax_error_costs_its_own_statement_and_says_the_line_and_the_python():
    work = work_of_cells([HEAD + HELPER + ANSWER + "\n\ndef sizes_of(c)\n    return 1\n"])
    status, reason = obstacle_of(work, BY_ID["config.sizes"])
    assert status == "failed" and reason.startswith("syntax error in line 7: ") and "Python 3." in reason
    assert obstacle_of(work, HEAD_DIM)[1] == ""


def test_what_was_left_out_is_said():
    answer = ANSWER.replace("    return", "    breakpoint()\n    return")
    work = work_of_cells([HEAD + "!pip install x\n" + answer, "%%module x.py y\nz"])
    assert work.notes == [
        "models/config.py: this line is for IPython and was left out: !pip install x",
        "models/config.py: breakpoint() has no effect here; take it out",
        "a cell counts for nothing: 'x.py' isn't a module that you write; those are " + ", ".join(GRADED_MODULES),
    ]


def test_a_running_order_is_found_where_there_is_one():
    text = "class B(A):\n    pass\nX = make()\ndef make():\n    return A\nclass A:\n    pass\n"
    names = [sorted(each.names) for each in in_running_order(statements_of(text))]
    assert names.index(["A"]) < names.index(["B"]) and names.index(["make"]) < names.index(["X"])
    assert names.index(["A"]) < names.index(["X"])


def test_work_survives_its_plain_form():
    work = work_of_cells([HEAD + HELPER + ANSWER, HEAD + "def sizes_of(:\n"])
    assert Work.from_plain(work.as_plain()) == work
    assert work.only(["config.head_dim"]).pieces.keys() == {"config.head_dim"}


def test_text_that_is_too_long_is_never_parsed(monkeypatch):
    long = "def head_dim_of(c):\n    x = [" + "1," * (2 << 20) + "]\n"

    def parse(text, *_, **__):
        assert len(text) <= MAX_PART_CHARS
        return ast_parse(text)

    ast_parse = ast.parse
    monkeypatch.setattr("autograder.text.sources.ast.parse", parse)
    assert "longer than 100000 characters" in work_of_cells([HEAD + long]).broken["config.head_dim"]
    assert work_of_cells([HEAD + HELPER + ANSWER, HEAD + long]).pieces["config.head_dim"] == ANSWER


def test_a_text_of_endless_statements_is_left_out():
    work = work_of_cells([HEAD + HELPER + ANSWER, HEAD + "a = 1\n" * 10_000])
    assert run(work)["head_dim_of"](type("Config", (), {"hidden_size": 8})) == 4
    assert work.notes == ["models/config.py: a text of 10000 statements was left out; 400 are read"]


DEEP = [
    "@(f" + "+1" * 600 + ")\ndef head_dim_of():\n    pass\n",
    "head_dim_of = " + "-" * 90_000 + "1\n",
    "head_dim_of = '\ud800'\n",
    "head_dim_of = " + "(" * 900,
    "head_dim_of = a" + ".b" * 1400 + "\n",
]


@pytest.mark.parametrize("text", DEEP, ids=["decorator", "unary", "surrogate", "parentheses", "attributes"])
def test_no_text_raises_anything(text):
    assert set(work_of_cells([HEAD + text]).broken) <= {"config.head_dim"}
    syntax_error_of(text)
    missing_names(HEAD_DIM, text)


def test_a_cell_is_read_with_blank_lines_and_comments_before_its_magic():
    assert read_cell("\ufeff\r\n# mine\r\n%%module models/config.py rope\r\nx = 1") == (CONFIG, "rope", "x = 1")
    assert read_cell("%%module config\nx") == ("config", "", "x")
    assert read_cell("x = 1\n%%module models/config.py rope\n") is None


def test_a_wrong_magic_says_what_exists():
    for module in ("models/config.py", "minisgl/models/config.py", "config", "config.py"):
        assert module_of_magic(module) == CONFIG
    with pytest.raises(ValueError, match=r"isn't a module that you write; those are models/config\.py"):
        module_of_magic("models/../engine.py")


def test_every_part_is_found_by_its_names():
    for part in parts.PARTS:
        if not part.together:
            text = "".join(f"def {name}():\n    return 1\n" for name in part.names)
            assert set(work_of_modules({part.module: text}).pieces) == {part.id}

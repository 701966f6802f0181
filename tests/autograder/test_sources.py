"""Modules are cut into parts and put together again without losing a character that matters."""

import ast

import pytest

from autograder import parts, paths
from autograder.text import reference
from autograder.text.lifting import lift_cells, lift_module, obstacle_of_module, part_of_magic, read_cell
from autograder.text.sources import (
    MAX_PART_CHARS,
    assemble,
    header_of,
    is_stub,
    missing_names,
    normalize,
    split_reference,
    split_student,
    syntax_error_of,
)

MODULES = parts.GRADED_MODULES


@pytest.mark.parametrize("module", MODULES)
def test_the_parts_are_the_whole_reference(module):
    text = (paths.reference_root() / module).read_text()
    header, pieces = split_reference(module, text)
    together = assemble(module, header, pieces)
    assert ast.dump(ast.parse(together)) == ast.dump(ast.parse(text))
    assert list(pieces) == [part.name for part in parts.parts_of_module(module)]
    assert reference.header(module) == header


@pytest.mark.parametrize("module", MODULES)
def test_a_students_file_is_cut_where_it_was_joined(module):
    pieces = reference.pieces(module)
    text = assemble(module, reference.header(module), pieces)
    assert split_student(text) == (reference.header(module), pieces)
    assert split_student("\ufeff" + text.replace("\n", "\r\n")) == (reference.header(module), pieces)


@pytest.mark.parametrize("module", MODULES)
def test_a_bare_file_is_lifted_by_its_names(module):
    text = (paths.reference_root() / module).read_text()
    stem = module.rsplit("/", 1)[-1].removesuffix(".py")
    assert lift_module(module, text) == {f"{stem}.{name}": piece for name, piece in reference.pieces(module).items()}


def test_a_statement_of_no_part_is_reported():
    text = (paths.reference_root() / "models/config.py").read_text() + "\n\ndef stray():\n    pass\n"
    with pytest.raises(ValueError, match=r"belongs to no part; name it in parts\.py"):
        split_reference("models/config.py", text)


def test_missing_parts_are_left_out_and_order_is_the_references():
    text = assemble(
        "models/config.py", "import os\n", {"kv_bytes": "def kv():\n    pass\n", "head_dim": "def hd():\n    pass\n"}
    )
    assert text.index("part: head_dim") < text.index("part: kv_bytes")
    assert ast.parse(text)


@pytest.mark.parametrize(
    ("text", "stub"),
    [
        ("def f():\n    raise NotImplementedError()\n", True),
        ('def f():\n    """Say."""\n    # YOUR CODE HERE\n    raise NotImplementedError\n', True),
        ("class C:\n    def f(self):\n        raise NotImplementedError()\n", True),
        ("class C:\n    def f(self):\n        return 1\n    raise NotImplementedError()\n", False),
        ("class C(ABC):\n    @abstractmethod\n    def f(self):\n        raise NotImplementedError\n", False),
        ("class C(abc.ABC):\n    @abc.abstractmethod\n    def f(self):\n        raise NotImplementedError\n", False),
        ("def f():\n    return 1\n", False),
        (
            "class C:\n    x = 1\n    def f(self):\n        return 1\n    def g(self):\n        raise NotImplementedError()\n",
            False,
        ),
        ("def f(:\n", False),
        ("@(f" + "+1" * 600 + ")\ndef f():\n    raise NotImplementedError()\n", True),
        ("def f():\n    raise NotImplementedError()\n" + "#" * MAX_PART_CHARS, False),
    ],
)
def test_only_an_untouched_stub_counts_as_not_written(text, stub):
    assert is_stub(text) is stub


def test_odd_text_becomes_plain_text():
    assert normalize("\ufeff\r\nx = 'ü'\r\n\r\n") == "x = 'ü'\n"
    assert normalize(" \n") == ""
    assert syntax_error_of("x = \0") is not None
    assert syntax_error_of("(" * 5000) is not None


@pytest.mark.parametrize("odd", ["\f", "\v", "\u2028", "\x85", "\x1c"])
@pytest.mark.parametrize("module", MODULES)
def test_lines_are_counted_as_the_syntax_tree_counts_them(module, odd):
    text = (paths.reference_root() / module).read_text()
    first, rest = text.split("\n", 1)
    changed = f"{first}\n# a comment{odd}with an odd character\n{rest}"
    assert lift_module(module, changed) == lift_module(module, text)
    assert split_reference(module, changed)[1] == reference.pieces(module)
    assert header_of(module, changed).rstrip("\n").endswith(reference.header(module).rstrip("\n")[-40:])


def test_form_feeds_between_functions_stay_with_the_part_that_follows():
    text = (paths.reference_root() / "models/config.py").read_text()
    found = lift_module("models/config.py", text.replace("\n\n\ndef ", "\n\f\ndef "))
    together = assemble(
        "models/config.py",
        reference.header("models/config.py"),
        {part_id.split(".")[1]: piece for part_id, piece in found.items()},
        marks=False,
    )
    assert ast.dump(ast.parse(together)) == ast.dump(ast.parse(text))


def test_text_that_is_too_long_is_never_parsed(monkeypatch):
    cell, long = "%%module models/config.py head_dim\n", "x = [" + "1," * (2 << 20) + "]\n"

    def parse(text, *_, **__):
        assert len(text) <= MAX_PART_CHARS
        return ast_parse(text)

    ast_parse = ast.parse
    monkeypatch.setattr("autograder.text.sources.ast.parse", parse)
    assert lift_cells([cell + "x = 1\n", cell + long]) == {"config.head_dim": long}
    assert "longer than 100000 characters" in syntax_error_of(long).msg
    assert lift_module("models/config.py", long) == {}
    assert "longer than 1000000 characters" in obstacle_of_module("models/config.py", long)


DEEP = [
    "@(f" + "+1" * 600 + ")\ndef f():\n    pass\n",
    "x = " + "-" * 90_000 + "1\n",
    "x = '\ud800'\n",
    "x = " + "(" * 900,
]


@pytest.mark.parametrize("text", DEEP, ids=["decorator", "unary", "surrogate", "parentheses"])
def test_no_text_raises_anything(text):
    cell = "%%module models/config.py head_dim\n"
    assert lift_cells([cell + "x = 1\n", cell + text]) == {"config.head_dim": normalize(text)}
    assert lift_module("models/config.py", text) == {}
    syntax_error_of(text)
    assert not is_stub(text)
    assert "head_dim_of" in missing_names(parts.BY_ID["config.head_dim"], text)


def nested_finally(levels, inside="pass"):
    """Return a function with a try in the finally block of a try, and so on."""
    lines = ["def f():"]
    for level in range(1, levels + 1):
        lines += [" " * level + word for word in ("try:", " g()", "finally:")]
    return "\n".join([*lines, " " * (levels + 1) + inside, ""])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (nested_finally(18), "nested deeper than 4"),
        (nested_finally(4), ""),
        (nested_finally(3, "class C:\n     " + nested_finally(2).replace("\n", "\n     ")), "nested deeper than 4"),
        ("def f():\n try:\n" + "  return\n" * 5000 + " finally:\n" + "  g()\n" * 5000, "copies a finally block"),
        ("def f():\n try:\n" + "  g()\n" * 5000 + " finally:\n" + "  g()\n" * 5000, ""),
    ],
)
def test_finally_blocks_that_double_the_code_are_refused_before_compiling(text, words):
    error = syntax_error_of(text)
    assert words in error.msg if words else error is None
    assert lift_module("models/config.py", text.replace("def f(", "def head_dim_of(")).keys() == (
        set() if words else {"config.head_dim"}
    )


def test_a_cell_is_read_with_blank_lines_and_comments_before_its_magic():
    assert read_cell("\ufeff\r\n# mine\r\n%%module models/config.py rope\r\nx = 1") == (
        "models/config.py",
        "rope",
        "x = 1",
    )
    assert read_cell("x = 1\n%%module models/config.py rope\n") is None


def test_the_last_written_cell_of_a_part_counts_and_unknown_parts_are_ignored():
    cell = "%%module models/config.py head_dim\n"
    stub = cell + "def head_dim_of(h):\n    raise NotImplementedError()\n"
    found = lift_cells(
        [cell + "a = 1", cell + "b = 2", stub, cell, "%%module models/config.py nope\nx", "%%module x y\nz"]
    )
    assert found == {"config.head_dim": "b = 2\n"}


def test_a_wrong_magic_says_what_exists():
    for module in ("models/config.py", "minisgl/models/config.py", "config", "config.py"):
        assert part_of_magic(module, "rope").id == "config.rope"
    with pytest.raises(ValueError, match=r"no part 'nope'; its parts are architecture, sizes"):
        part_of_magic("models/config.py", "nope")
    with pytest.raises(ValueError, match=r"isn't a module that you write; those are models/config\.py"):
        part_of_magic("models/../engine.py", "rope")


def test_a_target_is_found_by_part_module_chapter_or_number():
    assert [part.id for part in parts.select("config.rope")] == ["config.rope"]
    assert parts.select("01") == parts.select("01_config") == parts.parts_of_chapter("01_config")
    assert {part.module for part in parts.select("utils")} == {"models/utils.py"}
    assert parts.select(None) == parts.PARTS
    with pytest.raises(ValueError, match="no chapter or part called 'nope'"):
        parts.select("nope")


def test_every_part_has_sensible_facts_and_only_earlier_prerequisites():
    seen = set()
    for part in parts.PARTS:
        assert part.points > 0 and 1 <= part.difficulty <= 5 and 1 <= part.importance <= 5 and part.minutes > 0
        assert seen.issuperset(part.depends), part.id
        assert part.id not in seen
        seen.add(part.id)
        assert parts.part_of_grade_id(parts.grade_id(part)) is part

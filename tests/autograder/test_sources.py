"""Modules are cut into parts and put together again without losing a character that matters."""

import ast

import pytest

from autograder import parts, paths
from autograder.text import reference
from autograder.text.sources import (
    MAX_PART_CHARS,
    header_of,
    is_stub,
    normalize,
    split_reference,
    syntax_error_of,
)

MODULES = parts.GRADED_MODULES


@pytest.mark.parametrize("module", MODULES)
def test_the_parts_are_the_whole_reference(module):
    text = (paths.reference_root() / module).read_text()
    header, pieces = split_reference(module, text)
    together = "\n".join([header, *pieces.values()])
    assert ast.dump(ast.parse(together)) == ast.dump(ast.parse(text))
    assert list(pieces) == [part.name for part in parts.parts_of_module(module)]
    assert reference.header(module) == header


def test_a_statement_of_no_part_is_reported():
    text = (paths.reference_root() / "models/config.py").read_text() + "\n\ndef stray():\n    pass\n"
    with pytest.raises(ValueError, match=r"belongs to no part; name it in parts\.py"):
        split_reference("models/config.py", text)


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
    assert split_reference(module, changed)[1] == reference.pieces(module)
    assert header_of(module, changed).rstrip("\n").endswith(reference.header(module).rstrip("\n")[-40:])


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

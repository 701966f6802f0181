"""Rules that hold over the whole tree: sizes, and words that must not be in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.tree import CODE_FOLDERS, ROOT, name_of, python_files, tracked_files

# CONTRIBUTING.md says about 250 and about 40; these are the lines, docstrings apart, at which "about" ends.
MODULE_LINES = 300
FUNCTION_LINES = 60
TEST_MODULE_LINES = 450

# Joined from pieces, so that this file itself is free of them.
FORBIDDEN_WORDS = tuple(
    ".".join(pieces)
    for pieces in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs"),
        ("proxy", "golang"),
        ("crates", "io"),
        ("deb", "debian", "org"),
        ("download", "pytorch", "org"),
        ("conda", "anaconda", "org"),
        ("repo", "maven"),
    )
) + tuple("/" + "/".join(pieces) for pieces in (("work", "main"), ("work", "shared"), ("work", ""), ("tmp", "plan")))


WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(node: WITH_DOCSTRING) -> int:
    """Count the lines that a node's own docstring takes."""
    if ast.get_docstring(node) is None:
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def module_lines(source: str) -> int:
    """Count a module's lines without those of its docstrings."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, WITH_DOCSTRING)]
    return len(source.splitlines()) - sum(map(docstring_lines, nodes))


def long_functions(source: str, limit: int) -> Iterator[str]:
    """Yield name and length of each function whose lines, its own docstring apart, are more than ``limit``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1 - docstring_lines(node)
            if lines > limit:
                yield f"{node.name} has {lines} lines"


def test_modules_are_short():
    limits = [(path, MODULE_LINES) for path in python_files(*CODE_FOLDERS)]
    limits += [(path, TEST_MODULE_LINES) for path in python_files("tests")]
    sizes = {path: module_lines(path.read_text(encoding="utf-8")) for path, _ in limits}
    assert not [
        f"{name_of(path)} has {sizes[path]} lines, at most {limit}" for path, limit in limits if sizes[path] > limit
    ]


def test_docstrings_do_not_count_as_lines():
    assert module_lines('"""One.\n\nTwo.\n"""\nx = 1\n\ndef f():\n    """Three."""\n    return 1\n') == 4


def test_functions_are_short():
    files = python_files(*CODE_FOLDERS, "tests")
    found = [f"{name_of(path)}: {line}" for path in files for line in long_functions(path.read_text(), FUNCTION_LINES)]
    assert not found, f"at most {FUNCTION_LINES} lines a function"


def test_a_planted_long_function_is_found():
    body = "".join(f"    x{i} = {i}\n" for i in range(10))
    assert list(long_functions("def f():\n" + body, 10)) == ["f has 11 lines"]
    assert not list(long_functions("def f():\n" + body, 11))


def words_in(path: Path, words: tuple[str, ...]) -> list[str]:
    data = path.read_bytes()
    return [word for word in words if word.encode() in data]


def test_no_registry_host_and_no_path_of_one_machine_is_named():
    found = {name_of(path): words_in(path, FORBIDDEN_WORDS) for path in tracked_files()}
    assert not {name: words for name, words in found.items() if words}


def test_a_planted_host_is_found(tmp_path: Path):
    (tmp_path / "pip.conf").write_text("index-url = https://" + FORBIDDEN_WORDS[0] + "/simple")
    assert words_in(tmp_path / "pip.conf", FORBIDDEN_WORDS) == [FORBIDDEN_WORDS[0]]


def test_nothing_is_left_to_do_later():
    marks = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|X{3})" + r"\b")  # mktemp's longer row of X is no mark
    found = {name_of(path): marks.findall(path.read_text()) for path in python_files(*CODE_FOLDERS, "tests")}
    assert not {name: words for name, words in found.items() if words}


@pytest.mark.parametrize("script", ["scripts/find_python.sh", "scripts/system_packages.sh", ".ci/run", "postBuild"])
def test_scripts_are_executable_and_stop_on_errors(script: str):
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    if path.suffix != ".sh":
        assert "set -euo pipefail" in path.read_text()

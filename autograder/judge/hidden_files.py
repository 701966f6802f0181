"""Refuse an instructor's JSON that no check could read: broken syntax, a name that no check has, a wrong field."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from autograder import paths
from autograder.judge.cases import Cases
from autograder.judge.check_items import run_pytest
from autograder.judge.judge_errors import JudgeError

FORM = 'a table with a list of cases for each name, as in {"head_dim": [{"sizes": {…}}]}'
NUM_EXAMPLES = 12


def syntax_problems(files: Mapping[str, str]) -> list[str]:
    """Return what keeps an instructor's JSON files from being read at all, one line for each file."""
    found = []
    for name, text in files.items():
        if name.endswith(".json"):
            try:
                content = json.loads(text)
            except json.JSONDecodeError as error:
                place = f"line {error.lineno}, column {error.colno}: {error.msg}"
                found.append(f"{name} isn't JSON ({place}). Expected {FORM}. Correct this place.")
                continue
            if type(content) is not dict or any(type(each) is not list for each in content.values()):
                found.append(f"{name} has another form. Expected {FORM}.")
    return found


class _Collector:
    """A pytest plugin that notes the cases of all check files, without running a check."""

    def __init__(self) -> None:
        self.found: dict[str, Cases] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Note what a check is parametrized with."""
        for mark in metafunc.definition.iter_markers("parametrize"):
            if isinstance(mark.args[1], Cases):
                self.found[mark.args[1].name] = mark.args[1]


def all_cases() -> dict[str, Cases]:
    """Return the cases of all checks by name."""
    collector = _Collector()
    code = run_pytest([str(paths.checks_root())], collector, "--collect-only")
    if code != pytest.ExitCode.OK:
        raise JudgeError(f"the check files in {paths.checks_root()} can't be read: pytest ended with {code!s}")
    return collector.found


def problems(files: Mapping[str, str], known: Mapping[str, Cases]) -> list[str]:
    """Return what is wrong with an instructor's hidden cases: file, field, what was expected; a line for each.

    Args:
        files: the text of each file of the instructor's folder, by name; all of them can be read as JSON.
        known: the cases of all checks.
    """
    found = []
    for file, text in files.items():
        for name, listed in json.loads(text).items() if file.endswith(".json") else ():
            if name not in known:
                found.append(f"{file}: no check has cases of the name {name!r}{_meant(name, known)}")
                continue
            check = known[name]
            examples = [{field: case[field] for field in case if field != "id"} for case in check.visible]
            examples += [dict(values) for seed in range(NUM_EXAMPLES) for values in check.drawn(str(seed))]
            for number, values in enumerate(listed, 1):
                where = f"{file}: {name}, case {number}"
                given = (
                    {field: value for field, value in values.items() if field not in ("id", "note")}
                    if type(values) is dict
                    else values
                )
                found += [f"{where}{problem}" for problem in _differences("", given, examples)]
    return found


def _differences(where: str, value: Any, examples: Sequence[Any]) -> list[str]:
    """Return how a value differs in form from all examples."""
    if not all(isinstance(example, dict) for example in examples):
        kinds = {_kind(example) for example in examples}
        if _kind(value) in kinds or (_kind(value) == "a whole number" and "a number with a point" in kinds):
            return []
        return [
            f"{where} is {json.dumps(value)}. Expected {' or '.join(sorted(kinds))}, such as {json.dumps(examples[0])}."
        ]
    if type(value) is not dict:
        return [f"{where} is {json.dumps(value)}. Expected a table such as {json.dumps(examples[0])}."]
    needed = set.intersection(*[set(example) for example in examples])
    known = set.union(*[set(example) for example in examples])
    extra = value.keys() - known if needed == known or not where else set()  # a model's config may have any field
    found = [f"{where} lacks {field!r}{_meant(field, value.keys() - known)}" for field in sorted(needed - value.keys())]
    found += [f"{where} has an unknown field {field!r}{_meant(field, known)}" for field in sorted(extra)]
    for field in sorted(known & value.keys()):
        found += _differences(
            f"{where}, field {field!r}", value[field], [example[field] for example in examples if field in example]
        )
    return found


def _kind(value: Any) -> str:
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number with a point",
        str: "a text",
        list: "a list",
    }
    return {tuple: "a list", dict: "a table", type(None): "null"}.get(type(value)) or names.get(
        type(value), "something else"
    )


def _meant(name: str, known: Any) -> str:
    """Return what a name was probably meant to be, and what could be meant."""
    close = difflib.get_close_matches(name, sorted(known), 1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f". Expected one of {', '.join(sorted(known))}." if known else "."

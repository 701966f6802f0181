"""How pytest is run over the check files, and what such a run wants to know of a test."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence

import pytest

from autograder import paths
from autograder.judge.cases import Case


def part_id(item: pytest.Item) -> str:
    """Return the id of the part that a test belongs to; empty where it has none."""
    marker = item.get_closest_marker("part")
    return str(marker.args[0]) if marker and marker.args else ""


def short_id(item: pytest.Item) -> str:
    """Return what a test is called in a report: its file's name and its own."""
    return f"{item.path.stem}::{item.name}"


def is_hidden(item: pytest.Item) -> bool:
    """Tell whether a test has a hidden case."""
    return bool(origin_of(item))


def origin_of(item: pytest.Item) -> str:
    """Return where a test's hidden case comes from; empty for a test without one."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec is not None else ()
    return next((value.origin for value in values if isinstance(value, Case)), "")


def run_pytest(files: Sequence[str], plugin: object, *more: str) -> int | pytest.ExitCode:
    """Run pytest over check files with a plugin of ours and next to nothing else, and return its exit code."""
    root = str(paths.checks_root())
    options = ["-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:logging", "-p", "no:unraisableexception"]
    options += ["-p", "no:threadexception", "-p", "no:warnings", "-p", "no:junitxml", "-p", "no:faulthandler"]
    options += ["-c", os.devnull, "--rootdir", root, "--confcutdir", root, "--import-mode=importlib", "--capture=sys"]
    options += ["-o", "markers=part(id, weight=1, gist=False): a part's check", *more]
    with _quiet(), _environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"):
        return pytest.main([*options, *files], plugins=[plugin])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

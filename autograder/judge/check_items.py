"""What a run of the checks wants to know of a test: its part, its name in reports, whether its case is hidden."""

from __future__ import annotations

import pytest

from autograder.judge.cases import Case

# What is said of a test that fails on a hidden case, by its status.
HIDDEN_WORDS = {
    "time_limit": "it takes too long",
    "memory_limit": "it takes too much memory",
    "output_limit": "it prints or writes too much",
    "crashed": "it crashes",
    "refused": "its answer can't be accepted",
}


def part_id(item: pytest.Item) -> str:
    """Return the id of the part that a test belongs to; empty where it has none."""
    marker = item.get_closest_marker("part")
    return str(marker.args[0]) if marker and marker.args else ""


def short_id(item: pytest.Item) -> str:
    """Return what a test is called in a report: its file's name and its own."""
    return f"{item.path.stem}::{item.name}"


def is_hidden(item: pytest.Item) -> bool:
    """Tell whether a test has a hidden case."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(isinstance(v, Case) and v.hidden for v in callspec.params.values())

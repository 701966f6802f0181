"""What every test of the project shares: one thread, fixed seeds, the repository's root, no network."""

import os
import platform
import random
import sys
from collections.abc import Iterator
from pathlib import Path

# Before any test imports torch or transformers: the processes of pytest -n share two cores, and no test may ask a hub.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import pytest
import torch

from autograder.student.doctor import find_chromium

REPOSITORY = Path(__file__).resolve().parent.parent

torch.set_num_threads(1)
# A command that a test runs is typed by a person, not called by the `make test` that may run the tests.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
    os.environ.pop(name, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what can't run on this kind of machine: without a GPU, or not on Linux; pytest counts it as deselected."""
    lacking = {"gpu": not torch.cuda.is_available(), "sandbox": platform.system() != "Linux"}
    marks = [mark for mark, lacks in lacking.items() if lacks]
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in marks)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="module", autouse=True)
def no_hidden_cases_left_behind() -> Iterator[None]:
    """End the judge that a file's tests used for grading in this process: its hidden cases would count in the next file."""
    yield
    if "autograder.classroom.grading" in sys.modules:
        sys.modules["autograder.classroom.grading"].close()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the clone."""
    return REPOSITORY


CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """A headless Chromium for one test file; Playwright's loop must have ended before the next file starts its own."""
    path = find_chromium()
    if path is None:
        pytest.fail("Chromium is missing; install the system package chromium, or run pytest -m 'not browser'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Start every test from the same random state, in whatever order they run."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)

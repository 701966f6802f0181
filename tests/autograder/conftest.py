"""Warm workers and trees for the tests of the autograder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.judge.judge import Judge, warm_up
from autograder.worker import sandbox
from autograder.worker.client import Worker


@pytest.fixture(scope="session")
def plain_worker() -> Iterator[Worker]:
    with Worker() as worker:
        worker.start()
        yield worker


@pytest.fixture(scope="session")
def boxed_worker() -> Iterator[Worker]:
    assert sandbox.problem() is None, "these tests need bubblewrap (apt install bubblewrap)"
    with Worker(sandboxed=True) as worker:
        worker.start()
        yield worker


@pytest.fixture(params=["plain", pytest.param("boxed", marks=pytest.mark.sandbox)])
def worker(request: pytest.FixtureRequest) -> Worker:
    """A worker without and with the sandbox, in turn."""
    return request.getfixturevalue(f"{request.param}_worker")


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge() as made:
        warm_up()
        yield made

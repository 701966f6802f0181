"""The ``subject`` fixture of the check files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autograder import paths
from autograder.judge.checking import Subject
from autograder.parts import GRADED_MODULES
from autograder.worker.client import Worker

JUDGE: pytest.StashKey[Any] = pytest.StashKey()


@pytest.fixture(scope="session")
def subject_worker(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The reference in a worker of its own, for a plain pytest run; None under the autograder."""
    if request.config.stash.get(JUDGE, None) is not None:
        yield None
        return
    with Worker() as worker:
        worker.start()
        files = {module: (paths.reference_root() / module).read_text() for module in GRADED_MODULES}
        tree = worker.open(files)
        yield worker, tree
        tree.close()


@pytest.fixture
def subject(request: pytest.FixtureRequest, subject_worker: Any) -> Iterator[Subject]:
    """The tree under judgement."""
    judge = request.config.stash.get(JUDGE, None)
    if judge is not None:
        given = judge.subject_of(request.node)
    else:
        worker, tree = subject_worker
        given = Subject(tree, worker)
    yield given
    given.clean()

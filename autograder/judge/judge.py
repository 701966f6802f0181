"""Judge parts: run the check files in this trusted process, ask the worker, weigh the answers.

One engine for the notebook's ``check``, the shell, Validate, nbgrader and ``grade``. This process never imports a
student's tree.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from autograder.judge.cases import HiddenCases
from autograder.judge.check_run import CheckRun
from autograder.judge.diagnosis import name_trap
from autograder.judge.results import PartResult, summarize, without_points, worth_nothing
from autograder.parts import Part
from autograder.text.work import Work
from autograder.worker.client import Worker
from autograder.worker.limits import Limits

# What the check files need, and what takes a process seconds to import.
NEEDED_BY_CHECKS = ("transformers", "autograder.judge.checking")


class Judge:
    """Judge one student's work after another with one warm worker.

    Args:
        sandboxed: whether student code runs inside bubblewrap.
        limits: what one probe may use.
        hidden: an instructor's hidden cases; None where students check their own work.
    """

    def __init__(
        self, *, sandboxed: bool = False, limits: Limits | None = None, hidden: HiddenCases | None = None
    ) -> None:
        self.worker = Worker(sandboxed=sandboxed)
        self.hidden = hidden
        self.limits = limits or Limits()

    def __enter__(self) -> Judge:
        self.worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.close()

    def judge(self, work: Work, parts: Sequence[Part]) -> list[PartResult]:
        """Judge some parts of a student's work, each in its own tree.

        Raises:
            JudgeError: a check file is broken or the worker can't work.
        """
        return self.run(work, parts)[0]

    def run(self, work: Work, parts: Sequence[Part]) -> tuple[list[PartResult], dict[str, dict[str, list[str]]]]:
        """Judge, and also return the digests of the answers: part id -> test id -> digests."""
        run = CheckRun(self.worker, self.limits, work, parts, self.hidden)
        try:
            run.execute()
        finally:
            run.close_trees()
        digests = {part.id: run.digests.get(part.id, {}) for part in parts}
        return [self._result(part, run, work) for part in parts], digests

    def _result(self, part: Part, run: CheckRun, work: Work) -> PartResult:
        tests = run.results.get(part.id, [])
        digests = run.digests.get(part.id, {})
        trap = ""
        if any(test.status != "passed" for test in tests):
            trap = name_trap(part.id, digests)
        result = summarize(part.id, part.points, tests, trap=trap, helped=part.id in work.helped)
        return without_points(result, reason) if (reason := worth_nothing(tests, digests)) else result


def warm_up() -> None:
    """Import what the check files need, so that the first check is quick."""
    import torch

    torch.set_num_threads(1)
    for name in NEEDED_BY_CHECKS:
        importlib.import_module(name)


def reference_work(parts: Sequence[Part]) -> Work:
    """Return the reference's own parts as if a student had written them."""
    from autograder.text import reference

    return Work({part.id: reference.piece(part.id) for part in parts if not part.together})

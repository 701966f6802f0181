"""One pytest session over the wanted parts, and its plugin: which tests run, on which tree, and what they showed."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence

import pytest

from autograder import paths
from autograder.judge.cases import Cases, HiddenCases
from autograder.judge.check_items import is_hidden, origin_of, part_id, run_pytest, short_id
from autograder.judge.checking import CheckFailed, Subject
from autograder.judge.judge_errors import JudgeError
from autograder.judge.questions import in_words
from autograder.judge.results import TestResult
from autograder.judge.subject import JUDGE
from autograder.parts import BY_ID, Part, parts_judged_with
from autograder.text.sources import lines_of
from autograder.text.trees import obstacle_of, tree_for
from autograder.text.work import Work
from autograder.worker.client import Tree, Worker, WorkerError
from autograder.worker.limits import Limits
from autograder.worker.outcome import clean

MAX_SLOW_TESTS = 2
MAX_PART_S = 180.0  # right parts take a few seconds
_ODD_ANSWER = (KeyError, TypeError, IndexError, AttributeError, ValueError, RuntimeError, ArithmeticError)


class CheckRun:
    """One pytest session over some parts of one student's work; also its plugin.

    Args:
        worker: where student code runs.
        limits: what one question may use.
        work: the student's work.
        parts: those to be judged.
        hidden: an instructor's hidden cases; None for a student's own run.

    Attributes:
        results: part id -> what its tests showed.
        digests: part id -> test id -> digests of the answers.
    """

    def __init__(
        self, worker: Worker, limits: Limits, work: Work, parts: Sequence[Part], hidden: HiddenCases | None = None
    ) -> None:
        self.worker = worker
        self.hidden = hidden
        self.limits = limits
        self.work = work
        self.order = {part.id: number for number, part in enumerate(parts)}
        self.test_order: dict[str, int] = {}
        self.results: dict[str, list[TestResult]] = {}
        self.digests: dict[str, dict[str, list[str]]] = {}
        self.faults: list[str] = []
        texts = (*work.pieces.values(), *work.helpers.values())
        self._own_lines = frozenset(line.strip() for text in texts for line in lines_of(text))
        self._trees: dict[str, Tree] = {}
        self._subject: Subject | None = None
        self._obstacles: dict[str, tuple[str, str]] = {}
        self._num_left: Counter[str] = Counter()
        self._num_slow: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def execute(self) -> None:
        """Run the session.

        Raises:
            JudgeError: a check file is broken or the worker can't work.
        """
        code = run_pytest(self._check_files(), self)
        for tests in self.results.values():
            tests.sort(key=lambda test: self.test_order[test.id])
        if self.faults:
            raise JudgeError("; ".join(self.faults[:3]))
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise JudgeError(f"pytest ended with {code!s} on {paths.checks_root()}")

    def _check_files(self) -> list[str]:
        """Return the check files that name a wanted part: importing all of them takes as long as a chapter's answers."""
        files = sorted(paths.checks_root().rglob("test_*.py"))
        wanted = [f'part("{name}"' for name in self.order]
        found = [str(path) for path in files if any(mark in path.read_text(encoding="utf-8") for mark in wanted)]
        return found or [str(paths.checks_root())]

    @pytest.hookimpl
    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell the ``subject`` fixture who judges."""
        config.stash[JUDGE] = self

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Add the hidden cases to a check's visible ones, before pytest makes a test of each."""
        marks = metafunc.definition.own_markers  # of this run alone: the check file's own marks stay as they are
        for number, mark in enumerate(marks):
            if self.hidden is not None and mark.name == "parametrize" and isinstance(mark.args[1], Cases):
                found = mark.args[1].with_hidden(self.hidden)
                marks[number] = pytest.mark.parametrize(mark.args[0], found, **mark.kwargs).mark

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a check file that can't be loaded."""
        if report.failed:
            self.faults.append(f"the check file {report.nodeid} can't be loaded: {str(report.longrepr)[-600:]}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the wanted parts that can be run at all."""
        # Nobody reads what pytest writes about a failed test, for 15 ms; of a check file that can't be loaded, we do.
        config.option.tbstyle = "no"
        wanted = [item for item in items if part_id(item) in self.order]
        wanted.sort(key=lambda item: self.order[part_id(item)])  # stable: within a part, the files' order
        self.test_order = {short_id(item): number for number, item in enumerate(wanted)}
        items[:] = [item for item in wanted if not self._settled(item)]
        # No message may be shown of a run that began after a hidden case was asked: its answers could tell of that case.
        items.sort(key=is_hidden)
        self._num_left = Counter(map(part_id, items))

    def _settled(self, item: pytest.Item) -> bool:
        """Give a test its result without running it, where the part can't be judged at all."""
        name = part_id(item)
        if name not in self._obstacles:  # the same for each of the part's tests
            self._obstacles[name] = obstacle_of(self.work, BY_ID[name])
        status, reason = self._obstacles[name]
        if reason:
            self._note(item, status, reason, "")
        return bool(reason)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Leave out the rest of a part that ran into the limit on time again and again, or took very long in all."""
        part = part_id(pyfuncitem)
        if self._num_slow[part] >= MAX_SLOW_TESTS or self._seconds[part] > MAX_PART_S:
            raise CheckFailed("not tried: this part took too long in the tests before", status="time_limit")
        started = time.monotonic()
        try:
            return (yield)
        finally:
            self._seconds[part] += time.monotonic() - started

    def subject_of(self, item: pytest.Item) -> Subject:
        """Return the tree of the test's part, as the ``subject`` fixture gives it."""
        part = BY_ID[part_id(item)]
        tree = self._trees.get(part.id)
        if tree is None or tree.is_lost:
            modules = sorted({each.module for each in (parts_judged_with(part) if part.together else [part])})
            tree = self._trees[part.id] = self.worker.open(tree_for(self.work, part), modules)
        self._subject = Subject(tree, self.worker, self.limits, self._own_lines)
        return self._subject

    def close_trees(self) -> None:
        """Give all open trees up."""
        while self._trees:
            self._trees.popitem()[1].close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Read what a test showed."""
        report = yield
        part = part_id(item)
        if call.when == "call":
            self._read(item, call)
            self.digests.setdefault(part, {})[short_id(item)] = list(self._subject.digests) if self._subject else []
            self._subject = None
        elif call.excinfo is not None:
            self.faults.append(f"{item.nodeid} broke in its {call.when}: {call.excinfo.value!r}")
        if call.when == "teardown":
            self._num_left[part] -= 1
            if not self._num_left[part] and part in self._trees:
                self._trees.pop(part).close()
        return report  # type: ignore[return-value]

    def _read(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if error is None:
            self._note(item, "passed", "", "")
        elif isinstance(error, CheckFailed):
            text = str(CheckFailed(error.message, error.expected, error.came))
            self._note(item, error.status, text, error.hint)
        elif isinstance(error, WorkerError):
            self.faults.append(str(error))
        elif isinstance(error, AssertionError):
            self._note(item, "failed", str(error).split("\nassert ")[0], "")
        elif isinstance(error, _ODD_ANSWER):
            text = f"the answer hasn't the form that was expected ({type(error).__name__}: {str(error)[:200]})"
            self._note(item, "failed", text, "")
        else:
            self.faults.append(f"{item.nodeid} raised {error!r}")

    def _note(self, item: pytest.Item, status: str, message: str, hint: str) -> None:
        function = getattr(item, "function", None)
        title = (getattr(function, "__doc__", None) or item.name).strip().splitlines()[0]
        self._num_slow[part_id(item)] += status == "time_limit"
        hidden = is_hidden(item)
        if hidden and self.hidden is not None and self.hidden.shown:
            title = f"{title} Hidden case: {origin_of(item)}."
        elif hidden and status != "passed" and not self._obstacles[part_id(item)][1]:
            # All else could tell of the case: the student's code chooses how it fails.
            status, message, hint = "failed", "it fails on a hidden case", ""
        marker = item.get_closest_marker("part")
        facts = marker.kwargs if marker else {}
        weight, gist = float(facts.get("weight", 1)), bool(facts.get("gist"))
        texts = clean(message, 3000), clean(hint, 1000)
        questions = self._subject.questions if self._subject is not None and status not in ("passed", "not_written") else []
        is_open = not hidden or (self.hidden is not None and self.hidden.shown)
        asked = clean(in_words(*questions[-1]), 600) if questions and is_open else ""
        result = TestResult(short_id(item), status, title, *texts, weight, hidden, gist, asked=asked)
        self.results.setdefault(part_id(item), []).append(result)

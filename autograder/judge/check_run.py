"""One pytest session over the wanted parts, and its plugin: which tests run, on which tree, and what they showed."""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence

import pytest

from autograder import paths
from autograder.judge.cases import Cases, HiddenCases
from autograder.judge.check_items import HIDDEN_WORDS, is_hidden, origin_of, part_id, run_pytest, short_id
from autograder.judge.checking import CheckFailed, Subject
from autograder.judge.judge_errors import JudgeError
from autograder.judge.questions import in_words
from autograder.judge.results import TestResult
from autograder.judge.subject import JUDGE
from autograder.parts import BY_ID, Part
from autograder.text.sources import lines_of
from autograder.text.trees import obstacle_of, tree_for
from autograder.text.work import Work
from autograder.worker.client import Tree, Worker, WorkerError
from autograder.worker.limits import Limits
from autograder.worker.outcome import clean

MAX_SLOW_TESTS = 2
MAX_PART_S = 180.0  # right parts take a few seconds, with each question by itself
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
        self._open: tuple[str, Tree] | None = None
        self._subject: Subject | None = None
        self._doubtful: list[pytest.Item] = []
        self._repeating = False
        self._obstacles: dict[str, tuple[str, str]] = {}
        self._num_slow: Counter[tuple[str, bool]] = Counter()
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
        # Stable: within a part, the files' order, but hidden cases last. A tree may keep what it was asked (its processes
        # can share memory), so no message may be shown once it knows a hidden case.
        wanted.sort(key=self._group)
        self.test_order = {short_id(item): number for number, item in enumerate(wanted)}
        items[:] = [item for item in wanted if not self._settled(item)]

    def _group(self, item: pytest.Item) -> tuple[int, bool]:
        return self.order[part_id(item)], is_hidden(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests, and repeat those of a group that aren't passed, with each question by itself.

        A conversation never counts against a student, nor for one: who passes a test by itself that wasn't passed before
        has all of the part's tests repeated. To repeat them at the end keeps the conversation for the others.
        """
        if session.testsfailed:
            return None  # a check file can't be loaded, and pytest ends here
        for part, items in itertools.groupby(session.items, key=part_id):
            tests = list(items)
            are_steady = [self._run_group(part, list(group)) for _, group in itertools.groupby(tests, key=is_hidden)]
            if not all(
                are_steady
            ):  # it answers otherwise when it is asked otherwise: only questions by themselves count
                self.close_tree()
                self.results.pop(part, None)
                self.digests.pop(part, None)
                self._num_slow[part, True] = 0
                self._run(tests, repeating=True)
        return True

    def _run_group(self, part: str, items: list[pytest.Item]) -> bool:
        """Run tests in a conversation, and those that aren't passed by themselves; return whether that made no difference."""
        self._run(items)
        again, self._doubtful = self._doubtful, []
        self._run(again, repeating=True)
        repeated = {short_id(item) for item in again}
        return all(test.status != "passed" for test in self.results.get(part, []) if test.id in repeated)

    def _run(self, items: list[pytest.Item], *, repeating: bool = False) -> None:
        self._repeating = repeating
        for item, following in zip(items, [*items[1:], None], strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self._repeating = False

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
        """Note a test to be repeated: it isn't passed, and not all of its questions were asked by themselves.

        The rest of a part that ran into the limit on time again and again, or took very long in all, is left out.
        """
        part = part_id(pyfuncitem)
        num_slow = self._num_slow[part, True] + (0 if self._repeating else self._num_slow[part, False])
        if num_slow >= MAX_SLOW_TESTS or self._seconds[part] > MAX_PART_S:
            raise CheckFailed("not tried: this part took too long in the tests before", status="time_limit")
        started = time.monotonic()
        try:
            return (yield)
        except (AssertionError, *_ODD_ANSWER):
            if self._subject is None or self._subject.alone:
                raise
        finally:
            self._seconds[part] += time.monotonic() - started
        self._doubtful.append(pyfuncitem)
        return True

    def subject_of(self, item: pytest.Item) -> Subject:
        """Return the tree of the test's part, as the ``subject`` fixture gives it."""
        part = BY_ID[part_id(item)]
        if self._open is None or self._open[0] != part.id:
            self.close_tree()
            self._open = (part.id, self.worker.open(tree_for(self.work, part)))
        conversation = "" if self._repeating else part.id
        self._subject = Subject(self._open[1], self.worker, self.limits, conversation, self._own_lines)
        return self._subject

    def close_tree(self) -> None:
        """Give the open tree up."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Read what a test showed."""
        report = yield
        if call.when == "call":
            if item not in self._doubtful:
                self._read(item, call)
                digests = list(self._subject.digests) if self._subject else []
                self.digests.setdefault(part_id(item), {})[short_id(item)] = digests
            self._subject = None
        elif call.excinfo is not None:
            self.faults.append(f"{item.nodeid} broke in its {call.when}: {call.excinfo.value!r}")
        return report  # type: ignore[return-value]

    def _read(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        error = call.excinfo.value if call.excinfo is not None else None
        if error is None:
            self._note(item, "passed", "", "")
        elif isinstance(error, CheckFailed):
            if self._lost(error):
                self.close_tree()
            text = str(CheckFailed(error.message, error.expected, error.came))
            if error.status == "not_written" and is_hidden(item):
                text = "this isn't written yet"  # the message names a function, and names can be made of what was asked
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

    def _lost(self, error: CheckFailed) -> bool:
        return (error.status == "crashed" and "lost" in error.message) or "no answer after" in error.message

    def _note(self, item: pytest.Item, status: str, message: str, hint: str) -> None:
        function = getattr(item, "function", None)
        title = (getattr(function, "__doc__", None) or item.name).strip().splitlines()[0]
        hidden = is_hidden(item)
        if hidden and self.hidden is not None and self.hidden.shown:
            title = f"{title} Hidden case: {origin_of(item)}."
        elif hidden and status not in ("passed", "not_written"):
            message = f"{HIDDEN_WORDS.get(status, 'it fails')} on a hidden case"
            constants = getattr(getattr(function, "__code__", None), "co_consts", ())
            hint = hint if hint in constants else ""
        marker = item.get_closest_marker("part")
        facts = marker.kwargs if marker else {}
        weight, gist = float(facts.get("weight", 1)), bool(facts.get("gist"))
        texts = clean(message, 3000), clean(hint, 1000)
        questions = self._subject.questions if self._subject is not None and status not in ("passed", "not_written") else []
        is_open = not hidden or (self.hidden is not None and self.hidden.shown)
        asked = clean(in_words(*questions[-1]), 600) if questions and is_open else ""
        result = TestResult(short_id(item), status, title, *texts, weight, hidden, gist, asked=asked)
        self.results.setdefault(part_id(item), []).append(result)
        self._num_slow[part_id(item), self._repeating] += status == "time_limit"

"""What judging gives: plain dataclasses, and their form in reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

GIST_SHARE = 0.5
MIN_COST = 0.15

STATUSES = (
    "passed",
    "failed",
    "not_written",
    "time_limit",
    "memory_limit",
    "output_limit",
    "crashed",
    "refused",
)
# What a part with several kinds of failure is called, the gravest first.
_GRAVITY = ("refused", "crashed", "memory_limit", "time_limit", "output_limit", "failed", "not_written")


@dataclass(frozen=True)
class TestResult:
    """One test of one part.

    Attributes:
        id: ``file::test[case]``.
        status: one of ``STATUSES``.
        title: the behaviour in words.
        message: why it isn't passed, free of anything hidden; empty when passed.
        hint: the concept to think of.
        weight: what its check weighs in the part, all cases together.
        hidden: whether its case is hidden.
        gist: whether its check is about the behaviour that the part exists for.
        cost: the points that the part loses because it isn't passed.
        asked: the question that came before the failure, in few words; empty for a hidden case.
    """

    __test__ = False

    id: str
    status: str
    title: str
    message: str = ""
    hint: str = ""
    weight: float = 1.0
    hidden: bool = False
    gist: bool = False
    cost: float = 0.0
    asked: str = ""

    @property
    def check(self) -> str:
        """The check that it is a case of."""
        return self.id.partition("[")[0]

    @property
    def told(self) -> str:
        """What is told of its failure: the question first, then the message."""
        return f"asked:    {self.asked}\n{self.message}" if self.asked else self.message

    @property
    def case(self) -> str:
        """The name of the case that the test is about; empty for a test without cases, and for every hidden case."""
        return "" if self.hidden else self.id.partition("[")[2].removesuffix("]")


@dataclass(frozen=True)
class PartResult:
    """What a part is worth.

    Attributes:
        id: the part's id.
        points: marks in [0, max_points]: full marks less what the tests that aren't passed cost.
        max_points: full marks.
        status: ``passed`` when every test is, else the gravest of the others.
        message: one line for a person.
        tests: every test, in the order of the check files.
        trap: the known wrong solution that the answers equal, in words; empty where none does.
        helped: whether the provided version was used.
    """

    id: str
    points: float
    max_points: float
    status: str
    message: str
    tests: tuple[TestResult, ...] = ()
    trap: str = ""
    helped: bool = False

    def as_report(self) -> dict[str, Any]:
        """Return the part as reports have it: the fixed fields, then what we add."""
        tests = [
            {"id": test.id, "status": test.status, "message": "\n".join(filter(None, (test.told, test.hint)))}
            | ({"cost": test.cost} if test.cost else {})
            for test in self.tests
        ]
        report = {"id": self.id, "points": self.points, "max_points": self.max_points}
        report |= {"status": self.status, "message": self.message, "tests": tests}
        return report | ({"trap": self.trap} if self.trap else {}) | ({"helped": True} if self.helped else {})

    def as_plain(self) -> dict[str, Any]:
        """Return every field, as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> PartResult:
        """Build a result from what ``as_plain`` gave."""
        tests = tuple(TestResult(**test) for test in values["tests"])
        return cls(**{**values, "tests": tests})


def summarize(
    part_id: str, max_points: float, tests: list[TestResult], *, trap: str = "", helped: bool = False
) -> PartResult:
    """Weigh a part's tests."""
    passed = sum(test.status == "passed" for test in tests)
    tests = with_costs(tests, max_points)
    points = round(max_points - sum(test.cost for test in tests), 2)
    bad = [test for test in tests if test.status != "passed"]
    if not tests:
        return PartResult(
            part_id, 0.0, max_points, "refused", "this installation has no check of this part", helped=helped
        )
    if not bad:
        message = "all checks passed" if any(test.hidden for test in tests) else "all public checks passed"
        return PartResult(part_id, max_points, max_points, "passed", message, tuple(tests), helped=helped)
    status = next(word for word in _GRAVITY if any(test.status == word for test in bad))
    if status == "failed" and passed == 0 and any(test.status == "not_written" for test in bad):
        status = "not_written"
    first = next(test for test in bad if test.status == status or status == "not_written")
    message = f"{len(tests) - len(bad)} of {len(tests)} checks passed; first: {first.title}"
    if status == "not_written":
        message = first.message.splitlines()[0] if first.message else "not written yet"
    return PartResult(part_id, points, max_points, status, message, tuple(tests), trap, helped)


def with_costs(tests: Sequence[TestResult], max_points: float) -> list[TestResult]:
    """Return the tests with what each costs; in all, these are exactly the points that the part loses.

    At least half of the points hang on the part's gist. The other checks share the rest by weight; one that fails costs
    at least ``MIN_COST`` of the part, yet all of them together no more than their half. A check's cases share its points.
    """
    checks: dict[str, list[TestResult]] = {}
    for test in tests:
        checks.setdefault(test.check, []).append(test)
    total = sum(cases[0].weight for cases in checks.values())
    gist = sum(cases[0].weight for cases in checks.values() if cases[0].gist)
    half = max(GIST_SHARE, gist / total) if 0 < gist < total else 1.0
    lost: dict[str, float] = {}
    for is_gist, room in ((True, half), (False, 1 - half)) if gist else ((False, 1.0),):
        group = [cases for cases in checks.values() if cases[0].gist is is_gist]
        weight = sum(cases[0].weight for cases in group)
        costs: dict[str, float] = {}
        for cases in group:
            bad = [test for test in cases if test.status != "passed"]
            cost = max(MIN_COST, room * cases[0].weight / weight * len(bad) / len(cases))
            costs |= {test.id: cost / len(bad) for test in bad}
        scale = min(1.0, room / sum(costs.values())) if costs else 1.0
        lost |= {name: cost * scale for name, cost in costs.items()}
    cents = _in_whole_cents({name: 100 * max_points * share for name, share in lost.items()})
    return [replace(test, cost=cents.get(test.id, 0) / 100) for test in tests]


def _in_whole_cents(amounts: dict[str, float]) -> dict[str, int]:
    """Round amounts so that their sum is the rounded sum: those that lose most by it are rounded up."""
    cents = {name: math.floor(amount + 1e-9) for name, amount in amounts.items()}
    left = round(sum(amounts.values())) - sum(cents.values())
    for name in sorted(amounts, key=lambda name: cents[name] - amounts[name])[:left]:
        cents[name] += 1
    return cents


def worth_nothing(tests: list[TestResult], digests: dict[str, list[str]]) -> str:
    """Return why a part earns nothing although some of its tests pass; empty for work of the usual kind.

    Args:
        tests: the part's tests.
        digests: test id -> digests of the answers.
    """
    if all(test.status == "passed" for test in tests):
        return ""
    answers = [digest for each in digests.values() for digest in each]
    refused = any(test.status == "passed" and digests.get(test.id) for test in tests)
    if refused and all(digest.startswith("error:") for digest in answers):
        return "it raises an error whatever it is asked, so that refusing what is wrong shows nothing"
    drawn = {test.check for test in tests if test.hidden}
    cases = [test for test in tests if test.check in drawn]
    if cases and all((test.status == "passed") is not test.hidden for test in cases):
        return f"it answers the cases that are shown and none of the hidden ones ({cases[0].title})"
    return ""


def without_points(result: PartResult, reason: str) -> PartResult:
    """Return a result that earns nothing, for a reason that is shown."""
    tests = tuple(replace(test, cost=0.0) for test in result.tests)
    return replace(result, points=0.0, tests=tests, message=f"no points: {reason}; {result.message}")

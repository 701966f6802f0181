"""What judging gives: plain dataclasses, and their form in reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

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
        weight: its share of the part's points.
        hidden: whether its case is hidden.
    """

    __test__ = False

    id: str
    status: str
    title: str
    message: str = ""
    hint: str = ""
    weight: float = 1.0
    hidden: bool = False

    @property
    def case(self) -> str:
        """The name of the case that the test is about; empty for a test without cases, and for every hidden case."""
        return "" if self.hidden else self.id.partition("[")[2].removesuffix("]")


@dataclass(frozen=True)
class PartResult:
    """What a part is worth.

    Attributes:
        id: the part's id.
        points: marks in [0, max_points], by the weight of the passed tests.
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
            {"id": test.id, "status": test.status, "message": "\n".join(filter(None, (test.message, test.hint)))}
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
    total = sum(test.weight for test in tests)
    passed = sum(test.weight for test in tests if test.status == "passed")
    points = round(max_points * passed / total, 2) if total else 0.0
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
    for name in sorted({test.id.partition("[")[0] for test in tests if test.hidden}):
        cases = [test for test in tests if test.id.partition("[")[0] == name]
        visible, hidden = ([test for test in cases if test.hidden is each] for each in (False, True))
        if (
            visible
            and all(test.status == "passed" for test in visible)
            and all(test.status != "passed" for test in hidden)
        ):
            return f"it answers the cases that are shown and none of the hidden ones ({cases[0].title})"
    return ""


def without_points(result: PartResult, reason: str) -> PartResult:
    """Return a result that earns nothing, for a reason that is shown."""
    return replace(result, points=0.0, message=f"no points: {reason}; {result.message}")

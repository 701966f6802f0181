"""Grade one submission: the one function that local processes and a Dask cluster run alike."""

from __future__ import annotations

import atexit
import sys
from typing import Any

from autograder.classroom import hidden
from autograder.classroom.submissions import Submission
from autograder.judge.judge_errors import JudgeError
from autograder.parts import PARTS, is_whole_package, parts_of_chapter
from autograder.text.work import Work

_STATE: dict[str, Any] = {}


def payload_of(submission: Submission, sandboxed: bool, hidden_files: dict[str, str]) -> dict[str, Any]:
    """Return all that ``grade_one`` needs, as plain data."""
    wanted = PARTS if is_whole_package(submission.chapter) else parts_of_chapter(submission.chapter)
    ids = {part.id for part in wanted}
    return {
        "student": submission.student,
        "chapter": submission.chapter,
        "message": "; ".join(submission.notes),
        "work": submission.work.only(ids).as_plain(),
        "sandboxed": sandboxed,
        "hidden": hidden_files,
    }


def grade_one(payload: dict[str, Any]) -> dict[str, Any]:
    """Grade one submission with this process's warm judge, and return its row of the report.

    A submission on which the grader fails twice is refused with a row of its own, so that it can't stop a class.

    Raises:
        JudgeError: the grader can't judge the reference either: this installation is broken.
    """
    work = Work.from_plain(payload["work"])
    parts = parts_of_chapter(payload["chapter"])
    try:
        results = _judge(payload).judge(work, parts)
    except JudgeError:  # the machine may have been out of breath: once more, from the start
        close()
        try:
            results = _judge(payload).judge(work, parts)
        except JudgeError as fault:
            return _given_up(payload, fault)
    row = {"student": payload["student"], "chapter": payload["chapter"], "status": "graded", "message": payload["message"]}
    row["points"] = round(sum(result.points for result in results), 2)
    row["max_points"] = sum(result.max_points for result in results)
    row["parts"] = [result.as_report() for result in results]
    row["feedback"] = [result.as_plain() for result in results]
    return row


def _given_up(payload: dict[str, Any], fault: JudgeError) -> dict[str, Any]:
    """Return a refused row, unless the reference can't be judged either; what went wrong goes to the instructor only."""
    from autograder.judge.judge import reference_work

    close()
    parts = parts_of_chapter(payload["chapter"])
    _judge(payload).judge(reference_work(parts), parts[:1])
    print(f"{payload['student']}, {payload['chapter']}: the grader failed on it: {fault}", file=sys.stderr)
    return refused_row(
        Submission(payload["student"], payload["chapter"], refusal="the grader failed on it; please look at it")
    )


def refused_row(submission: Submission) -> dict[str, Any]:
    """Return the row of a submission that can't be graded."""
    full = sum(part.points for part in parts_of_chapter(submission.chapter))
    return {
        "student": submission.student,
        "chapter": submission.chapter,
        "status": "refused",
        "message": "; ".join([submission.refusal, *submission.notes]),
        "points": 0.0,
        "max_points": full,
        "parts": [],
        "feedback": [],
    }


def _judge(payload: dict[str, Any]) -> Any:
    return warm_judge(payload["sandboxed"], payload["hidden"])


def warm_judge(sandboxed: bool, hidden_files: dict[str, str]) -> Any:
    """Return the one judge of this process, warm for all submissions of a run with the same hidden cases."""
    from autograder.judge.cases import HiddenCases
    from autograder.judge.judge import Judge, warm_up

    key = (sandboxed, hidden.digest(hidden_files))
    if _STATE.get("key") != key:
        close()
        judge = Judge(sandboxed=sandboxed, hidden=HiddenCases(hidden_files))
        judge.worker.start()
        warm_up()
        _STATE.update(key=key, judge=judge)
        atexit.register(close)
    return _STATE["judge"]


def close() -> None:
    """End this process's judge."""
    judge = _STATE.pop("judge", None)
    _STATE.clear()
    if judge is not None:
        judge.worker.close()

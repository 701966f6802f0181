"""What came of a question: read on the trusted side, and trusting nothing that student code sent."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

from autograder.worker import plain
from autograder.worker.limits import Limits


@dataclass(frozen=True)
class Outcome:
    """What came of one question.

    Attributes:
        status: ``answered``, ``error`` (the student's code raised), ``time_limit``, ``memory_limit``,
            ``output_limit``, ``crashed`` or ``refused``.
        value: the answer, plain data; only with ``answered``.
        message: what happened, in words; empty with ``answered``.
        error: with ``error``: ``type``, ``bases``, ``message`` and ``frames`` (in the student's tree only).
        output: the beginning of what was printed.
        cpu_s: processor seconds used by the test's process, where it has ended.
        measured: with ``measure``, where the system tells: how far the question raised the memory in use above its start
            (``peak_kib``), the bytes that it read by system calls (``bytes_read``), and how many open files and
            threads it left (``files``, ``threads``), all seen from outside.
    """

    status: str
    value: Any = None
    message: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    cpu_s: float = 0.0
    measured: dict[str, int] = field(default_factory=dict)


def read_reply(header: dict[str, Any], blob: bytes, limits: Limits, number: int) -> Outcome:
    """Turn a keeper's reply into an outcome; ``blob`` is what student code sent, and is trusted in nothing."""
    facts: dict[str, Any] = {
        "output": clean(header["output"], 2000),
        "cpu_s": header["cpu_s"],
        "measured": header["measured"],
    }
    stopped = header["stopped"]
    if stopped == "answered":
        return _read_answer(blob, facts, number)
    if stopped == "ended":
        status, message = _how_it_ended(header["exit_status"], header["cpu_s"], limits)
        return Outcome(status, message=message, **facts)
    return Outcome(stopped, message=header["detail"], **facts)


def _read_answer(blob: bytes, facts: dict[str, Any], number: int) -> Outcome:
    try:
        header, tensors = plain.unframe(blob)
        if header.get("number") != number:
            raise plain.NotPlain("the code sent something of its own in the place of the answer")
        if type(header.get("answer")) is str:
            return Outcome("answered", plain.decode(header["answer"].encode(), tensors), **facts)
        error = _checked_error(header.get("error"))
    except (plain.NotPlain, UnicodeEncodeError) as problem:
        return Outcome("refused", message=clean(str(problem), 400), **facts)
    if error.pop("kind") == "not_plain":
        return Outcome("refused", message=error["message"], error=error, **facts)
    if error["type"] == "MemoryError":
        return Outcome("memory_limit", message="more memory was asked for than is allowed", error=error, **facts)
    return Outcome("error", message=f"{error['type']}: {error['message']}", error=error, **facts)


def _checked_error(error: Any) -> dict[str, Any]:
    if type(error) is not dict:
        raise plain.NotPlain("the answer has no known kind")
    frames = []
    sent = error.get("frames")
    for item in sent if type(sent) is list else []:
        if type(item) is dict and type(item.get("line")) is int:
            words = {name: clean(str(item.get(name, "")), 200) for name in ("file", "function", "text")}
            frames.append({**words, "line": item["line"]})
    bases = error.get("bases")
    return {
        "type": clean(str(error.get("type", "")), 100),
        "bases": [clean(base, 100) for base in bases if type(base) is str] if type(bases) is list else [],
        "message": clean(str(error.get("message", "")), 4000),
        "frames": frames[:20],
        "kind": error.get("kind"),
    }


def _how_it_ended(exit_status: int, cpu_s: float, limits: Limits) -> tuple[str, str]:
    if not os.WIFSIGNALED(exit_status):
        code = os.waitstatus_to_exitcode(exit_status)
        return "crashed", f"the process left early, with exit code {code}, without an answer"
    number = os.WTERMSIG(exit_status)
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu_s >= limits.cpu_s - 0.5):
        return "time_limit", f"more than {limits.cpu_s} s of processor time were used"
    if number == signal.SIGXFSZ:
        return "output_limit", f"a file grew over {limits.file_mib} MiB"
    return "crashed", f"the process was killed by signal {name}"


def clean(text: str, most: int) -> str:
    """Return text that is safe to store and show: no control characters but line ends and tabs, limited in length."""
    if len(text) <= most and text.isprintable():
        return text
    kept = "".join(char if char in "\n\t" or char.isprintable() else "\ufffd" for char in text[: most + 1])
    return kept if len(text) <= most else kept[:most] + " …"

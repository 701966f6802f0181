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
        cpu_s: processor seconds used.
        wall_s: seconds from question to answer.
        peak_kib: with ``measure``: how far resident memory rose above its start, as the kernel recorded it.
        files: the tree's own files that were imported.
        alone: whether it came from a process that had answered nothing before.
    """

    status: str
    value: Any = None
    message: str = ""
    error: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_kib: int = 0
    files: tuple[str, ...] = ()
    alone: bool = True


def read_reply(header: dict[str, Any], blob: bytes, limits: Limits, number: int) -> Outcome:
    """Turn a session's reply into an outcome; ``blob`` is what student code sent, and is trusted in nothing."""
    facts: dict[str, Any] = {
        "output": clean(header["output"], 2000),
        "cpu_s": header["cpu_s"],
        "wall_s": header["wall_s"],
        "peak_kib": header["peak_kib"],
        "alone": header["alone"],
    }
    ended = header["ended"]
    if ended == "answered":
        return _read_answer(blob, facts, number)
    if ended == "ended":
        status, message = _how_it_ended(header["exit_status"], header["cpu_s"], limits)
        return Outcome(status, message=message, **facts)
    status = "refused" if ended == "process_limit" else ended
    return Outcome(status, message=header["detail"], **facts)


def _read_answer(blob: bytes, facts: dict[str, Any], number: int) -> Outcome:
    try:
        header, tensors = plain.unframe(blob)
        if header.get("number") != number:
            raise plain.NotPlain("the code sent something of its own in the place of the answer")
        kind = header.get("kind")
        if kind == "answer" and type(header.get("answer")) is str:
            files = header.get("files")
            files = tuple(clean(file, 80) for file in files if type(file) is str) if type(files) is list else ()
            return Outcome("answered", plain.decode(header["answer"].encode(), tensors), files=files, **facts)
        error = _checked_error(header.get("error"))
    except (plain.NotPlain, UnicodeEncodeError) as problem:
        return Outcome("refused", message=clean(str(problem), 400), **facts)
    if kind == "memory":
        return Outcome("memory_limit", message="more memory was asked for than is allowed", error=error, **facts)
    message = error["message"] if error.get("not_plain") else f"{error['type']}: {error['message']}"
    return Outcome("refused" if error.get("not_plain") else "error", message=message, error=error, **facts)


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
        "not_plain": error.get("not_plain") is True,
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

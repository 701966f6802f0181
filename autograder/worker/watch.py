"""Watch a process that runs student code until it answers, ends or goes over a limit."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from autograder.worker import plain
from autograder.worker.limits import Limits
from autograder.worker.measures import descendants, usage

TICK_S = 0.02


@dataclass
class Seen:
    """What came of one question.

    Attributes:
        received: the answer, as it was sent.
        output: what was printed.
        stopped: why there is no more to wait for: ``answered``, ``ended``, ``abandoned``, ``bypassed`` or a limit.
        detail: the same in words, where ``stopped`` is a limit.
        exit_status: how the process ended, where it did.
        cpu_s: processor seconds of the process, where it ended.
        most_kib: the most that all processes of the tree were seen to hold together.
        measured: with a measured question: what was seen from outside.
    """

    received: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)
    stopped: str = ""
    detail: str = ""
    exit_status: int = 0
    cpu_s: float = 0.0
    most_kib: int = 0
    measured: dict[str, int] = field(default_factory=dict)


class Watch:
    """The view of a keeper, the parent of everything that student code starts, on one of its processes.

    Args:
        client_fd: when it becomes readable, the client has gone: it never speaks while it waits.
    """

    def __init__(self, client_fd: int) -> None:
        self.client_fd = client_fd
        self.started_kib = 0

    def until(
        self, done: Callable[[], bool | None], pid: int, channel: int, output: int, limits: Limits, seen: Seen
    ) -> None:
        """Fill ``seen`` until its ``stopped`` says why there is no more to wait for.

        Args:
            done: called when the channel has something; returns whether that is all, None when it was closed.
            pid: the process, as this namespace knows it.
            channel: where it speaks.
            output: where what it prints arrives.
            limits: what it may use from now on.
            seen: what came of it.
        """
        deadline = time.monotonic() + limits.wall_s
        poller = select.poll()
        for fd in (channel, output, self.client_fd):
            poller.register(fd, select.POLLIN | select.POLLHUP)
        while not seen.stopped:
            for fd, _ in poller.poll(TICK_S * 1000):
                if fd == self.client_fd:
                    seen.stopped = "abandoned"
                elif fd == output:
                    part = read_some(fd)
                    seen.output += part or b""
                    if part == b"":
                        poller.unregister(fd)
                elif (state := done()) is None:
                    poller.unregister(fd)
                    if sys.platform != "linux":  # where it is a grandchild, of whose end nobody tells
                        seen.stopped = "ended"
                elif state:
                    seen.stopped = "answered"
            if not seen.stopped:
                self._judge_progress(done, pid, limits, seen, deadline)

    def _judge_progress(
        self, done: Callable[[], bool | None], pid: int, limits: Limits, seen: Seen, deadline: float
    ) -> None:
        if (plain.frame_size(seen.received) or 0) > limits.answer_mib * 4 << 20:
            seen.stopped, seen.detail = "output_limit", f"the answer is larger than {limits.answer_mib} MiB"
        elif len(seen.output) > limits.output_kib << 10:
            seen.stopped, seen.detail = "output_limit", f"more than {limits.output_kib} KiB were printed"
        elif time.monotonic() > deadline:
            seen.stopped, seen.detail = "time_limit", f"no answer after {limits.wall_s:g} s"
        elif has_ended(pid):
            size = -1
            while len(seen.received) != size:  # what it said before it ended
                size = len(seen.received)
                if done():
                    seen.stopped = "answered"
            seen.stopped = seen.stopped or "ended"
        else:
            self._judge_usage(limits, seen)

    def _judge_usage(self, limits: Limits, seen: Seen) -> None:
        pids = descendants("self")  # those that the test's process has abandoned too
        held_kib, num_threads = usage(pids)
        seen.most_kib = max(seen.most_kib, held_kib)
        if len(pids) > limits.processes + 2 or num_threads > limits.processes + len(pids):
            seen.stopped = "refused"
            seen.detail = f"more than {limits.processes} processes or threads were started"
        elif held_kib - self.started_kib * len(pids) > limits.memory_mib << 10:
            seen.stopped = "memory_limit"
            seen.detail = f"more than {limits.memory_mib} MiB were in use"


def has_ended(pid: int) -> bool:
    """Tell whether a child has ended; on Linux also True for what isn't a child, and so not what it claims to be."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return sys.platform == "linux"


def read_some(fd: int) -> bytes | None:
    """Read from a descriptor without waiting: empty at its end, None when there is nothing now."""
    with suppress(BlockingIOError):
        try:
            return os.read(fd, 1 << 20)
        except ConnectionResetError:
            return b""
    return None

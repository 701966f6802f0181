"""Watch one question's process until it answers, ends or goes over a limit."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from pathlib import Path

from autograder.worker import plain
from autograder.worker.limits import Limits, descendants, status_kib, usage
from autograder.worker.pieces import Watched, read_rest, read_some

TICK_S = 0.02


class Watch:
    """The view of a session, the parent of everything that student code starts, on the process of a question.

    Args:
        isolated: whether the session lives in a process namespace of its own.
        client_fd: when it becomes readable, the client has gone: it never speaks while it waits.
    """

    def __init__(self, isolated: bool, client_fd: int) -> None:
        self.isolated = isolated
        self.client_fd = client_fd
        self._outer_pid = (0, 0)

    def until_answered(
        self, pid: int, answer_in: int, output_in: int, limits: Limits, watched: Watched, *, go_out: int = -1
    ) -> None:
        """Fill `watched` until its ``stopped`` says why there is no more to wait for.

        Args:
            pid: the question's process, as this namespace knows it.
            answer_in: where its answer arrives.
            output_in: where what it prints arrives.
            limits: what it may use from now on.
            watched: what came of it.
            go_out: with a measured question: here it is told to begin, once its memory was noted.
        """
        deadline = time.monotonic() + limits.wall_s
        poller = select.poll()
        for fd in (answer_in, output_in, self.client_fd):
            poller.register(fd, select.POLLIN | select.POLLHUP)
        own_kib = status_kib("self", "RssAnon")["RssAnon"]
        mark_pending = go_out >= 0
        while not watched.stopped:
            for fd, _ in poller.poll(TICK_S * 1000):
                if fd == self.client_fd:
                    watched.stopped = "abandoned"
                    continue
                part = read_some(fd, 1 << 20)
                if part == b"":
                    poller.unregister(fd)
                elif fd == output_in:
                    watched.output += part or b""
                else:
                    if mark_pending and part:
                        watched.start_kib = status_kib(self.outer_pid(pid), "VmRSS")["VmRSS"]
                        os.write(go_out, b"G")
                        part, mark_pending = part[1:], False
                    watched.received += part or b""
            self._judge_progress(pid, answer_in, limits, watched, deadline, own_kib)
        if go_out >= 0:
            own_peak_kib = status_kib(self.outer_pid(pid), "VmHWM")["VmHWM"] - watched.start_kib
            watched.peak_kib = max(own_peak_kib, watched.together_kib)

    def _judge_progress(
        self, pid: int, answer_in: int, limits: Limits, watched: Watched, deadline: float, own_kib: int
    ) -> None:
        size = plain.frame_size(watched.received)
        if size is not None and size > limits.answer_mib * 4 << 20:
            watched.stopped, watched.detail = "output_limit", f"the answer is larger than {limits.answer_mib} MiB"
        elif size is not None and len(watched.received) >= size:
            watched.stopped = "answered"
        elif len(watched.output) > limits.output_kib << 10:
            watched.stopped, watched.detail = "output_limit", f"more than {limits.output_kib} KiB were printed"
        elif time.monotonic() > deadline:
            watched.stopped, watched.detail = "time_limit", f"no answer after {limits.wall_s:g} s"
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            watched.stopped = "ended"
            read_rest(answer_in, watched.received, limits.answer_mib * 4 << 20)
        else:
            self._judge_usage(limits, watched, own_kib)

    def _judge_usage(self, limits: Limits, watched: Watched, own_kib: int) -> None:
        pids = descendants("self")  # those that the question's process has abandoned too
        sizes, num_threads = usage(pids[:500])
        held_kib = sum(max(0, size - own_kib) for size in sizes)
        if len(pids) > 1:  # what children hold counts as the question's own
            watched.together_kib = max(watched.together_kib, held_kib)
        if len(pids) > limits.processes + 1 or num_threads > limits.processes + len(pids):
            watched.stopped = "process_limit"
            watched.detail = f"more than {limits.processes} processes or threads were started"
        elif held_kib > limits.memory_mib << 10:
            watched.stopped = "memory_limit"
            watched.detail = f"more than {limits.memory_mib} MiB were in use"

    def outer_pid(self, pid: int) -> int:
        """Return the id by which ``/proc`` (mounted outside this namespace) knows a child."""
        if not self.isolated:
            return pid
        if self._outer_pid[0] != pid:
            self._outer_pid = (pid, self._find_outer_pid(pid))
        return self._outer_pid[1]

    def _find_outer_pid(self, pid: int) -> int:
        for number in descendants("self"):
            with suppress(OSError):
                for line in Path(f"/proc/{number}/status").read_text().splitlines():
                    if line.startswith("NSpid:") and line.split()[-1] == str(pid):
                        return number
        return 0

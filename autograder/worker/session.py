"""The keeper of one tree: lays out its files, forks a probe for each question, watches it, passes its answer on.

It runs no student code. Inside the sandbox it is the first process of its own process namespace.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.worker import isolation, plain, probe
from autograder.worker.limits import Limits, descendants, status_kib, usage
from autograder.worker.pieces import Watched, build_tree, read_rest, read_some
from autograder.worker.warm import Warm

TICK_S = 0.02
TMPFS = (Limits().file_mib, Limits().files)
SHM = (64, 64)


class Session:
    """Answer the questions about one tree that arrive on a socket, until it closes."""

    def __init__(self, connection: socket.socket, provided: Path, isolated: bool, scratch: str) -> None:
        self.connection = connection
        self.provided = provided
        self.isolated = isolated
        self.scratch = scratch
        self.outer_pid = (0, 0)
        self.imports: list[str] = []
        self.base = Limits()
        self.warm: Warm | None = None

    def serve(self) -> None:
        """Run until the other side closes the connection."""
        first = plain.receive(self.connection)
        if first is None:
            return
        if self.isolated:
            isolation.mount_tmpfs("/session", 16, 400)
            isolation.mount_tmpfs("/tmp", *TMPFS)
            isolation.mount_tmpfs("/dev/shm", *SHM)
            self.tree = "/session"
        else:
            self.tree = tempfile.mkdtemp(prefix="tree-", dir=self.scratch)
            isolation.adopt_orphans()
        try:
            build_tree(Path(self.tree), self.provided, first[0]["files"])
            if self.isolated:
                isolation.make_read_only("/session")
            self.imports = first[0].get("imports", [])
            self.base = Limits.from_plain(first[0].get("limits", {}))
            plain.send(self.connection, {"ready": True})
            while (request := plain.receive(self.connection)) is not None:
                self._ask(request[0])
        finally:
            if not self.isolated:
                shutil.rmtree(self.tree, ignore_errors=True)

    def _ask(self, request: dict[str, Any]) -> None:
        limits = Limits.from_plain(request["limits"])
        started = time.monotonic()
        watched = Watched()
        if limits == self.base and not request.get("measure") and self.imports:
            self._run(request, limits, watched, warm=True)
            if watched.stopped == "ended":  # without an answer: find out why, in a process of our own
                watched = Watched()
        if not watched.stopped:
            self._run(request, limits, watched, warm=False)
        self._reply(watched, limits, time.monotonic() - started)

    def _run(self, request: dict[str, Any], limits: Limits, watched: Watched, *, warm: bool) -> None:
        private = "/tmp" if self.isolated else tempfile.mkdtemp(prefix="probe-", dir=self.scratch)
        answer_in, answer_out = os.pipe()
        output_in, output_out = os.pipe()
        go_in, go_out = os.pipe()
        try:
            if warm:
                pid = self._ask_warm(request, private, [answer_out, output_out])
            else:
                self._give_up_warm()
                pid = os.fork()
                if pid == 0:
                    probe.run(request, self.tree, private, self.isolated, answer_out, output_out, go_in)
            for fd in (answer_out, output_out, go_in):
                os.close(fd)
            if pid:
                self._watch(pid, answer_in, output_in, go_out, limits, bool(request.get("measure")), watched)
            if not (warm and watched.stopped == "answered" and self._is_tidy(pid)):
                self._end(pid, watched, reap_first=not warm and watched.stopped == "ended")
            read_rest(output_in, watched.output, limits.output_kib << 10)
        finally:
            for fd in (answer_in, output_in, go_out):
                os.close(fd)
            self._clear(private)

    def _is_tidy(self, pid: int) -> bool:
        """Tell whether the warm process may go on: its question's process has ended and left nothing behind."""
        return self.warm is not None and self.warm.finished() and descendants("self") == [self._outer_pid(pid)]

    def _ask_warm(self, request: dict[str, Any], private: str, fds: list[int]) -> int:
        """Hand the question to the warm process (started at need); 0 when there is none to be had."""
        if self.warm is None:
            self.warm = Warm(self.tree, self.isolated, self.imports, self.base)
        if self.warm.ready and self.warm.ask(request, private, fds):
            return self.warm.pid
        self.imports = []  # importing the tree ends badly: every question finds out for itself
        self._give_up_warm()
        return 0

    def _give_up_warm(self) -> None:
        if self.warm is not None:
            self.warm.close()
            pid, self.warm = self.warm.pid, None
            self._end(pid, Watched())

    def _clear(self, private: str) -> None:
        if not self.isolated:
            shutil.rmtree(private, ignore_errors=True)
            return
        isolation.renew_tmpfs("/tmp", *TMPFS)
        isolation.renew_tmpfs("/dev/shm", *SHM)

    def _watch(
        self, pid: int, answer_in: int, output_in: int, go_out: int, limits: Limits, measure: bool, watched: Watched
    ) -> None:
        deadline = time.monotonic() + limits.wall_s
        poller = select.poll()
        warm_fd = self.warm.fileno() if self.warm is not None else -1
        for fd in (answer_in, output_in, self.connection.fileno(), warm_fd):
            if fd >= 0:
                poller.register(fd, select.POLLIN | select.POLLHUP)
        own = status_kib("self", "RssAnon")["RssAnon"]
        mark_pending = measure
        while not watched.stopped:
            for fd, _ in poller.poll(TICK_S * 1000):
                if fd == self.connection.fileno():
                    watched.stopped = "abandoned"
                elif fd == warm_fd:  # the question's process has ended, or the warm one is lost
                    poller.unregister(fd)
                    read_rest(answer_in, watched.received, limits.answer_mib * 4 << 20)
                    size = plain.frame_size(watched.received)
                    watched.stopped = "answered" if size and len(watched.received) >= size else "ended"
                elif fd == answer_in:
                    part = read_some(fd, 1 << 20)
                    if mark_pending and part:
                        watched.start_kib = status_kib(self._outer_pid(pid), "VmRSS")["VmRSS"]
                        os.write(go_out, b"G")
                        part, mark_pending = part[1:], False
                    elif part == b"":
                        poller.unregister(fd)
                    watched.received += part or b""
                elif (part := read_some(fd, 1 << 16)) == b"":
                    poller.unregister(fd)
                else:
                    watched.output += part or b""
            self._judge_progress(pid, answer_in, limits, watched, deadline, own)
        if measure:
            own_peak_kib = status_kib(self._outer_pid(pid), "VmHWM")["VmHWM"] - watched.start_kib
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
            self._judge_usage(pid, limits, watched, own_kib)

    def _judge_usage(self, pid: int, limits: Limits, watched: Watched, own_kib: int) -> None:
        pids = [self._outer_pid(pid), *descendants(self._outer_pid(pid))]
        sizes, num_threads = usage(pids[:500])
        held_kib = sum(max(0, size - own_kib) for size in sizes)
        if len(pids) > 1:  # what children hold counts as the probe's own
            watched.together_kib = max(watched.together_kib, held_kib)
        if len(pids) > limits.processes + 1 or num_threads > limits.processes + len(pids):
            watched.stopped = "process_limit"
            watched.detail = f"more than {limits.processes} processes or threads were started"
        elif held_kib > limits.memory_mib << 10:
            watched.stopped = "memory_limit"
            watched.detail = f"more than {limits.memory_mib} MiB were in use"

    def _outer_pid(self, pid: int) -> int:
        """Return the id by which ``/proc`` (mounted outside this namespace) knows a child."""
        if not self.isolated:
            return pid
        if self.outer_pid[0] != pid:
            self.outer_pid = (pid, self._find_outer_pid(pid))
        return self.outer_pid[1]

    def _find_outer_pid(self, pid: int) -> int:
        for number in descendants("self"):
            with suppress(OSError):
                for line in Path(f"/proc/{number}/status").read_text().splitlines():
                    if line.startswith("NSpid:") and line.split()[-1] == str(pid):
                        return number
        return 0

    def _end(self, pid: int, watched: Watched, *, reap_first: bool = False) -> None:
        """Kill the probe and everything that it left behind, and note how it ended; one that has ended is reaped first."""
        if self.warm is not None:
            self.warm.close()
            self.warm = None
        if reap_first:
            self._reap(pid, watched)
        elif pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.isolated:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            while children := descendants("self"):
                for child in children:
                    with suppress(OSError):
                        os.kill(child, signal.SIGKILL)
                self._reap_all(pid, watched, block=False)
        self._reap_all(pid, watched, block=True)

    def _reap(self, pid: int, watched: Watched) -> None:
        with suppress(ChildProcessError):
            _, watched.exit_status, used = os.wait4(pid, 0)
            watched.cpu_s = used.ru_utime + used.ru_stime
            watched.child_kib = max(watched.child_kib, used.ru_maxrss)

    def _reap_all(self, pid: int, watched: Watched, *, block: bool) -> None:
        with suppress(ChildProcessError):
            while True:
                found, status, used = os.wait4(-1, 0 if block else os.WNOHANG)
                if found == 0:
                    return
                watched.child_kib = max(watched.child_kib, used.ru_maxrss)
                if found == pid:
                    watched.exit_status, watched.cpu_s = status, used.ru_utime + used.ru_stime

    def _reply(self, watched: Watched, limits: Limits, wall_s: float) -> None:
        if watched.start_kib:  # the kernel's own record of the largest process, children that have ended included
            watched.peak_kib = max(watched.peak_kib, watched.child_kib - watched.start_kib)
        size = plain.frame_size(watched.received)
        complete = size is not None and len(watched.received) >= size
        header: dict[str, Any] = {
            "ended": "answered" if complete and watched.stopped in ("answered", "ended") else watched.stopped,
            "detail": watched.detail,
            "exit_status": watched.exit_status,
            "cpu_s": watched.cpu_s,
            "wall_s": wall_s,
            "peak_kib": watched.peak_kib,
            "output": bytes(watched.output[:2000]).decode("utf-8", "replace"),
            "output_bytes": len(watched.output),
        }
        if watched.stopped == "abandoned":
            return
        plain.send(self.connection, header, bytes(watched.received[:size]) if complete else b"")

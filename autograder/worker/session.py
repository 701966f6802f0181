"""The keeper of one tree: lays out its files, has questions answered by processes that it forks, passes answers on.

It runs no student code. Inside the sandbox it is the first process of its own process namespace.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.worker import isolation, plain, probe
from autograder.worker.conversation import PATIENCE_S, Conversation
from autograder.worker.limits import Limits, descendants
from autograder.worker.pieces import Watched, build_tree, read_rest
from autograder.worker.watch import Watch

TMPFS = (Limits().file_mib, Limits().files)
SHM = (64, 64)
# A tree that can't keep a conversation up isn't asked to, after so many tries.
MAX_LOST = 3
# Of a conversation, as far as the limit on its processor time is concerned; a part's checks ask a few hundred.
MAX_QUESTIONS = 500


class Session:
    """Answer the questions about one tree that arrive on a socket, until it closes."""

    def __init__(self, connection: socket.socket, provided: Path, isolated: bool, scratch: str) -> None:
        self.connection = connection
        self.provided = provided
        self.isolated = isolated
        self.scratch = scratch
        self.watch = Watch(isolated, connection.fileno())
        self.conversation: Conversation | None = None
        self.num_lost = 0

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
            isolation.go_first()
        try:
            build_tree(Path(self.tree), self.provided, first[0]["files"], first[0]["compiled"])
            if self.isolated:
                isolation.make_read_only("/session")
            plain.send(self.connection, {"ready": True})
            while (request := plain.receive(self.connection)) is not None:
                self._ask(request[0])
        finally:
            self._end_conversation()
            if not self.isolated:
                shutil.rmtree(self.tree, ignore_errors=True)

    def _ask(self, request: dict[str, Any]) -> None:
        limits = Limits.from_plain(request["limits"])
        started = time.monotonic()
        watched = self._ask_in_conversation(request, limits) if request.get("conversation") else Watched()
        alone = not watched.stopped
        if alone:
            self._ask_alone(request, limits, watched)
        self._reply(watched, limits, time.monotonic() - started, alone)

    def _ask_in_conversation(self, request: dict[str, Any], limits: Limits) -> Watched:
        """Return what came of a question; nothing where no whole answer did, so that it must be asked again."""
        if self.conversation is None or self.conversation.name != request["conversation"]:
            self._end_conversation()
            if self.num_lost < MAX_LOST:
                together = replace(limits, cpu_s=MAX_QUESTIONS * limits.cpu_s)  # each has PATIENCE_S at most
                self.conversation = Conversation(
                    request["conversation"], self.tree, self._private(), self.isolated, together
                )
        if self.conversation is None:
            return Watched()
        watched, open_ = Watched(), self.conversation
        if open_.ask(request):
            patient = replace(limits, wall_s=min(PATIENCE_S, limits.wall_s))
            self.watch.until_answered(open_.pid, open_.answer_in, open_.output_in, patient, watched)
        if watched.stopped in ("answered", "abandoned") and len(watched.received) == plain.frame_size(watched.received):
            return watched
        self.num_lost += 1
        self._end_conversation()
        return watched if watched.stopped == "abandoned" else Watched()

    def _end_conversation(self) -> None:
        if self.conversation is not None:
            ended, self.conversation = self.conversation, None
            ended.close()
            self._end(ended.pid, Watched())
            self._clear(ended.private)

    def _ask_alone(self, request: dict[str, Any], limits: Limits, watched: Watched) -> None:
        """Have a question answered by a process of its own, forked from this one, which no student code has touched."""
        self._end_conversation()
        private = self._private()
        answer_in, answer_out = os.pipe()
        output_in, output_out = os.pipe()
        go_in, go_out = os.pipe()
        try:
            pid = isolation.fork()
            if pid == 0:
                probe.run(request, self.tree, private, self.isolated, answer_out, output_out, go_in)
            for fd in (answer_out, output_out, go_in):
                os.close(fd)
            measured = {"go_out": go_out} if request.get("measure") else {}
            self.watch.until_answered(pid, answer_in, output_in, limits, watched, **measured)
            self._end(pid, watched, reap_first=watched.stopped == "ended")
            read_rest(output_in, watched.output, limits.output_kib << 10)
        finally:
            for fd in (answer_in, output_in, go_out):
                os.close(fd)
            self._clear(private)

    def _private(self) -> str:
        return "/tmp" if self.isolated else tempfile.mkdtemp(prefix="probe-", dir=self.scratch)

    def _clear(self, private: str) -> None:
        if not self.isolated:
            shutil.rmtree(private, ignore_errors=True)
            return
        isolation.renew_tmpfs("/tmp", *TMPFS)
        isolation.renew_tmpfs("/dev/shm", *SHM)

    def _end(self, pid: int, watched: Watched, *, reap_first: bool = False) -> None:
        """Kill a process and everything that it left behind, and note how it ended; one that has ended is reaped first."""
        if reap_first:
            self._reap(pid, watched)
        else:
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

    def _reply(self, watched: Watched, limits: Limits, wall_s: float, alone: bool) -> None:
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
            "alone": alone,
        }
        if watched.stopped == "abandoned":
            return
        plain.send(self.connection, header, bytes(watched.received[:size]) if complete else b"")

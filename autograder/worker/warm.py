"""A process that has imported the tree once and forks for each question: saves the import, a third of a probe's time.

It is student code's own process, so nothing that it says is believed but a complete answer. Whenever anything else
comes of a question, the session gives this process up and asks again from its own clean fork.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
from contextlib import suppress
from typing import Any

from autograder.worker import probe
from autograder.worker.limits import Limits, apply

READY_S = 10.0
DONE_S = 0.5


class Warm:
    """The session's end: start the process, hand it questions.

    Args:
        tree: folder that holds ``minisgl/``.
        isolated: whether namespaces shut it in.
        imports: modules to import beforehand.
        limits: what the imports may use.
    """

    def __init__(self, tree: str, isolated: bool, imports: list[str], limits: Limits) -> None:
        self._ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(tree, isolated, imports, limits, theirs)
        theirs.close()
        self.ready = self._hears(b"R", READY_S)

    def ask(self, request: dict[str, Any], private: str, fds: list[int]) -> bool:
        """Hand over a question with the pipes for its answer and output; False when the process can't take it."""
        try:
            text = json.dumps({"request": request, "private": private}).encode()
            socket.send_fds(self._ours, [len(text).to_bytes(4, "big")], fds)
            self._ours.sendall(text)
        except OSError:
            return False
        return True

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the question's process has ended."""
        return self._ours.fileno()

    def finished(self) -> bool:
        """Tell whether the question's process has ended as it should."""
        return self._hears(b"D", DONE_S)

    def close(self) -> None:
        """Close the connection; the process ends, or is killed with everything else."""
        self._ours.close()

    def _hears(self, word: bytes, seconds: float) -> bool:
        readable, _, _ = select.select([self._ours], [], [], seconds)
        with suppress(OSError):
            return bool(readable) and self._ours.recv(1) == word
        return False


def _serve(tree: str, isolated: bool, imports: list[str], limits: Limits, control: socket.socket) -> None:
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        probe.shut_in(tree, "/", isolated, null, keep=(control.fileno(),))
        apply(limits)
        for name in imports:
            with suppress(Exception):  # what is wrong with it, each question will find out for itself
                importlib.import_module(name)
        control.sendall(b"R")
        while True:
            head, fds, _, _ = socket.recv_fds(control, 4, 4)
            if len(head) < 4:
                return
            size, text = int.from_bytes(head, "big"), b""
            while len(text) < size:
                text += control.recv(size - len(text))
            message = json.loads(text)
            pid = os.fork()
            if pid == 0:
                control.close()
                probe.answer(message["request"], tree, message["private"], fds[0], fds[1])
            for fd in fds:
                os.close(fd)
            os.waitpid(pid, 0)
            control.sendall(b"D")
    finally:
        os._exit(0)

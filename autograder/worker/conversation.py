"""A process that has imported the tree and answers one question after another.

A fork for each question costs fifteen milliseconds, ten times what most answers take. So the judge asks a test's
questions in a conversation first. It is student code's own process, so nothing that it says is believed but complete
answers, and what one question leaves behind can spoil the next: whenever anything else than an answer comes, the
session gives the conversation up and asks again from a clean fork, and so does the judge with a test that isn't passed.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

from autograder.worker import isolation, plain, probe
from autograder.worker.limits import Limits

# Most answers take milliseconds. One that takes longer is asked for again by itself, with its whole time.
PATIENCE_S = 3.0
SEND_S = 2.0


class Conversation:
    """The session's end: start the process, hand it questions.

    Args:
        name: which questions belong to it.
        tree: folder that holds ``minisgl/``.
        private: an empty folder for its files.
        isolated: whether namespaces shut it in.
        limits: what all of its questions together may use.
    """

    def __init__(self, name: str, tree: str, private: str, isolated: bool, limits: Limits) -> None:
        self.name = name
        self.private = private
        self._ours, theirs = socket.socketpair()
        self.answer_in, answer_out = os.pipe()
        self.output_in, output_out = os.pipe()
        self.pid = isolation.fork()
        if self.pid == 0:
            probe.converse(tree, private, isolated, limits, answer_out, output_out, theirs)
        theirs.close()
        for fd in (answer_out, output_out):
            os.close(fd)
        self._ours.settimeout(SEND_S)

    def ask(self, request: dict[str, Any]) -> bool:
        """Hand over a question; False when the process doesn't take it."""
        with suppress(OSError):
            plain.send(self._ours, request)
            return True
        return False

    def close(self) -> None:
        """Close the descriptors; the process itself is ended by whoever owns it."""
        self._ours.close()
        for fd in (self.answer_in, self.output_in):
            os.close(fd)

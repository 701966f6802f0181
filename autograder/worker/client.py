"""The trusted side of the worker: start it, give it a tree, ask, and get an ``Outcome`` whatever happens."""

from __future__ import annotations

import base64
import functools
import importlib.util
import marshal
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder import paths
from autograder.worker import plain, sandbox
from autograder.worker.limits import Limits
from autograder.worker.outcome import Outcome, read_reply

MAX_CODE_BYTES = 4 << 20  # a chapter's has a hundredth of it; the tree has little room
START_S = 120.0
GRACE_S = 20.0


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> str:
    """Return the content of a ``.pyc`` file that Python takes without a look at the source, in base64.

    Each process of a tree would compile it again, a third of its time. Compiling runs nothing, and what can't be compiled
    (empty text) each process finds out for itself.
    """
    try:
        code = marshal.dumps(compile(text, "<tree>", "exec", dont_inherit=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)  # by hash, which isn't checked
    return base64.b64encode(header + code).decode() if len(code) <= MAX_CODE_BYTES else ""


class WorkerError(RuntimeError):
    """Report that the worker itself can't do its work: a fault of the grader, not of a student."""


class Worker:
    """One zygote process and what is needed to talk to it. Use as a context manager, or call ``close``.

    Args:
        sandboxed: whether to run it inside bubblewrap.
    """

    def __init__(self, *, sandboxed: bool = False) -> None:
        self.sandboxed = sandboxed
        self.scratch = Path(tempfile.mkdtemp(prefix="minisgl-cases-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False
        self.num_starts = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process without waiting for it to be warm."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = self._command(theirs.fileno())
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=sandbox.environment(str(paths.HOME)),
                start_new_session=True,
            )
        self._control, self._ready = ours, False
        self.num_starts += 1

    def open(self, files: dict[str, str], modules: Sequence[str] = ()) -> Tree:
        """Lay out a tree beside the provided files.

        Args:
            files: text of each graded module, by path below ``minisgl/``.
            modules: paths of those that are imported once for all tests; the others each test imports when it needs them.
        """
        self._wait_ready()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"F"], [theirs.fileno()])
        names = [f"minisgl.{path.removesuffix('.py').replace('/', '.')}" for path in modules]
        ready = {path: compiled(text) for path, text in files.items()}
        plain.send(ours, {"files": files, "compiled": ready, "modules": names})
        reply = plain.receive(ours)
        if reply is None:
            ours.close()
            raise WorkerError("the worker couldn't lay out a tree" + self._last_words())
        return Tree(self, ours)

    def close(self) -> None:
        """End the process and everything below it, and remove its files."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None
        shutil.rmtree(self.scratch, ignore_errors=True)

    def restart(self) -> None:
        """Start afresh after the process was lost or had to be given up."""
        scratch = self.scratch
        self.scratch = Path(tempfile.mkdtemp(prefix="minisgl-none-"))
        self.close()
        self.scratch = scratch
        self.start()

    def inside(self, value: Any) -> Any:
        """Translate paths below ``scratch`` in plain arguments to what they are called inside the sandbox."""
        if isinstance(value, (str, Path)):
            text = str(value)
            if self.sandboxed and text.startswith(str(self.scratch)):
                return sandbox.CASES + text.removeprefix(str(self.scratch))
            return text
        if isinstance(value, dict):
            return {key: self.inside(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.inside(item) for item in value]
        return value

    def _command(self, fd: int) -> list[str]:
        module = ["-P", "-m", "autograder.worker.zygote", str(fd)]
        if self.sandboxed:
            found = sandbox.problem()
            if found:
                raise WorkerError(found)
            return [*sandbox.command(self.scratch), sys.executable, *module, "/provided", "/tmp", "1"]
        provided = self.scratch / ".provided"
        if not provided.exists():
            (provided / "minisgl" / "models").mkdir(parents=True)
            for entry in paths.provided_entries():
                (provided / "minisgl" / entry).symlink_to(paths.reference_root() / entry)
        return [sys.executable, *module, str(provided), str(self.scratch), "0"]

    def _wait_ready(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.restart()
        assert self._control is not None
        if not self._ready:
            readable, _, _ = select.select([self._control], [], [], START_S)
            if not readable or self._control.recv(1) != b"R":
                raise WorkerError("the worker didn't start" + self._last_words())
            self._ready = True

    def _last_words(self) -> str:
        if self._process is None or self._process.stderr is None:
            return ""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        lines = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return ": " + " / ".join(lines[-6:]) if lines else ""


class Tree:
    """A tree inside the worker, ready to be asked by one test after another."""

    def __init__(self, worker: Worker, connection: socket.socket) -> None:
        self._worker = worker
        self._connection = connection
        self._start = worker.num_starts
        self._num_asked = 0
        self._has_ended = False

    @property
    def is_lost(self) -> bool:
        """Whether the processes behind it are gone; it can't be asked any more."""
        return self._has_ended or self._start != self._worker.num_starts

    def ask(self, probe: str, args: dict[str, Any], limits: Limits, *, measure: bool = False) -> Outcome:
        """Ask one question, as ``config.head_dim`` with plain arguments, and wait for what comes of it.

        Until ``end_test`` all questions go to one process. Once it has crashed or gone over a limit, each further
        question has the same outcome.

        Args:
            probe: the question's name.
            args: its arguments.
            limits: what it may use.
            measure: whether ``Outcome.measured`` is wanted; the next question gets a new process.
        """
        self._num_asked += 1
        request = {
            "number": self._num_asked,
            "probe": probe,
            "args": self._worker.inside(args),
            "limits": vars(limits),
            "measure": measure,
        }
        try:
            plain.send(self._connection, request)
            self._connection.settimeout(2 * limits.wall_s + GRACE_S)  # one for the tree's import, one for the answer
            reply = plain.receive(self._connection)
        except TimeoutError:
            self._worker.restart()
            return Outcome("time_limit", message=f"no answer after {2 * limits.wall_s + GRACE_S:g} s")
        except OSError:
            reply = None
        if reply is None:
            self._has_ended = True
            return Outcome("crashed", message="the process that ran the code was lost")
        return read_reply(reply[0], reply[1], limits, self._num_asked)

    def end_test(self) -> None:
        """Have the process of the questions so far ended, with all that it left behind."""
        try:
            plain.send(self._connection, {})
        except OSError:
            self._has_ended = True

    def close(self) -> None:
        """Give the tree up."""
        self._connection.close()

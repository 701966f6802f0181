"""The keeper of one tree: it lays the tree out, has its tests answered by processes that it watches, and passes answers on.

It runs no student code. Inside the sandbox it is the first process of a process namespace of its own, otherwise it adopts
orphans: whatever student code starts is below it and ends at the latest with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.worker import isolation, plain, tree_process
from autograder.worker.layout import build_tree
from autograder.worker.limits import Limits, tighten
from autograder.worker.measures import Measures, descendants, outer_pid, usage
from autograder.worker.watch import Seen, Watch, has_ended, read_some

TMPFS = (Limits().file_mib, Limits().files)
SHM = (64, 64)
MEASURED_FILE_MIB = 1
_CREDENTIALS = struct.Struct("3i")


@dataclass
class Process:
    """A process that runs student code: the tree's own, or a test's.

    Attributes:
        pid: its id; 0 while it isn't known.
        channel: the socket to it.
        output: where what it prints arrives.
        private: the folder for its files.
    """

    pid: int
    channel: socket.socket
    output: int
    private: str

    def close(self) -> None:
        """Close the descriptors."""
        self.channel.close()
        os.close(self.output)


class Keeper:
    """Answer the questions about one tree that arrive on a socket, until it closes.

    Args:
        connection: the socket to the client.
        provided: folder with the provided files.
        isolated: whether this process has namespaces of its own.
        scratch: where folders can be made, if it hasn't.
    """

    def __init__(self, connection: socket.socket, provided: Path, isolated: bool, scratch: str) -> None:
        self.connection = connection
        self.provided = provided
        self.isolated = isolated
        self.scratch = scratch
        self.watch = Watch(connection.fileno())
        self.tree: Process | None = None
        self.test: Process | None = None
        self.lost: Seen | None = None

    def serve(self) -> None:
        """Run until the other side closes the connection."""
        first = plain.receive(self.connection)
        if first is None:
            return
        self.folder = self._prepare()
        try:
            self.modules = first[0]["modules"]
            build_tree(Path(self.folder), self.provided, first[0]["files"], first[0]["compiled"])
            if self.isolated:
                isolation.make_read_only(self.folder)
            self.watch.started_kib = usage(["self"])[0]
            plain.send(self.connection, {"ready": True})
            while (request := plain.receive(self.connection)) is not None:
                if "probe" in request[0]:
                    self._ask(request[0])
                else:
                    self._end_test(Seen())
                    self.lost = None
        finally:
            self._kill_all(Seen())
            if not self.isolated:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self) -> str:
        """Make this process the one below which everything is, and return the tree's folder."""
        with suppress(OSError):
            self.proc = os.open("/proc", os.O_RDONLY)  # of which a frozen one is to cover the sight
        if not self.isolated:
            isolation.adopt_orphans()
            isolation.go_first()
            return tempfile.mkdtemp(prefix="tree-", dir=self.scratch)
        isolation.mount_tmpfs("/tree", 16, 400)
        isolation.mount_tmpfs("/tmp", *TMPFS)
        isolation.mount_tmpfs("/dev/shm", *SHM)
        isolation.freeze_proc()
        return "/tree"

    def _ask(self, request: dict[str, Any]) -> None:
        """Have a question answered by the test's process; a test whose process was lost gets the same outcome again."""
        limits = Limits.from_plain(request["limits"])
        seen = self.lost or Seen()
        if not seen.stopped and self.test is None:
            self._begin_test(limits, seen)
        if not seen.stopped:
            self._put(request, limits, seen)
        if seen.stopped == "abandoned":
            return
        if seen.stopped != "answered":
            self.lost = seen
        header = {
            "stopped": seen.stopped,
            "detail": seen.detail,
            "exit_status": seen.exit_status,
            "cpu_s": seen.cpu_s,
            "measured": seen.measured,
            "output": bytes(seen.output[:2000]).decode("utf-8", "replace"),
        }
        plain.send(self.connection, header, bytes(seen.received) if seen.stopped == "answered" else b"")

    def _begin_test(self, limits: Limits, seen: Seen) -> None:
        """Have the tree's process fork one for a test; ``seen.stopped`` says why it didn't."""
        if self.tree is None or has_ended(self.tree.pid):
            self._kill_all(Seen())
            self._start_tree(limits)
        assert self.tree is not None
        ours, theirs = socket.socketpair()
        if hasattr(socket, "SO_PASSCRED"):
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        output, output_out = os.pipe()
        private = self._private()
        test = Process(0, ours, output, private)
        with theirs, suppress(OSError):
            socket.send_fds(self.tree.channel, [private.encode()], [theirs.fileno(), output_out])
        os.close(output_out)
        self.test = test
        self.watch.until(
            lambda: self._greet(test), self.tree.pid, ours.fileno(), self.tree.output, limits, seen
        )
        if seen.stopped == "answered":
            seen.stopped = ""
            os.set_blocking(output, False)
            ours.settimeout(limits.wall_s)
        else:
            self._kill_all(seen, culprit=self.tree.pid)

    def _greet(self, test: Process) -> bool:
        """Learn from the kernel which process answers."""
        hello, extra, _, _ = test.channel.recvmsg(tree_process.HELLO.size, socket.CMSG_SPACE(_CREDENTIALS.size))
        if len(hello) < tree_process.HELLO.size:
            return False
        test.pid = tree_process.HELLO.unpack(hello)[0]
        for _, _, data in extra:
            test.pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
        return True

    def _start_tree(self, limits: Limits) -> None:
        self.limits = limits
        ours, theirs = socket.socketpair()
        output, output_out = os.pipe()
        private = self._private()
        pid = isolation.fork()
        if pid == 0:
            tree_process.run(self.folder, self.modules, private, self.isolated, limits, theirs, output_out)
        theirs.close()
        os.close(output_out)
        os.set_blocking(output, False)
        self.tree = Process(pid, ours, output, private)

    def _put(self, request: dict[str, Any], limits: Limits, seen: Seen) -> None:
        """Put a question to the test's process. A measured one is its last, so that the kernel's final account counts."""
        test = self.test
        assert test is not None
        start = None
        if request["measure"]:
            limits = limits.changed({"file_mib": MEASURED_FILE_MIB})
            start = self._begin_measure(test, seen)
        if limits != self.limits:
            with suppress(OSError):  # where it has ended, as will be seen
                tighten(test.pid, limits, self._outer(test.pid))
        question = {name: request[name] for name in ("number", "probe", "args")}
        with suppress(OSError):
            plain.send(test.channel, {**question, "answer_bytes": limits.answer_mib << 20})
        channel = test.channel.fileno()
        self.watch.until(lambda: receive(channel, seen), test.pid, channel, test.output, limits, seen)
        if start is not None:
            self._end_measure(start, seen)
        elif seen.stopped != "answered":
            self._end_test(seen)

    def _begin_measure(self, test: Process, seen: Seen) -> tuple[int, Measures, int]:
        """Note what the test's process holds before a question; from now on no memory can lie in files."""
        if self.isolated:
            try:
                isolation.resize_tmpfs("/tmp", MEASURED_FILE_MIB, TMPFS[1])
                isolation.resize_tmpfs("/dev/shm", MEASURED_FILE_MIB, SHM[1])
            except OSError:
                seen.stopped = "output_limit"
                seen.detail = f"files of more than {MEASURED_FILE_MIB} MiB lay about before something was measured"
        pid = self._outer(test.pid)
        with suppress(OSError):
            fd = os.open(f"{pid}/clear_refs", os.O_WRONLY, dir_fd=self.proc)
            os.write(fd, b"5")  # the record of the most memory in use starts again from here
            os.close(fd)
        return pid, Measures.of(pid), usage(descendants("self"))[0]

    def _end_measure(self, start: tuple[int, Measures, int], seen: Seen) -> None:
        """End the test's process and work out what its last question took, its own ended children included."""
        pid, before, held_kib = start
        after = Measures.of(pid)
        largest_kib = self._end_test(seen)
        if self.isolated:
            isolation.resize_tmpfs("/tmp", *TMPFS)
            isolation.resize_tmpfs("/dev/shm", *SHM)
        if before.rss_kib and after.rss_kib:
            peak_kib = max(after.peak_kib, largest_kib) - before.rss_kib
            seen.measured = {
                "peak_kib": max(peak_kib, seen.most_kib - held_kib),
                "bytes_read": after.bytes_read - before.bytes_read,
                "files": after.files - before.files,
                "threads": after.threads - before.threads,
            }

    def _outer(self, pid: int) -> int:
        return outer_pid(pid) if self.isolated else pid

    def _private(self) -> str:
        return "/tmp" if self.isolated else tempfile.mkdtemp(prefix="test-", dir=self.scratch)

    def _end_test(self, seen: Seen) -> int:
        """Kill a test's process and all that it left behind; return the KiB that the largest process of it held."""
        test, self.test = self.test, None
        if test is None:
            return 0
        if test.pid:
            with suppress(OSError):
                os.kill(test.pid, signal.SIGKILL)
        is_lost = seen.stopped not in ("", "answered")  # then nothing may come first: there could be ever more processes
        if is_lost or len(descendants("self")) > 2 or self.tree is None or test.pid == self.tree.pid:
            largest_kib = self._kill_all(seen, culprit=test.pid)
        else:
            largest_kib = self._reap(test.pid, seen)
        while part := read_some(test.output):
            seen.output += part
        test.close()
        self._clear(test.private)
        return largest_kib

    def _reap(self, pid: int, seen: Seen) -> int:
        with suppress(ChildProcessError):
            _, seen.exit_status, used = os.wait4(pid, 0)
            seen.cpu_s = used.ru_utime + used.ru_stime
            return used.ru_maxrss
        return 0

    def _kill_all(self, seen: Seen, culprit: int = 0) -> int:
        """Kill every process below this one; note how one of them ended; return the KiB that the largest held."""
        known = [process for process in (self.tree, self.test) if process is not None]
        self.tree = self.test = None
        largest_kib = 0
        pids = [process.pid for process in known if process.pid]
        while pids:
            for pid in [-1] if self.isolated else pids:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while (ended := os.wait4(-1, 0 if self.isolated else os.WNOHANG))[0]:
                    largest_kib = max(largest_kib, ended[2].ru_maxrss)
                    if ended[0] == culprit:
                        seen.exit_status, seen.cpu_s = ended[1], ended[2].ru_utime + ended[2].ru_stime
            pids = descendants("self")
        for process in known:
            process.close()
            self._clear(process.private)
        return largest_kib

    def _clear(self, private: str) -> None:
        if not self.isolated:
            shutil.rmtree(private, ignore_errors=True)
            return
        isolation.renew_tmpfs("/tmp", *TMPFS)
        isolation.renew_tmpfs("/dev/shm", *SHM)


def receive(channel: int, seen: Seen) -> bool | None:
    """Read what a process sends; return whether a whole answer has come, None when no more can come."""
    part = read_some(channel)
    seen.received += part or b""
    size = plain.frame_size(seen.received)
    if size is not None and len(seen.received) >= size:
        return True
    return None if part == b"" else False

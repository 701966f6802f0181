"""Limits on the process of a test, and the kernel's own means that enforce them.

Memory is limited twice. ``RLIMIT_DATA`` (what the process may map privately for writing, above what it had at first)
fails the very allocation that goes too far, so that nothing can be hidden from it by being quick. The keeper's watch
on resident memory of the process and all its children, every 20 ms, also sees shared memory. ``RLIMIT_AS`` isn't
used: libraries reserve address space that they never touch.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass, fields, replace
from typing import Any

from autograder.worker.measures import status_kib

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one test may use.

    Attributes:
        cpu_s: processor seconds of the test's process (the kernel counts whole ones).
        wall_s: seconds from a question to its answer.
        memory_mib: MiB above what the process held at first.
        processes: processes and threads beside the test's own that exist before it starts.
        output_kib: KiB on standard output and error together, for each question.
        file_mib: size of the largest file, and of all files together where a private tmpfs is possible.
        files: number of files and folders, where a private tmpfs is possible.
        answer_mib: size of the answer.
    """

    cpu_s: int = 10
    wall_s: float = 40.0
    memory_mib: int = 1024
    processes: int = 48
    output_kib: int = 256
    file_mib: int = 256
    files: int = 4000
    answer_mib: int = 64

    def changed(self, changes: dict[str, Any]) -> Limits:
        """Return a copy with some limits changed."""
        return replace(self, **changes)

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> Limits:
        """Build limits from a dict, ignoring what isn't one."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})


def apply(limits: Limits) -> None:
    """Put the limits on the calling process, which passes them on to each child, for that child alone."""
    _limit(0, resource.RLIMIT_CORE, 0)
    # At the first limit comes a signal that tells why. A process that catches the signal ends at the second.
    _limit(0, resource.RLIMIT_CPU, max(1, limits.cpu_s), spare=1)
    tighten(0, limits, "self")


def tighten(pid: int, limits: Limits, proc_id: int | str) -> None:
    """Limit another process (or the calling one, 0) from outside in memory and files; limits only ever get tighter.

    Args:
        pid: the process, as this process namespace knows it.
        limits: what it may use.
        proc_id: the process, as ``/proc`` knows it.
    """
    _limit(pid, resource.RLIMIT_FSIZE, limits.file_mib * MIB)
    mapped = status_kib(proc_id, "VmData")["VmData"] * 1024
    if mapped:
        _limit(pid, resource.RLIMIT_DATA, mapped + limits.memory_mib * MIB)


def _limit(pid: int, which: int, value: int, spare: int = 0) -> None:
    _, hard = resource.getrlimit(which) if pid == 0 else resource.prlimit(pid, which)
    most = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
    new = (min(value, most), most)
    if pid == 0:
        resource.setrlimit(which, new)
    else:
        resource.prlimit(pid, which, new)

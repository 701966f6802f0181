"""Limits on one probe, and the kernel's own means that enforce them.

Memory is limited twice. ``RLIMIT_DATA`` (what the process may map privately for writing, above what it had when it
was forked) fails the very allocation that goes too far, so that nothing can be hidden from it by being quick. A
watch on resident memory of the probe and all its children, every 20 ms, also sees shared memory. ``RLIMIT_AS`` isn't
used: libraries reserve address space that they never touch.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one probe may use.

    Attributes:
        cpu_s: processor seconds of the probe's process (the kernel counts whole ones).
        wall_s: seconds from question to answer.
        memory_mib: MiB above what the process held when it was forked.
        processes: processes and threads beside the probe's own that exist before it starts.
        output_kib: KiB on standard output and error together.
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


def status_kib(pid: int | str, *names: str) -> dict[str, int]:
    """Read fields in KiB (``VmData``, ``RssAnon``, ``RssShmem``, ``VmHWM``) of a process; 0 where there are none."""
    found = dict.fromkeys(names, 0)
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return found
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0])
    return found


def apply(limits: Limits) -> None:
    """Put the limits on the calling process (for its children too, each on its own)."""
    _limit(resource.RLIMIT_CORE, 0)
    # At the first limit comes a signal that tells why, at the second, for whoever catches that, an end.
    _limit(resource.RLIMIT_CPU, max(1, limits.cpu_s), spare=1)
    _limit(resource.RLIMIT_FSIZE, limits.file_mib * MIB)
    mapped = status_kib("self", "VmData")["VmData"] * 1024
    if mapped:
        _limit(resource.RLIMIT_DATA, mapped + limits.memory_mib * MIB)


def _limit(which: int, value: int, spare: int = 0) -> None:
    _, hard = resource.getrlimit(which)
    most = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
    resource.setrlimit(which, (min(value, most), most))


def descendants(pid: int | str) -> list[int]:
    """Return the ids of all living processes below one, as ``/proc`` shows them."""
    found: list[int] = []
    queue: list[int | str] = [pid]
    while queue:
        parent = queue.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
            for thread in threads:
                children = [int(word) for word in Path(f"/proc/{parent}/task/{thread}/children").read_text().split()]
                found += children
                queue += children
        except OSError:
            continue
    return found


def usage(pids: list[int]) -> tuple[list[int], int]:
    """Return each process's anonymous and shared resident KiB, and how many threads they have together."""
    sizes, num_threads = [], 0
    for pid in pids:
        found = status_kib(pid, "RssAnon", "RssShmem", "Threads")
        sizes.append(found["RssAnon"] + found["RssShmem"])
        num_threads += found["Threads"]
    return sizes, num_threads

"""What the kernel says of a process, read from outside: its memory, what it read, what it holds open, its children."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST = 500  # a limit on processes is far below


def status_kib(pid: int | str, *names: str) -> dict[str, int]:
    """Read fields (``VmData``, ``RssAnon``, ``VmHWM`` in KiB, ``Threads``) of a process; 0 where there are none."""
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


def descendants(pid: int | str) -> list[int]:
    """Return the ids of the processes below one, as ``/proc`` shows them; of a fork bomb's, which never end, some."""
    found: list[int] = []
    queue: list[int | str] = [pid]
    while queue and len(found) < MOST:
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


def usage(pids: Iterable[int | str]) -> tuple[int, int]:
    """Return the processes' anonymous and shared resident KiB together, and how many threads they have together."""
    held_kib, num_threads = 0, 0
    for pid in pids:
        found = status_kib(pid, "RssAnon", "RssShmem", "Threads")
        held_kib += found["RssAnon"] + found["RssShmem"]
        num_threads += found["Threads"]
    return held_kib, num_threads


def outer_pid(pid: int) -> int:
    """Return the id by which ``/proc`` knows a child that this process namespace knows as ``pid``; 0 if none does.

    The sandbox's ``/proc`` is mounted outside the namespace of a tree, and shows the ids of its own.
    """
    for number in descendants("self"):
        with suppress(OSError):
            for line in Path(f"/proc/{number}/status").read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == str(pid):
                    return number
    return 0


@dataclass(frozen=True)
class Measures:
    """One look at a process: KiB resident now and at most, bytes it has read by system calls, open files, threads."""

    rss_kib: int = 0
    peak_kib: int = 0
    bytes_read: int = 0
    files: int = 0
    threads: int = 0

    @classmethod
    def of(cls, pid: int) -> Measures:
        """Look at a process, by the id that ``/proc`` knows it by; all 0 where the system doesn't tell."""
        try:
            status = status_kib(pid, "VmRSS", "VmHWM", "Threads")
            read = int(Path(f"/proc/{pid}/io").read_text().split("rchar:")[1].split()[0])
            files = len(os.listdir(f"/proc/{pid}/fd"))
        except (OSError, IndexError):
            return cls()
        return cls(status["VmRSS"], status["VmHWM"], read, files, status["Threads"])

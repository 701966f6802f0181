"""Measure the memory of a process: what the kernel says, what tensors hold, and what happened when.

Resident memory is of two kinds. *Anonymous* pages hold data that exists nowhere else, such as a tensor that was
computed or copied: they must stay. *File-backed* pages are a view of a file, such as a memory-mapped checkpoint: the
kernel drops them when something else needs the room. A loader's cost is its anonymous memory, so the two are kept
apart wherever the system tells them apart (Linux). All sizes are bytes.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from torch.utils._python_dispatch import TorchDispatchMode

EVENT_KINDS = ("read", "slice", "merge", "pack", "yield", "release")


@dataclass(frozen=True)
class ProcessMemory:
    """Say what the system counts for one process at one moment.

    Attributes:
        resident_bytes: All of its pages that are in memory.
        anonymous_bytes: Those that hold data of its own; None where the system doesn't tell.
        file_backed_bytes: Those that mirror a file and can be dropped; None where the system doesn't tell.
        peak_resident_bytes: The kernel's high-water mark of ``resident_bytes``; None where unknown.
        source: Which memory this is and who counted it, in words.
    """

    resident_bytes: int
    anonymous_bytes: int | None
    file_backed_bytes: int | None
    peak_resident_bytes: int | None
    source: str


@dataclass(frozen=True)
class Sample:
    """Give the memory at ``time_s`` seconds after the meter's start. Unknown values are None."""

    time_s: float
    resident_bytes: int
    anonymous_bytes: int | None
    file_backed_bytes: int | None
    live_tensor_bytes: int | None
    gpu_allocated_bytes: int | None
    gpu_reserved_bytes: int | None


@dataclass(frozen=True)
class Event:
    """Say what a loader did at ``time_s`` seconds after the meter's start: one of ``EVENT_KINDS``, to what, how large."""

    time_s: float
    kind: str
    name: str
    num_bytes: int


def read_memory(pid: int | None = None) -> ProcessMemory:
    """Read what the system counts for a process (default: this one).

    Raises:
        psutil.NoSuchProcess: There is no such process (any more).

    Source: proc_pid_status(5), https://man7.org/linux/man-pages/man5/proc_pid_status.5.html.
    """
    status = Path(f"/proc/{pid or 'self'}/status")
    if sys.platform == "linux" and status.parent.parent.is_dir():
        try:
            lines = (line.split(":", 1) for line in status.read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            raise psutil.NoSuchProcess(pid) from None
        kib = {name: int(value.split()[0]) for name, value in lines if value.endswith("kB")}
        if "VmRSS" not in kib:  # ended, but not yet collected by its parent
            raise psutil.NoSuchProcess(pid)
        return ProcessMemory(
            resident_bytes=kib["VmRSS"] * 1024,
            anonymous_bytes=kib["RssAnon"] * 1024,
            file_backed_bytes=(kib["RssFile"] + kib["RssShmem"]) * 1024,
            peak_resident_bytes=kib["VmHWM"] * 1024,
            source="resident memory, anonymous and file-backed apart, as Linux counts it in /proc/PID/status",
        )
    resident = psutil.Process(pid).memory_info().rss
    peak = _peak_of_this_process() if pid is None else None
    return ProcessMemory(resident, None, None, peak, f"resident memory as {sys.platform} counts it, all kinds together")


def _peak_of_this_process() -> int | None:
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def reset_peak() -> bool:
    """Lower this process's high-water mark to what it holds now; return whether the system can do that (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def read_gpu_memory() -> tuple[int | None, int | None]:
    """Return the bytes that PyTorch's tensors take on the current GPU and the bytes it has reserved for them.

    Both are None where no GPU is in use: asking must not be what starts one.
    """
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None, None
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


class LiveTensors(TorchDispatchMode):
    """Count the bytes of tensors that are alive, exactly: each allocation and each release, as it happens.

    Inside the ``with`` block every new storage is counted once, however many views it has, until the last of them is
    gone, be it after the block. Storages that PyTorch didn't allocate itself (a mapped file, a numpy array) count apart;
    tensors on the meta device don't count.

    Attributes:
        live_bytes: What is alive now.
        peak_bytes: The most that was alive at once since the start or the last ``restart_peak``.
        mapped_bytes: Size of the alive tensors whose memory came from elsewhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live_bytes = self.peak_bytes = self.mapped_bytes = 0
        self._seen: dict[int, bool] = {}
        # A release can come from the garbage collector in the middle of a count, in the same thread.
        self._lock = threading.RLock()

    def restart_peak(self) -> None:
        """Let ``peak_bytes`` start again from what is alive now."""
        self.peak_bytes = self.live_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_foreign = func is torch.ops.aten.set_.source_Storage
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta":
                storage = tensor.untyped_storage()
                self._count(storage, is_foreign or not storage.resizable())
        return result

    def _count(self, storage: torch.UntypedStorage, is_foreign: bool) -> None:
        key, size = storage._cdata, storage.nbytes()
        with self._lock:
            if key in self._seen or size == 0:
                return
            self._seen[key] = is_foreign
            self._add(size, is_foreign)
        weakref.finalize(storage, self._release, key, size).atexit = False

    def _release(self, key: int, size: int) -> None:
        with self._lock:
            self._add(-size, self._seen.pop(key))

    def _add(self, size: int, is_foreign: bool) -> None:
        if is_foreign:
            self.mapped_bytes += size
        else:
            self.live_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)


class MemoryMeter:
    """Sample a process's memory and note a loader's events, on one axis of time.

    A thread samples every ``interval_s``; each event takes a sample too, so that a peak between two ticks is seen where
    something happens. Short peaks between both are in the two exact figures: ``LiveTensors.peak_bytes`` and the
    kernel's high-water mark.

    Args:
        pid: The process to watch; None for this one.
        interval_s: 5 ms sees any allocation of 20 MB or more: the kernel takes that long to hand out its pages.
        live: Counts the tensors of this process, where wanted.
        listener: Called with every sample and event as it comes, from the thread that it comes from.
    """

    def __init__(
        self,
        pid: int | None = None,
        *,
        interval_s: float = 0.005,
        live: LiveTensors | None = None,
        listener: Callable[[Sample | Event], None] | None = None,
    ) -> None:
        self.samples: list[Sample] = []
        self.events: list[Event] = []
        self.source = read_memory(pid).source
        self._pid, self._interval_s, self._live, self._listener = pid, interval_s, live, listener
        self._start_s = time.monotonic()
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> MemoryMeter:
        self.sample()
        self._thread = threading.Thread(target=self._run, name="minisgl-memory-meter", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if psutil.pid_exists(self._pid) if self._pid else True:
            self.sample()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                self.sample()
            except psutil.NoSuchProcess:
                return

    def sample(self) -> Sample:
        """Take a sample now."""
        with self._lock:  # two threads sample, and the samples stay in order of time
            memory = read_memory(self._pid)
            sample = Sample(
                time.monotonic() - self._start_s,
                memory.resident_bytes,
                memory.anonymous_bytes,
                memory.file_backed_bytes,
                self._live.live_bytes if self._live else None,
                *read_gpu_memory(),
            )
            self.samples.append(sample)
            if self._listener:
                self._listener(sample)
            return sample

    def event(self, kind: str, name: str, num_bytes: int) -> None:
        """Note that the loader did something, with a sample of that moment."""
        with self._lock:
            self.sample()
            event = Event(time.monotonic() - self._start_s, kind, name, num_bytes)
            self.events.append(event)
            if self._listener:
                self._listener(event)

    def peak(self, field: str = "anonymous_bytes") -> int | None:
        """Return the largest sampled value of one of ``Sample``'s fields, or None where it is unknown."""
        return max((value for sample in self.samples if (value := getattr(sample, field)) is not None), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """Return all samples and events as plain dicts, in order of time."""
        rows: list[Sample | Event] = [*self.samples, *self.events]
        return [asdict(row) for row in sorted(rows, key=lambda row: row.time_s)]

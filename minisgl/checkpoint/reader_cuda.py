"""Fill parameters on a CUDA device: reader threads fill pinned buffers, and copies run beside the reading.

One reading thread is slower than the bus, and a copy from pageable memory waits for the CPU. So a few threads read,
each into a pinned buffer of its own: while one thread waits for its copy, the others read. No buffer is shared, so only
the counts need a lock.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from minisgl.checkpoint import reader
from minisgl.checkpoint._memory import empty_in_large_pages, populate
from minisgl.checkpoint._read import OpenFiles, read_box
from minisgl.checkpoint._slices import ParameterPlan, SourceBox, cut, lay_out
from minisgl.checkpoint.reader import Reader

# Measured on an H200 host with 16 processors, 16.4 GB in the page cache: more threads wait for Python's lock, smaller
# parts take it more often, and larger buffers, or a second one for each thread, are slower to lock and to read into.
_MAX_THREADS = 12
_BUFFER_BYTES = 12 * 1024 * 1024
_LOOKAHEAD = 32


class Copies(Protocol):
    """What the reader needs of a device; the tests bring one that runs on the CPU."""

    def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
        """Return page-locked memory, uint8 [num_bytes], and the call that gives it back."""

    def ready(self) -> object:
        """Mark the work that the caller's stream has been given; copies must come after it."""

    def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
        """Start a copy of equal shapes; return the call that waits until it is done."""


class CudaCopies:
    """Copy on a stream of each thread's own, from memory that is page-locked for as long as the reader is open.

    ``torch.empty(pin_memory=True)`` would keep the memory locked in a cache after the load.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._local = threading.local()

    def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
        """Return page-locked memory, uint8 [num_bytes], and the call that gives it back."""
        buffer = empty_in_large_pages((num_bytes,), torch.uint8)
        populate(buffer)
        runtime = torch.cuda.cudart()
        with torch.cuda.device(self._device):
            torch.cuda.check_error(runtime.cudaHostRegister(buffer.data_ptr(), num_bytes, 0))
        return buffer, lambda: torch.cuda.check_error(runtime.cudaHostUnregister(buffer.data_ptr()))

    def ready(self) -> torch.cuda.Event:
        """Mark the work that the caller's stream has been given."""
        return torch.cuda.current_stream(self._device).record_event()

    def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
        """Start a copy on this thread's stream; return the call that waits until it is done."""
        if not hasattr(self._local, "stream"):
            self._local.stream = torch.cuda.Stream(self._device)
            torch.cuda.set_stream(self._local.stream)  # this thread's from now on
        stream: torch.cuda.Stream = self._local.stream
        # The allocator may have given the target memory that the caller's stream is still reading.
        stream.wait_event(after)  # type: ignore[arg-type]
        target.copy_(source, non_blocking=True)
        return stream.record_event().synchronize


class _Job:
    """One parameter on its way: counts its parts down and keeps the first error."""

    def __init__(self, num_parts: int, after: object) -> None:
        self.after = after
        self.error: BaseException | None = None
        self._num_left = num_parts
        self._lock = threading.Lock()
        self._done = threading.Event()
        if num_parts == 0:
            self._done.set()

    def part_done(self, error: BaseException | None = None) -> None:
        """Count one part as done, or the whole parameter as failed."""
        with self._lock:
            self.error = self.error or error
            self._num_left -= 1
            if self._num_left == 0 or error is not None:
                self._done.set()

    def wait(self) -> None:
        """Return when all the data is in the parameter, or raise what went wrong."""
        self._done.wait()
        if self.error is not None:
            raise self.error


@dataclass(frozen=True)
class _Part:
    """One part of a parameter, small enough for a buffer: what to read, and the contiguous place it goes to."""

    job: _Job
    box: SourceBox
    target: torch.Tensor


class CudaReader(Reader):
    """Read with several threads ahead of the caller, through a few reused pinned buffers.

    Args:
        device: The CUDA device.
        copies: How to copy to the device; given by tests only.
        num_threads: Reader threads, each with a buffer of its own; by default as many as are worth having.
        buffer_bytes: Size of a buffer.
    """

    lookahead = _LOOKAHEAD

    def __init__(
        self,
        device: torch.device,
        copies: Copies | None = None,
        num_threads: int | None = None,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        self._device = device
        self._copies = copies if copies is not None else CudaCopies(device)
        self._buffer_bytes = buffer_bytes
        self._parts: queue.SimpleQueue[_Part | None] = queue.SimpleQueue()
        self._closing = False
        self._lock = threading.Lock()
        names = [f"weight-reader-{number}" for number in range(num_threads or reader.num_threads(_MAX_THREADS))]
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    def start(self, plan: ParameterPlan) -> tuple[torch.Tensor, Callable[[], None]]:
        """Make a parameter, hand its parts to the threads, and return at once (see ``Reader.start``)."""
        if self._closing:
            raise RuntimeError("the reader is closed")
        tensor = torch.empty(plan.shape, dtype=plan.dtype, device=self._device)
        parts = [part for box, view in lay_out(plan, tensor) for part in cut(box, view, self._buffer_bytes)]
        job = _Job(len(parts), self._copies.ready())
        for box, target in parts:
            self._parts.put(_Part(job, box, target.view(-1)))
        return tensor, job.wait

    def close(self) -> None:
        """Drop what hasn't been started, let the copies under way end, and give threads and buffers back."""
        self._closing = True
        for _ in self._threads:
            self._parts.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _work(self) -> None:
        """Run one thread: read a part, start its copy, wait for it, and so on."""
        files = OpenFiles()
        buffer: _Buffer | None = None
        try:
            while (part := self._parts.get()) is not None:
                try:
                    if self._closing:
                        raise CancelledError("the reader was closed")
                    if part.job.error is None:
                        # Made when needed: page-locking takes time, and a small load needs few.
                        buffer = buffer or _Buffer(*self._copies.pinned_buffer(self._buffer_bytes))
                        self._move(part, files, buffer)
                except BaseException as error:  # whatever it is, the caller's thread must hear of it
                    part.job.part_done(error)
                else:
                    part.job.part_done()
        finally:
            if buffer is not None:
                buffer.give_back()
            files.close()

    def _move(self, part: _Part, files: OpenFiles, buffer: "_Buffer") -> None:
        """Read a part into the buffer and copy it to the device."""
        box = part.box
        # A view in numpy, unlike one in torch, keeps Python's lock: who gives it away waits for it behind all other threads.
        read_box(files, box, buffer.array[: box.num_bytes].view(f"i{box.source.dtype.itemsize}").reshape(box.lengths))
        source = buffer.memory[: box.num_bytes].view(box.source.dtype)
        wait = self._copies.start(source, part.target, part.job.after)
        with self._lock:
            self.bytes_read += box.num_bytes
        wait()


@dataclass(frozen=True)
class _Buffer:
    """One thread's piece of pinned memory, and the call that gives it back."""

    memory: torch.Tensor
    give_back: Callable[[], None]

    @cached_property
    def array(self) -> np.ndarray:
        """The memory as numpy's: uint8 [num_bytes]."""
        return self.memory.numpy()

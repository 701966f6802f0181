"""Fill parameters on a CUDA device: reader threads fill pinned buffers, and copies run beside the reading.

One reading thread is slower than the bus, and a copy from pageable memory waits for the CPU. So a few threads read,
each into a pinned buffer of its own: while one thread waits for its copy, the others read. No buffer is shared, so only
the counts need a lock.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from minisgl.checkpoint import reader
from minisgl.checkpoint._memory import empty_in_large_pages, populate
from minisgl.checkpoint._read import OpenFiles, read_box
from minisgl.checkpoint._slices import ParameterPlan, Part, in_parts, lay_out
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
            self._local.stream, self._local.after = torch.cuda.Stream(self._device), None
            torch.cuda.set_stream(self._local.stream)  # this thread's from now on
        stream: torch.cuda.Stream = self._local.stream
        if self._local.after is not after:
            # The allocator may have given the target memory that the caller's stream is still reading.
            stream.wait_event(after)  # type: ignore[arg-type]
            self._local.after = after
        target.copy_(source, non_blocking=True)
        return stream.synchronize


class _Job:
    """One parameter on its way: counts its parts down and keeps the first error."""

    def __init__(self, num_parts: int, memory: torch.Tensor, after: object) -> None:
        self.memory = memory
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
        self._parts: queue.SimpleQueue[tuple[_Job, Part, int] | None] = queue.SimpleQueue()
        self._ahead: dict[str, list[Part]] = {}
        self._closing = False
        self._lock = threading.Lock()
        names = [f"weight-reader-{number}" for number in range(num_threads or reader.num_threads(_MAX_THREADS))]
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    def read(self, plans: Sequence[ParameterPlan], *, progress: bool = False) -> Iterator[tuple[str, torch.Tensor]]:
        """Build the planned parameters, one after the other (see ``Reader.read``)."""
        # All cutting comes first: beside the threads, it took Python's lock from them for half of the load.
        self._ahead = {plan.name: list(in_parts(lay_out(plan), self._buffer_bytes)) for plan in plans}
        yield from super().read(plans, progress=progress)

    def start(self, plan: ParameterPlan) -> tuple[torch.Tensor, Callable[[], None]]:
        """Make a parameter, hand its parts to the threads, and return at once (see ``Reader.start``)."""
        if self._closing:
            raise RuntimeError("the reader is closed")
        parts = self._ahead.pop(plan.name, None) or list(in_parts(lay_out(plan), self._buffer_bytes))
        tensor = torch.empty(plan.shape, dtype=plan.dtype, device=self._device)
        memory, filled = reader.bytes_of(tensor), sum(part.num_bytes for part in parts)
        if filled < plan.num_bytes:
            memory[filled:].zero_()
        job, end = _Job(len(parts), memory, self._copies.ready()), 0
        for part in parts:
            self._parts.put((job, part, end))
            end += part.num_bytes
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
            while (work := self._parts.get()) is not None:
                job, part, place = work
                try:
                    if self._closing:
                        raise CancelledError("the reader was closed")
                    if job.error is None:
                        # Made when needed: page-locking takes time, and a small load needs few.
                        buffer = buffer or _Buffer(*self._copies.pinned_buffer(self._buffer_bytes))
                        self._move(job, part, place, files, buffer)
                except BaseException as error:  # whatever it is, the caller's thread must hear of it
                    job.part_done(error)
                else:
                    job.part_done()
                del work, job, part  # while it waits for more, a thread keeps no parameter alive
        finally:
            if buffer is not None:
                buffer.give_back()
            files.close()

    def _move(self, job: _Job, part: Part, place: int, files: OpenFiles, buffer: "_Buffer") -> None:
        """Read a part into the buffer and copy it to its place in the parameter."""
        end = 0
        for box in part.boxes:
            begin, end = end, end + box.num_bytes
            # A view in numpy, unlike one in torch, keeps Python's lock: who gives it away waits for it behind all other threads.
            read_box(files, box, buffer.array[begin:end])
        wait = self._copies.start(buffer.memory[:end], job.memory[place : place + end], job.after)
        with self._lock:
            self.bytes_read += end
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

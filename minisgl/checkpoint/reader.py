"""Carry out plans: read slices of a checkpoint's tensors into parameters. ``minisgl.models.weight`` makes the plans.

On the CPU a parameter that lies in a file as it is becomes the file's own pages; any other slice's bytes go from the page
cache straight into the parameter. On CUDA, reader threads and pinned buffers work ahead (``reader_cuda``). Both read
only the bytes asked for.
"""

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import torch

from minisgl.checkpoint._read import OpenFiles, mapped_run, read_box
from minisgl.checkpoint._slices import ParameterPlan, SourceBox, cut, lay_out
from minisgl.checkpoint.progress import tqdm

__all__ = ["CpuReader", "Reader"]

# Large enough that calls cost nothing beside the copy; it bounds what a column slice maps, and how long Ctrl-C waits.
_PART_BYTES = 4 * 1024 * 1024
# Most of a copy's time goes into the new memory's first touch, page by page, which several processors can share.
_MAX_THREADS = 4
_THREADS_FROM_BYTES = 2 * 1024 * 1024


class Reader(ABC):
    """Turn plans into parameters. A context manager: leaving it stops all work and closes all files.

    Attributes:
        lookahead: How many more parameters are under way while one is waited for; 0 where reading doesn't go on meanwhile.
        bytes_read: Bytes of the files delivered so far, over all parameters.
    """

    lookahead: int = 0
    bytes_read: int = 0

    def read(self, plans: Sequence[ParameterPlan], *, progress: bool = False) -> Iterator[tuple[str, torch.Tensor]]:
        """Build the planned parameters, one after the other.

        Args:
            plans: What to build, in this order.
            progress: Whether to show a bar, in bytes.

        Yields:
            Each plan's name and its parameter, complete. The reader keeps nothing of what it has handed out, and at most
            ``lookahead`` more parameters are under way. On the CPU, a parameter that is one large run of bytes of a file is
            that file's own pages, mapped copy-on-write: nothing is copied before somebody writes to it, and what is written
            belongs to this process and never reaches the file.

        Raises:
            CheckpointError: A file has changed since its header was read, or can't be read.
        """
        num_bytes = sum(plan.num_bytes for plan in plans)
        under_way: deque[tuple[str, torch.Tensor, Callable[[], None]]] = deque()
        with tqdm(total=num_bytes, unit="B", unit_scale=True, disable=not progress) as bar:
            for plan in plans:
                under_way.append((plan.name, *self.start(plan)))
                if len(under_way) > self.lookahead:
                    yield _finished(*under_way.popleft(), bar)
            while under_way:
                yield _finished(*under_way.popleft(), bar)

    @abstractmethod
    def start(self, plan: ParameterPlan) -> tuple[torch.Tensor, Callable[[], None]]:
        """Make a parameter and start to fill it.

        Returns:
            The parameter, and the call that waits until it is complete; it raises what went wrong meanwhile.

        Raises:
            CheckpointError: A piece doesn't fit the parameter, or (if ``lookahead`` is 0) can't be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop all work and give back files, threads and buffers; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _finished(name: str, tensor: torch.Tensor, wait: Callable[[], None], bar: tqdm) -> tuple[str, torch.Tensor]:
    """Wait for a parameter. A function, so that ``read`` keeps no name for a tensor that it has handed out."""
    wait()
    bar.update(tensor.nbytes)
    return name, tensor


def num_threads(most: int) -> int:
    """Return how many threads are worth having: as many as can run at once, but not more than ``most``."""
    can_run = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(most, can_run)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """View a contiguous tensor as its bytes, uint8 [num_bytes]."""
    return tensor.view(-1).view(torch.uint8)


def _nothing() -> None:
    """Wait for a parameter that is complete already."""


class CpuReader(Reader):
    """Read one parameter at a time, a large one with a few threads. Holds no memory of its own.

    Args:
        device: Where the parameters lie; one without a reader of its own is filled through a little CPU memory.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._device = torch.device(device)
        self._of_thread = threading.local()  # open files, as no two threads may share them
        self._opened: list[OpenFiles] = []
        self._threads: ThreadPoolExecutor | None = None

    def start(self, plan: ParameterPlan) -> tuple[torch.Tensor, Callable[[], None]]:
        """Build a parameter: the file's pages where they are all of it, else memory, filled (see ``Reader.start``)."""
        boxes = lay_out(plan)
        self.bytes_read += sum(box.num_bytes for box in boxes)
        mapped = mapped_run(self._files(), boxes) if self._device.type == "cpu" else None
        if mapped is not None and mapped.nbytes == plan.num_bytes:
            return mapped.view(plan.shape), _nothing
        tensor = torch.empty(plan.shape, dtype=plan.dtype, device=self._device)
        memory, end = bytes_of(tensor), 0
        parts = []
        for box in itertools.chain.from_iterable(cut(box, _PART_BYTES) for box in boxes):
            begin, end = end, end + box.num_bytes
            parts.append((box, memory[begin:end]))
        memory[end:].zero_()
        if tensor.nbytes < _THREADS_FROM_BYTES or len(parts) < 2:
            for part in parts:
                self._read(part)
            return tensor, _nothing
        if self._threads is None:
            self._threads = ThreadPoolExecutor(num_threads(_MAX_THREADS), thread_name_prefix="weight-reader")
        try:
            for _ in self._threads.map(self._read, parts):
                pass
        except BaseException:  # also Ctrl-C: nothing may go on writing into the parameter
            self.close()
            raise
        return tensor, _nothing

    def _files(self) -> OpenFiles:
        """Return the files that this thread has open."""
        if not hasattr(self._of_thread, "files"):
            self._of_thread.files = OpenFiles()
            self._opened.append(self._of_thread.files)
        return self._of_thread.files

    def _read(self, part: tuple[SourceBox, torch.Tensor]) -> None:
        """Read one part of a parameter, in whichever thread."""
        box, place = part
        if place.device.type == "cpu":
            read_box(self._files(), box, place.numpy())
        else:
            staging = torch.empty_like(place, device="cpu")
            read_box(self._files(), box, staging.numpy())
            place.copy_(staging)

    def close(self) -> None:
        """End the threads and close the files."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        for files in self._opened:
            files.close()

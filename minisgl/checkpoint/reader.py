"""Fill given parameters with slices of a checkpoint's tensors; ``minisgl.models.weight`` decides with which.

On the CPU a parameter that lies in a file as it is becomes the file's own pages; any other slice's bytes go from the page
cache straight into the parameter. On CUDA, reader threads and pinned buffers work ahead (``reader_cuda``). Both read
only the bytes asked for.
"""

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol

import torch

from minisgl.checkpoint._read import OpenFiles, as_numpy, mapped_run, read_box
from minisgl.checkpoint._slices import Piece, SourceBox, box_and_view, box_of, cut

__all__ = ["CpuReader", "Filled", "Piece", "Reader", "open_reader"]

# Large enough that calls cost nothing beside the copy; it bounds what a column slice maps, and how long Ctrl-C waits.
_PART_BYTES = 4 * 1024 * 1024
# Most of a copy's time goes into the new memory's first touch, page by page, which several processors can share.
_MAX_THREADS = 4
_THREADS_FROM_BYTES = 2 * 1024 * 1024


class Filled(Protocol):
    """Stand for a parameter that is being filled."""

    def wait(self) -> None:
        """Return when all the data is in the parameter.

        Raises:
            CheckpointError: The data can't be read; the parameter must not be used.
        """


class Reader(ABC):
    """Read slices of stored tensors into parameters. A context manager: leaving it stops all work and closes all files.

    Attributes:
        lookahead: How many parameters to start before waiting for the first; 0 means that ``fill`` itself waits.
        bytes_read: Bytes delivered so far, over all parameters.
    """

    lookahead: int = 0
    bytes_read: int = 0

    @abstractmethod
    def empty(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, pieces: Iterable[Piece]
    ) -> torch.Tensor:
        """Make a parameter to fill with these pieces.

        Args:
            shape: Shape of the parameter.
            dtype: Its dtype.
            device: Where it lies.
            pieces: What ``fill`` will be called with.

        Returns:
            An uninitialized tensor. On the CPU, a parameter that lies in a file as it is (one run of bytes: a whole tensor,
            rows of it, or pieces that follow each other) becomes the file's own pages, copy-on-write: nothing is copied, and
            ``fill`` finds it filled.
        """

    @abstractmethod
    def fill(self, tensor: torch.Tensor, pieces: Iterable[Piece]) -> Filled:
        """Start to fill a parameter in place.

        Args:
            tensor: The parameter; what no piece covers stays as it is.
            pieces: Which slice of which stored tensor goes where; each must match its place in shape and dtype.

        Returns:
            A handle to wait on before the parameter is used.

        Raises:
            CheckpointError: A piece doesn't fit its place, or (if ``lookahead`` is 0) can't be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop all work and give back files, threads and buffers; may be called again."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_reader(device: torch.device | str) -> Reader:
    """Return the reader for parameters on a device.

    Args:
        device: ``cuda`` devices get the threaded reader; any other is filled through the CPU.
    """
    device = torch.device(device)
    if device.type == "cuda":
        from minisgl.checkpoint.reader_cuda import CudaReader

        return CudaReader(device)
    return CpuReader()


def num_threads(most: int) -> int:
    """Return how many threads are worth having: as many as can run at once, but not more than ``most``."""
    can_run = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(most, can_run)


class _Ready:
    """Stand for a parameter that is filled already."""

    def wait(self) -> None:
        """Return at once."""


class CpuReader(Reader):
    """Read one parameter at a time, a large one with a few threads. Holds no memory of its own."""

    def __init__(self) -> None:
        self._files = OpenFiles()
        self._of_thread = threading.local()  # open files, as no two threads may share them
        self._opened: list[OpenFiles] = []
        self._threads: ThreadPoolExecutor | None = None
        self._mapped: tuple[torch.Tensor, SourceBox] | None = None

    def empty(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, pieces: Iterable[Piece]
    ) -> torch.Tensor:
        """Make a parameter: the file's pages where they are all of it, else memory (see ``Reader.empty``)."""
        self._mapped = None
        boxes = [box_of(piece) for piece in pieces]
        mapped = mapped_run(self._files, boxes) if boxes and device.type == "cpu" else None
        if mapped is not None and mapped.numel() == math.prod(shape) and mapped.dtype == dtype:
            self._mapped = (mapped, boxes[0])
            return mapped.view(shape)
        return torch.empty(shape, dtype=dtype, device=device)

    def fill(self, tensor: torch.Tensor, pieces: Iterable[Piece]) -> Filled:
        """Fill a parameter in place and return when it is full (see ``Reader.fill``)."""
        boxes = [box_and_view(tensor, piece) for piece in pieces]
        self.bytes_read += sum(box.num_bytes for box, _ in boxes)
        if self._is_mapped(boxes):
            return _Ready()
        parts = [part for box, view in boxes for part in cut(box, view, _PART_BYTES)]
        if tensor.nbytes < _THREADS_FROM_BYTES or len(parts) < 2:
            for part in parts:
                self._read(part)
            return _Ready()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(num_threads(_MAX_THREADS), thread_name_prefix="weight-reader")
        try:
            for _ in self._threads.map(self._read, parts):
                pass
        except BaseException:  # also Ctrl-C: nothing may go on writing into the parameter
            self.close()
            raise
        return _Ready()

    def _read(self, part: tuple[SourceBox, torch.Tensor]) -> None:
        """Read one part of a parameter, in whichever thread."""
        box, place = part
        if not hasattr(self._of_thread, "files"):
            self._of_thread.files = OpenFiles()
            self._opened.append(self._of_thread.files)
        files: OpenFiles = self._of_thread.files
        if place.device.type == "cpu":
            read_box(files, box, as_numpy(place))
        else:  # a device without a reader of its own: through a little CPU memory
            staging = torch.empty(box.lengths, dtype=place.dtype, device="cpu")
            read_box(files, box, as_numpy(staging))
            place.copy_(staging)

    def _is_mapped(self, boxes: list[tuple[SourceBox, torch.Tensor]]) -> bool:
        """Tell whether all places are the very pages of the file that belong there: ``empty`` has just mapped them.

        Reading into them would be right too, only slower: it would make copies of the pages.
        """
        mapped, self._mapped = self._mapped, None
        if mapped is None:
            return False
        memory, first = mapped
        address_of_file = memory.data_ptr() - first.span[0]
        return all(
            box.source.file == first.source.file
            and view.data_ptr() == address_of_file + box.span[0]
            and view.is_contiguous()
            for box, view in boxes
        )

    def close(self) -> None:
        """End the threads and close the files."""
        self._mapped = None
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        for files in (self._files, *self._opened):
            files.close()

"""Arithmetic on slices of stored tensors: where a slice's bytes lie, and how to cut a large slice into parts."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from minisgl.checkpoint._fault import fault, quoted
from minisgl.checkpoint._header import StoredTensor


@dataclass(frozen=True)
class Piece:
    """Ask for one slice of a stored tensor.

    Attributes:
        source: The stored tensor.
        source_slice: One ``slice`` (step 1) per dimension of the source; those left out at the end are taken whole.
    """

    source: StoredTensor
    source_slice: tuple[slice, ...]

    @cached_property
    def box(self) -> "SourceBox":
        """The part of the file that the slices name.

        Raises:
            CheckpointError: There are more slices than dimensions, or one leaves the stored tensor.
        """
        source = self.source
        slices = (*self.source_slice, *[slice(None)] * (len(source.shape) - len(self.source_slice)))
        if len(slices) != len(source.shape):
            raise _misfit(source, f"{len(slices)} slices for shape {source.shape}", "at most one slice per dimension")
        starts, lengths = [], []
        for wanted, size in zip(slices, source.shape, strict=True):
            start, stop = wanted.start or 0, size if wanted.stop is None else wanted.stop
            if not 0 <= start <= stop <= size or wanted.step not in (None, 1):
                raise _misfit(source, f"{wanted} of a dimension of size {size}", "a slice inside the stored tensor")
            starts.append(start)
            lengths.append(stop - start)
        return SourceBox(source, tuple(starts), tuple(lengths))


@dataclass(frozen=True)
class ParameterPlan:
    """Say how one parameter comes about.

    Attributes:
        name: The model's name for it.
        shape: Its shape on this rank: [rows], [rows, columns] or [experts, rows, columns].
        pieces: At least one, all of one dtype. They fill its rows end to end, the rows of all experts in one count; rows
            behind the last piece are zeros.
    """

    name: str
    shape: tuple[int, ...]
    pieces: Sequence[Piece]

    @property
    def dtype(self) -> torch.dtype:
        """Its dtype: the file's."""
        return self.pieces[0].source.dtype

    @property
    def num_bytes(self) -> int:
        """Size of the parameter in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class SourceBox:
    """A rectangular part of a stored tensor.

    Attributes:
        source: The stored tensor.
        starts: First index in each dimension.
        lengths: Number of indices in each dimension.
    """

    source: StoredTensor
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @cached_property
    def num_bytes(self) -> int:
        """Size of the part in bytes."""
        num_bytes = self.source.dtype.itemsize
        for length in self.lengths:
            num_bytes *= length
        return num_bytes

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index to the next in the file, per dimension."""
        strides, stride = [], self.source.dtype.itemsize
        for size in reversed(self.source.shape):
            strides.append(stride)
            stride *= size
        return tuple(reversed(strides))

    @cached_property
    def span(self) -> tuple[int, int]:
        """First byte in the file, and the byte behind the last; everything of the part lies between (with gaps)."""
        begin = self.source.offset + sum(
            start * stride for start, stride in zip(self.starts, self.strides, strict=True)
        )
        last = begin + sum((length - 1) * stride for length, stride in zip(self.lengths, self.strides, strict=True))
        return begin, last + self.source.dtype.itemsize

    @cached_property
    def is_run(self) -> bool:
        """Whether the part is one run of bytes."""
        return self.num_bytes == self.span[1] - self.span[0]

    @cached_property
    def run_bytes(self) -> int:
        """Size of each run of bytes that the part consists of."""
        return (
            self.num_bytes if self.is_run else math.prod(self.lengths[self._num_outer :]) * self.source.dtype.itemsize
        )

    @cached_property
    def _num_outer(self) -> int:
        """Number of the first dimensions along which the part jumps from run to run."""
        inner = len(self.lengths)
        while inner > 0 and self.lengths[inner:] == self.source.shape[inner:]:
            inner -= 1
        return inner

    def runs(self) -> list[int]:
        """List the first byte of each run, in order."""
        if self.is_run:
            return [self.span[0]]
        begins = np.array([self.span[0]])
        for length, stride in zip(self.lengths[: self._num_outer], self.strides, strict=False):
            begins = (begins[:, None] + np.arange(length) * stride).reshape(-1)
        return begins.tolist()

    def part(self, dim: int, start: int, length: int) -> "SourceBox":
        """Return the part of this box from ``start`` on in one dimension."""
        starts, lengths = list(self.starts), list(self.lengths)
        starts[dim] += start
        lengths[dim] = length
        return SourceBox(self.source, tuple(starts), tuple(lengths))


def lay_out(plan: ParameterPlan) -> list["SourceBox"]:
    """List the parts of files that fill a parameter end to end, and look whether they fit.

    Raises:
        CheckpointError: A piece has another dtype or other columns than the parameter, or leaves the stored tensor; or the
            pieces have more rows than the parameter has.
    """
    row_dims = 2 if len(plan.shape) == 3 else 1
    num_rows, row_shape = math.prod(plan.shape[:row_dims]), plan.shape[row_dims:]
    boxes, num_filled = [], 0
    for piece in plan.pieces:
        box = piece.box
        if not box.lengths or box.lengths[1:] != row_shape or num_filled + box.lengths[0] > num_rows:
            left = (num_rows - num_filled, *row_shape)
            raise _misfit(
                piece.source, f"a slice of shape {box.lengths} for {left} left of {plan.name}", "a slice that fits"
            )
        if piece.source.dtype != plan.dtype:
            found = f"stored as {piece.source.dtype}, read into {plan.dtype}"
            raise _misfit(piece.source, found, "equal dtypes; convert after reading")
        boxes.append(box)
        num_filled += box.lengths[0]
    return boxes


def _misfit(source: StoredTensor, found: str, expected: str) -> Exception:
    place = f"{source.file}: tensor {quoted(source.key)}"
    return fault(place, found, expected, "load a checkpoint that fits the config")


def cut(box: SourceBox, max_bytes: int) -> Iterator[SourceBox]:
    """Cut a slice into parts of at most ``max_bytes`` bytes and of nearly equal size, in order."""
    if box.num_bytes == 0:
        return
    if box.num_bytes <= max_bytes:
        yield box
        return
    dim = next(dim for dim, length in enumerate(box.lengths) if length > 1)
    length = box.lengths[dim]
    step = max(1, length // -(-box.num_bytes // max_bytes))
    for start in range(0, length, step):
        yield from cut(box.part(dim, start, min(step, length - start)), max_bytes)


@dataclass(frozen=True)
class Part:
    """Hold slices that lie end to end in a parameter, together small enough for a buffer."""

    boxes: list[SourceBox]
    num_bytes: int


def in_parts(boxes: Iterable[SourceBox], max_bytes: int) -> Iterator[Part]:
    """Divide slices that fill memory end to end into parts of at most ``max_bytes`` bytes: neighbours or a cut of one.

    So the many small slices of a mixture of experts travel in few long runs.
    """
    together: list[SourceBox] = []
    num_bytes = 0
    for box in boxes:
        for cut_box in cut(box, max_bytes):
            if num_bytes + cut_box.num_bytes > max_bytes:
                yield Part(together, num_bytes)
                together, num_bytes = [], 0
            together.append(cut_box)
            num_bytes += cut_box.num_bytes
    if together:
        yield Part(together, num_bytes)

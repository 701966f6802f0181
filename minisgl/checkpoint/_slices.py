"""Arithmetic on slices of stored tensors: where a slice's bytes lie, and how to cut a large slice into parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from minisgl.checkpoint._fault import fault, quoted
from minisgl.checkpoint._header import StoredTensor


@dataclass(frozen=True)
class Piece:
    """Ask for one slice of a stored tensor to be put into one place of a parameter.

    Attributes:
        source: The stored tensor.
        source_slice: One ``slice`` (step 1) per dimension of the source; those left out at the end are taken whole.
        slot: The place in the parameter, as an index of whole numbers and slices: the bytes go to ``parameter[slot]``.
    """

    source: StoredTensor
    source_slice: tuple[slice, ...]
    slot: tuple[slice | int, ...]


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
    def run_dims(self) -> int:
        """Number of the last dimensions that lie in one run of bytes: the first of them may be a part, the rest is whole."""
        inner = len(self.lengths)
        while inner > 0 and self.lengths[inner:] == self.source.shape[inner:]:
            inner -= 1
        return len(self.lengths) - inner

    def part(self, dim: int, start: int, length: int) -> "SourceBox":
        """Return the part of this box from ``start`` on in one dimension."""
        starts, lengths = list(self.starts), list(self.lengths)
        starts[dim] += start
        lengths[dim] = length
        return SourceBox(self.source, tuple(starts), tuple(lengths))


def box_of(piece: Piece) -> SourceBox:
    """Turn a piece's slices into the part of the file that they name.

    Raises:
        CheckpointError: There are more slices than dimensions, or one leaves the stored tensor.
    """
    source = piece.source
    slices = (*piece.source_slice, *[slice(None)] * (len(source.shape) - len(piece.source_slice)))
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


def box_and_view(tensor: torch.Tensor, piece: Piece) -> tuple[SourceBox, torch.Tensor]:
    """Turn a piece into the part of the file to read and the view of the parameter to fill, of one shape.

    Raises:
        CheckpointError: Slice and slot differ in shape or in dtype, or the slice leaves the stored tensor.
    """
    source, box, view = piece.source, box_of(piece), tensor[piece.slot]
    if tuple(view.shape) != box.lengths:
        found = f"a slice of shape {box.lengths} for a place of shape {tuple(view.shape)}"
        raise _misfit(source, found, "equal shapes")
    if tensor.dtype != source.dtype:
        found = f"stored as {source.dtype}, read into {tensor.dtype}"
        raise _misfit(source, found, "equal dtypes; convert after reading")
    return box, view


def _misfit(source: StoredTensor, found: str, expected: str) -> Exception:
    place = f"{source.file}: tensor {quoted(source.key)}"
    return fault(place, found, expected, "load a checkpoint that fits the config")


def cut(box: SourceBox, view: torch.Tensor, max_bytes: int) -> Iterator[tuple[SourceBox, torch.Tensor]]:
    """Cut a slice into parts of at most ``max_bytes`` bytes whose places are contiguous.

    Args:
        box: The part of the file.
        view: Where it goes; of the box's shape, any strides.
        max_bytes: Largest size of a part in bytes.

    Yields:
        Parts of the box with their views, in order.
    """
    if box.num_bytes == 0:
        return
    if box.num_bytes <= max_bytes and view.is_contiguous():
        yield box, view
        return
    dim = next(dim for dim, length in enumerate(box.lengths) if length > 1)
    length = box.lengths[dim]
    # Few large parts where the place is contiguous; else one index at a time until it is.
    step = max(1, length * max_bytes // box.num_bytes) if view.is_contiguous() else 1
    for start in range(0, length, step):
        count = min(step, length - start)
        yield from cut(box.part(dim, start, count), view.narrow(dim, start, count), max_bytes)

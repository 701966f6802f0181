"""Read a part of a file into given memory: no copy besides, no byte outside it, and a clear error on a short file."""

import mmap
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from minisgl.checkpoint._fault import fault, quoted
from minisgl.checkpoint._memory import map_file
from minisgl.checkpoint._slices import SourceBox

# A checkpoint may have a file per tensor (36,000 of them), so only the last few used stay open.
_MAX_OPEN_FILES = 16
# Smaller parameters are cheaper to copy than to map.
_MAPPED_FROM_BYTES = 1024 * 1024
# From here on a look for holes (2 microseconds) costs nothing beside the read.
_HOLE_FROM_BYTES = 256 * 1024
# Rows of this many bytes are copied out of a mapping, which costs half of what a call for each row does. For longer rows
# the calls cost nothing beside the copy; shorter ones would map a page for a few bytes of it.
_MAPPED_ROW_BYTES = range(512, 64 * 1024)
_SECTOR_BYTES = 512  # the unit of st_blocks


class OpenFiles:
    """Keep the last few files open. Not for use by several threads at once: each reads through its own."""

    def __init__(self) -> None:
        self._descriptors: OrderedDict[Path, int] = OrderedDict()
        self._may_have_holes: dict[int, bool] = {}

    def descriptor(self, file: Path) -> int:
        """Return an open descriptor of the file.

        Raises:
            CheckpointError: The file can't be opened any more.
        """
        if file in self._descriptors:
            self._descriptors.move_to_end(file)
            return self._descriptors[file]
        if len(self._descriptors) >= _MAX_OPEN_FILES:
            os.close(self._descriptors.popitem(last=False)[1])
        try:
            self._descriptors[file] = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise fault(
                file,
                f"can't be opened ({error.strerror})",
                "the file whose header was read before",
                "leave the checkpoint in place while it is loaded",
            ) from None
        state = os.fstat(self._descriptors[file])
        self._may_have_holes[self._descriptors[file]] = state.st_blocks * _SECTOR_BYTES < state.st_size
        return self._descriptors[file]

    def may_have_holes(self, descriptor: int) -> bool:
        """Tell whether an open file takes less of the disk than its size, so that a look for holes is worth a call."""
        return self._may_have_holes[descriptor]

    def close(self) -> None:
        """Close all files."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])


def read_box(files: OpenFiles, box: SourceBox, out: np.ndarray) -> None:
    """Read a part of a stored tensor into memory: in one go where it is one run of bytes, else row by row.

    Args:
        files: The open files to read through.
        box: The part to read.
        out: As many bytes, uint8 [num_bytes]; overwritten in place.

    Raises:
        CheckpointError: The file has become shorter than its header promised, or can't be read.
    """
    if out.size == 0:
        return
    descriptor = files.descriptor(box.source.file)
    try:
        if _is_hole(files, box):
            out.fill(0)
        elif not box.is_run and box.run_bytes in _MAPPED_ROW_BYTES:
            _copy_mapped(descriptor, box, out)
        else:
            memory = out.data
            for number, begin in enumerate(box.runs()):
                run = memory[number * box.run_bytes : (number + 1) * box.run_bytes]
                while run:  # one call returns at most 2 GiB
                    num_read = os.preadv(descriptor, [run], begin)
                    if num_read == 0:
                        raise _short(box, os.fstat(descriptor).st_size)
                    run, begin = run[num_read:], begin + num_read
    except OSError as error:
        raise fault(
            box.source.file,
            f"tensor {quoted(box.source.key)} can't be read ({error.strerror})",
            "a readable file",
            "check the disk or the network mount, then load again",
        ) from None


def mapped_run(files: OpenFiles, boxes: Sequence[SourceBox]) -> torch.Tensor | None:
    """Map parts of stored tensors that lie end to end in one file, if together they are one large run of bytes.

    Args:
        files: The open files to map through.
        boxes: The parts, in the order in which they are wanted; at least one.

    Returns:
        Their elements [num_elements], sharing the file's pages until written to; None where the parts are several runs of
        bytes, small, misaligned or a hole, or where mapping isn't possible.
    """
    source, begin, end = boxes[0].source, boxes[0].span[0], boxes[0].span[0]
    for box in boxes:
        is_next = box.source.file == source.file and box.source.dtype == source.dtype and box.span[0] == end
        if not is_next or not box.is_run:
            return None
        end = box.span[1]
    if end - begin < _MAPPED_FROM_BYTES or begin % source.dtype.itemsize:
        return None
    descriptor = files.descriptor(source.file)
    if os.fstat(descriptor).st_size < end:
        return None
    if all(_is_hole(files, box) for box in boxes):
        return None
    memory = map_file(descriptor, begin, end - begin)
    return memory.view(source.dtype) if memory is not None else None


def _is_hole(files: OpenFiles, box: SourceBox) -> bool:
    """Tell whether the part lies in a hole of a sparse file, which reads as zeros without being read."""
    descriptor, (begin, end) = files.descriptor(box.source.file), box.span
    if not files.may_have_holes(descriptor) or end - begin < _HOLE_FROM_BYTES or not hasattr(os, "SEEK_DATA"):
        return False
    try:
        return os.lseek(descriptor, begin, os.SEEK_DATA) >= end
    except OSError:  # no data behind `begin`: a hole up to the file's end, if the file still reaches that far
        return os.fstat(descriptor).st_size >= end


def _copy_mapped(descriptor: int, box: SourceBox, out: np.ndarray) -> None:
    """Copy rows out of a mapping of the file that lives only for this copy, so that its pages stop counting at once."""
    begin, end = box.span
    file_bytes = os.fstat(descriptor).st_size
    if file_bytes < end:  # reading behind the end of a mapped file would kill the process
        raise _short(box, file_bytes)
    first_page = begin - begin % mmap.ALLOCATIONGRANULARITY
    with mmap.mmap(descriptor, end - first_page, prot=mmap.PROT_READ, offset=first_page) as mapping:
        integers = np.dtype(f"i{box.source.dtype.itemsize}")  # of the same size, as numpy has no bfloat16
        stored = np.ndarray(box.lengths, integers, mapping, begin - first_page, box.strides)
        np.copyto(out.view(integers).reshape(box.lengths), stored)
        del stored  # a mapping can't be closed while an array looks into it


def _short(box: SourceBox, file_bytes: int) -> Exception:
    source = box.source
    return fault(
        source.file,
        f"only {file_bytes} bytes left while reading tensor {quoted(source.key)}",
        f"at least {source.offset + source.num_bytes} bytes, as when its header was read",
        "don't change the checkpoint while it is loaded; if it is incomplete, download it again",
    )

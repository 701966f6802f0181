"""What a memory race loads, in which ways, and the peak that each way must have: arithmetic on the files' headers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from minisgl.checkpoint import StoredTensor, open_checkpoint, standard_tensors
from minisgl.checkpoint._read import _MAPPED_FROM_BYTES
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.errors import MinisglError
from minisgl.viz.known import KNOWN, Config, small
from minisgl.viz.layout import Sharding, parameters_of

BUILD, EVERYTHING, MERGE, OURS, STUDENT = "build", "everything", "merge", "ours", "student"
STRATEGIES = {
    BUILD: "build, read, merge, copy",
    EVERYTHING: "everything at once",
    MERGE: "everything, then merge",
    OURS: "our loader",
    STUDENT: "your loader",
}
# Name -> config and whether the files also hold the tied head, as Qwen3-0.6B's do.
SHAPES: dict[str, tuple[Config, bool]] = {
    "Qwen3 with 4 layers, 0.2 GB": (small("Qwen3-0.6B", num_hidden_layers=4, vocab_size=32768), False),
    "Qwen3-MoE with 2 layers, 0.5 GB": (
        small("Qwen3-30B-A3B", num_hidden_layers=2, num_experts=16, vocab_size=16384), False,
    ),
    "Qwen3-0.6B, 1.5 GB": (KNOWN["Qwen3-0.6B"], True),
    "Qwen3-8B, 16 GB": (KNOWN["Qwen3-8B"], False),
    "Llama-3-70B, 141 GB": (KNOWN["Llama-3-70B"], False),
}  # fmt: skip


# A larger checkpoint stays all holes: to bring its many pages in would take minutes, and more memory than a laptop has.
_ALL_HOLES_FROM_BYTES = 20 * 10**9


@dataclass(frozen=True)
class RaceSettings:
    """Say what to race on.

    Attributes:
        checkpoint: A name of ``SHAPES`` (its files are made of holes, which take no disk and read as zeros), or a folder.
        num_files: Over how many files a made checkpoint is spread.
        tp_size: Number of ranks.
        tp_rank: The rank whose share is loaded.
        shuffled: Whether a made checkpoint has any tensor in any file.
        keep: Whether the parameters are kept, as in a CPU's model, or dropped as soon as they are handed out, as when they
            go to a GPU. Either way each is read through once, so that no strategy gains by putting that off.
    """

    checkpoint: str = next(iter(SHAPES))
    num_files: int = 4
    tp_size: int = 1
    tp_rank: int = 0
    shuffled: bool = False
    keep: bool = True


@dataclass(frozen=True)
class Prediction:
    """Say what a strategy must take above what the process had before, in bytes.

    Attributes:
        anonymous_bytes: Peak of memory that must stay.
        resident_bytes: Peak of all resident memory, with the pages of mapped files.
        why: How the first figure comes about.
    """

    anonymous_bytes: int
    resident_bytes: int
    why: str


@dataclass(frozen=True)
class Stored:
    """Describe a checkpoint that is raced on.

    Attributes:
        folder: Where it lies.
        tensors: What its headers say, under the usual names.
        sharding: How the ranks share it.
    """

    folder: Path
    tensors: Mapping[str, StoredTensor]
    sharding: Sharding

    @property
    def num_bytes(self) -> int:
        """Size of all stored tensors."""
        return sum(tensor.num_bytes for tensor in self.tensors.values())

    def local_bytes(self, key: str) -> int:
        """Size of this rank's part of a tensor."""
        tensor = self.tensors[key]
        return self.sharding.local_size(key, tensor.shape) * tensor.dtype.itemsize

    def param_bytes(self) -> dict[str, int]:
        """Size of this rank's part of every parameter."""
        return {name: sum(map(self.local_bytes, keys)) for name, keys in parameters_of(self.tensors).items()}

    def copied_bytes(self) -> dict[str, int]:
        """Size of the parameters that merging makes anew; the others are the stored tensors themselves."""
        groups, sizes = parameters_of(self.tensors), self.param_bytes()
        return {name: sizes[name] for name, keys in groups.items() if len(keys) > 1 or self._is_cut(keys[0])}

    def mapped_params(self) -> set[str]:
        """Name the parameters that the loader leaves where they are: in the file, as one run of bytes, and not small."""
        if sys.platform != "linux":
            return set()
        return {name for name, keys in parameters_of(self.tensors).items() if self._is_one_run(keys)}

    def _is_one_run(self, keys: Sequence[str]) -> bool:
        """Tell whether this rank's parts of some tensors follow each other in one file."""
        tensors = [self.tensors[key] for key in keys]
        shares = [self.sharding.share(key, tensor.shape) for key, tensor in zip(keys, tensors, strict=True)]
        for tensor, share in zip(tensors, shares, strict=True):
            is_whole_rows = share.dim in (None, 0) or share.size == tensor.shape[share.dim]
            if not is_whole_rows or share.padding:
                return False
        begins, sizes = [self._first_byte(key) for key in keys], [self.local_bytes(key) for key in keys]
        ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
        is_end_to_end = begins[1:] == ends[:-1] and len({tensor.file for tensor in tensors}) == 1
        return is_end_to_end and sum(sizes) >= _MAPPED_FROM_BYTES and any(self._has_data(key) for key in keys)

    def _first_byte(self, key: str) -> int:
        """Where this rank's rows of a tensor begin in its file."""
        tensor, share = self.tensors[key], self.sharding.share(key, self.tensors[key].shape)
        first_row = share.start if share.dim == 0 else 0
        return tensor.offset + first_row * (tensor.num_bytes // tensor.shape[0])

    def _has_data(self, key: str) -> bool:
        """Tell whether this rank's rows of a tensor aren't just a hole of a sparse file."""
        begin = self._first_byte(key)
        with open(self.tensors[key].file, "rb") as opened:
            try:
                return os.lseek(opened.fileno(), begin, os.SEEK_DATA) < begin + self.local_bytes(key)
            except OSError:  # nothing but a hole from there on
                return False

    def _is_cut(self, key: str) -> bool:
        return self.sharding.local_shape(key, self.tensors[key].shape) != self.tensors[key].shape


def make_stored(settings: RaceSettings, scratch: Path) -> Stored:
    """Open the checkpoint of the settings, or make it in ``scratch`` (a folder that the caller removes).

    Raises:
        MinisglError: There is no such folder, or it can't be raced on.
    """
    folder = Path(settings.checkpoint).expanduser()
    if settings.checkpoint in SHAPES:
        config, has_tied_head = SHAPES[settings.checkpoint]
        layout = "shuffled" if settings.shuffled else "sorted"
        folder = scratch / f"{abs(hash((settings.checkpoint, settings.num_files, layout))):x}"
        if not folder.exists():
            make_checkpoint(
                folder, config, data="sparse", files=settings.num_files, layout=layout, stored_tied_head=has_tied_head
            )
            if sum(file.stat().st_size for file in folder.iterdir()) < _ALL_HOLES_FROM_BYTES:
                _put_data_in_holes(folder)
    tensors = standard_tensors(open_checkpoint(folder))
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MinisglError(
            f"{folder} has no readable config.json ({error}). Expected a model's folder. Check the path."
        ) from error
    return Stored(folder, tensors, Sharding(config, settings.tp_size, settings.tp_rank))


def _put_data_in_holes(folder: Path) -> None:
    """Write a few bytes into each large tensor of a sparse checkpoint.

    A loader may tell holes from data and treat them better; a tensor that has data in each eighth of it, whatever the rank,
    gets no such favour.
    """
    for tensor in open_checkpoint(folder).tensors.values():
        if tensor.num_bytes >= _MAPPED_FROM_BYTES:
            with open(tensor.file, "r+b") as opened:
                for eighth in range(8):
                    opened.seek(tensor.offset + eighth * (tensor.num_bytes // 8))
                    opened.write(b"\0\0")


def predict(strategy: str, stored: Stored, keep: bool) -> Prediction:
    """Compute a strategy's peaks from sizes alone."""
    if strategy in (OURS, STUDENT):
        sizes, mapped = stored.param_bytes(), stored.mapped_params()
        copied = [num_bytes for name, num_bytes in sizes.items() if name not in mapped] or [0]
        if keep:
            return Prediction(
                sum(copied), sum(sizes.values()), "what no file holds as one run of bytes; the rest stays the file's own pages"
            )
        return Prediction(max(copied), max(sizes.values()), "the largest that no file holds as one run: each is dropped")
    whole, mapped_peak = stored.num_bytes, _peak_while_mapped(stored)
    if strategy == BUILD:
        total = whole + sum(stored.copied_bytes().values()) + sum(stored.param_bytes().values())
        return Prediction(total, max(mapped_peak, total), "every stored tensor, the merged ones a second time, and the model")
    if strategy == EVERYTHING:
        return Prediction(whole, mapped_peak, "every stored tensor, whole")
    copies = stored.copied_bytes()
    extra = sum(copies.values()) if keep else max(copies.values(), default=0)
    return Prediction(
        whole + extra, max(mapped_peak, whole + extra), "every stored tensor, and the merged ones a second time"
    )


def _peak_while_mapped(stored: Stored) -> int:
    """The copies so far plus the pages of the file that they are read from, at its end, over all files."""
    in_file: dict[Path, int] = {}
    for tensor in stored.tensors.values():
        in_file[tensor.file] = in_file.get(tensor.file, 0) + tensor.num_bytes
    copied = peak = 0
    for num_bytes in in_file.values():
        copied += num_bytes
        peak = max(peak, copied + num_bytes)
    return peak


def available_bytes() -> int:
    """Memory that a new process can have: what the machine has left, or what the container allows if that is less."""
    available = psutil.virtual_memory().available
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return min(available, max(0, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):  # no container, or no limit
        return available

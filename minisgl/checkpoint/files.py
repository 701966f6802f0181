"""Open a checkpoint folder: find its files, read their headers, and refuse whatever can't be trusted.

Nothing but headers is read here, so that every fault of the files is known before the first tensor is.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from minisgl.checkpoint._fault import fault, listed
from minisgl.checkpoint._header import LOADED_DTYPES, RawEntry, StoredTensor, read_header
from minisgl.checkpoint._index import INDEX_NAME, files_lying_in, files_named_by, read_index

__all__ = ["Checkpoint", "StoredTensor", "open_checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """Describe a checkpoint folder whose files agree with each other and with the index.

    Attributes:
        folder: The folder.
        files: The files that count, in natural order of their names (2 before 10).
        tensors: Every tensor by its key, in the order of the files and of the bytes in them.
    """

    folder: Path
    files: tuple[Path, ...]
    tensors: dict[str, StoredTensor]

    @property
    def num_bytes(self) -> int:
        """Size of all tensors in bytes."""
        return sum(tensor.num_bytes for tensor in self.tensors.values())


def open_checkpoint(folder: str | Path) -> Checkpoint:
    """Read the headers of a checkpoint's files and check them against each other and the index.

    Args:
        folder: A folder with ``*.safetensors`` files, with or without ``model.safetensors.index.json``.

    Returns:
        Where each tensor lies. Holds no open file.

    Raises:
        CheckpointError: Files are missing, damaged, unreadable or of another format; they disagree with the index; a
            tensor lies in two files; a tensor's type shows a quantized checkpoint. The message names file and tensor.
    """
    folder = Path(folder)
    _check_folder(folder)
    weight_map = read_index(folder)
    files = files_lying_in(folder) if weight_map is None else files_named_by(folder, weight_map)
    entries = {file: read_header(file) for file in files}
    _check_each_tensor_once(folder, entries)
    if weight_map is not None:
        _check_against_index(folder, entries, weight_map)
    if not any(entries.values()):
        raise fault(folder, "its safetensors files hold no tensor", "a model's tensors", "download the model again")
    _check_dtypes(folder, entries)
    tensors = {
        entry.key: StoredTensor(
            entry.key, file, LOADED_DTYPES[entry.dtype_name], entry.shape, entry.begin, entry.end - entry.begin
        )
        for file, in_file in entries.items()
        for entry in in_file
    }
    return Checkpoint(folder, tuple(files), tensors)


def _check_folder(folder: Path) -> None:
    advice = "check the path; a model of the hub is downloaded first"
    try:
        is_folder, exists = folder.is_dir(), folder.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        is_folder = exists = False
    if not is_folder:
        found = "a file" if exists else "no such folder"
        raise fault(ascii(str(folder)).strip("'"), found, "a folder with a model's *.safetensors files", advice)


def _check_each_tensor_once(folder: Path, entries: dict[Path, list[RawEntry]]) -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file, in_file in entries.items():
        name = _relative(folder, file)
        for entry in in_file:
            homes[entry.key].append(name)
    twice = [f"{key} in {' and '.join(names)}" for key, names in homes.items() if len(names) > 1]
    if twice:
        raise fault(
            folder,
            f"tensors in more than one file ({len(twice)}): {listed(twice)}",
            "each tensor in one file",
            "remove the files that don't belong to the model, or download its index",
        )


def _check_against_index(folder: Path, entries: dict[Path, list[RawEntry]], weight_map: dict[str, str]) -> None:
    """Report every tensor that the index and the files place differently."""
    index = folder / INDEX_NAME
    homes = {entry.key: file for file, in_file in entries.items() for entry in in_file}
    advice = "download the index and the files again, from one revision"
    absent = [f"{key} in {name}" for key, name in weight_map.items() if key not in homes]
    if absent:
        raise fault(
            index,
            f"tensors that it names but no file holds ({len(absent)}): {listed(absent)}",
            "files that hold what the index names",
            advice,
        )
    unnamed = [f"{key} in {_relative(folder, file)}" for key, file in homes.items() if key not in weight_map]
    if unnamed:
        raise fault(
            index,
            f"tensors of the files that it doesn't name ({len(unnamed)}): {listed(unnamed)}",
            "an index that names every tensor",
            advice,
        )
    named = {name: folder / name for name in set(weight_map.values())}
    moved = [
        f"{key} in {_relative(folder, file)} (index: {weight_map[key]})"
        for key, file in homes.items()
        if named[weight_map[key]] != file
    ]
    if moved:
        raise fault(
            index,
            f"tensors in another file than it says ({len(moved)}): {listed(moved)}",
            "each tensor in the file that the index names",
            advice,
        )


def _check_dtypes(folder: Path, entries: dict[Path, list[RawEntry]]) -> None:
    """Refuse tensors that aren't plain floating-point weights: whatever the config says, they show quantization."""
    foreign = [
        (entry, file) for file, in_file in entries.items() for entry in in_file if entry.dtype_name not in LOADED_DTYPES
    ]
    if foreign:
        kinds = ", ".join(sorted({entry.dtype_name for entry, _ in foreign}))
        names = [f"{entry.key} ({entry.dtype_name}) in {_relative(folder, file)}" for entry, file in foreign]
        raise fault(
            folder,
            f"tensors of type {kinds}, as in a quantized checkpoint ({len(names)}): {listed(names)}",
            f"only {', '.join(sorted(LOADED_DTYPES))}",
            "get the model's unquantized checkpoint",
        )


def _relative(folder: Path, file: Path) -> str:
    return str(file.relative_to(folder))

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

ROTARY_TABLE = "rotary_emb.inv_freq"
# Quantization method -> sets of last words of tensor names, any of which shows it.
_MARKS: dict[str, tuple[set[str], ...]] = {
    "gptq": ({"qweight", "g_idx"},),
    "awq": ({"qweight", "qzeros"},),
    "bitsandbytes": ({"absmax"}, {"SCB"}, {"quant_map"}),
    "compressed-tensors": ({"weight_packed"},),
    "MLX": ({"weight", "scales", "biases"},),
}


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
        raise fault(folder, "its safetensors files hold no tensor", "a model's tensors", "check what this folder is")
    _check_dtypes(folder, entries)
    tensors = {
        entry.key: StoredTensor(
            entry.key, file, LOADED_DTYPES[entry.dtype_name], entry.shape, entry.begin, entry.end - entry.begin
        )
        for file, in_file in entries.items()
        for entry in in_file
        if entry.dtype_name in LOADED_DTYPES
    }
    return Checkpoint(folder, tuple(files), tensors)


def _check_folder(folder: Path) -> None:
    advice = "check the path; a model of the hub is downloaded first"
    try:
        is_folder, exists = folder.is_dir(), folder.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte, or a folder that may not be entered
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
    """Refuse tensors that aren't 32- or 16-bit floating-point weights, and say what they are.

    Rotary tables are left alone whatever their type: nobody reads them.
    """
    foreign = [
        (entry, file)
        for file, in_file in entries.items()
        for entry in in_file
        if entry.dtype_name not in LOADED_DTYPES and not entry.key.endswith(ROTARY_TABLE)
    ]
    if not foreign:
        return
    kinds = {entry.dtype_name for entry, _ in foreign}
    names = [f"{entry.key} ({entry.dtype_name}) in {_relative(folder, file)}" for entry, file in foreign]
    what, advice = _foreign_kind(kinds, {entry.key for in_file in entries.values() for entry in in_file})
    found = f"{what} of type {', '.join(sorted(kinds))} ({len(names)}): {listed(names)}"
    raise fault(folder, found, f"only {', '.join(sorted(LOADED_DTYPES))}", advice)


def _foreign_kind(kinds: set[str], keys: set[str]) -> tuple[str, str]:
    """Tell quantized weights, by their method where the names show it, from float64 ones and from stray integers."""
    parts = {key.rsplit(".", 1)[-1] for key in keys}
    method = next((name for name, marks in _MARKS.items() if any(mark <= parts for mark in marks)), None)
    if method is None and any(kind.startswith(("F8_", "F4", "F6_")) for kind in kinds):
        method = "fp8 or smaller"
    if method is not None:
        return f"tensors as {method} quantization stores them,", "get the model's unquantized checkpoint"
    if kinds == {"F64"}:
        return "float64 tensors", "save the model again in a smaller type: model.to(torch.bfloat16).save_pretrained(folder)"
    if kinds <= {"I64", "BOOL"}:
        return "tables of integers, which none of these models has,", "save the model again without these buffers"
    return "integer tensors, perhaps quantized weights,", "get the model's unquantized checkpoint in floating point"


def _relative(folder: Path, file: Path) -> str:
    return str(file.relative_to(folder))

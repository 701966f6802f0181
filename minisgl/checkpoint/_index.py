"""Which files of a checkpoint folder count: those that the index names, or, without one, what lies in the folder."""

import re
from collections import defaultdict
from pathlib import Path, PurePosixPath, PureWindowsPath

from minisgl.checkpoint._fault import fault, listed, quoted
from minisgl.checkpoint._untrusted import parse_json, read_regular_file
from minisgl.checkpoint.kinds import what_else

INDEX_NAME = "model.safetensors.index.json"
# Files of other tools and formats that often lie beside the weights. An index that names one overrules this.
LEFT_ALONE = ("consolidated", "adapter", "optimizer", "scheduler", "random_states", "training_state")
_SHARD_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{1,9})-of-(?P<total>\d{1,9})\.safetensors")
# The 36,000 tensors of a 235B MoE model need 4 MB.
_MAX_INDEX_BYTES = 32_000_000
_FIX_INDEX = "download the index again, or delete it if every *.safetensors file in the folder belongs to the model"


def natural_order(name: str) -> list[tuple[int, str]]:
    """Give the sort key under which ``model-2`` comes before ``model-10``."""
    return [
        (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)
        for part in re.split(r"([0-9]{1,18})", name)
    ]


def read_index(folder: Path) -> dict[str, str] | None:
    """Read the index: which tensor lies in which file.

    Returns:
        Tensor key → file name, relative to the folder; None where the folder has no index.

    Raises:
        CheckpointError: The index can't be read, isn't what an index is, or names a file outside the folder.
    """
    path = folder / INDEX_NAME
    if not path.exists() and not path.is_symlink():
        return None
    text, file_bytes = read_regular_file(path, _MAX_INDEX_BYTES, "the index, which is a file")
    if file_bytes > _MAX_INDEX_BYTES:
        raise fault(path, f"{file_bytes} bytes long", f"an index of at most {_MAX_INDEX_BYTES} bytes", _FIX_INDEX)
    index = parse_json(path, text, "the index", _FIX_INDEX)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        found = f"a JSON {type(index).__name__}" if not isinstance(index, dict) else f"weight_map {quoted(weight_map)}"
        raise fault(path, found, "an object whose weight_map maps each tensor to its file", _FIX_INDEX)
    wrong = {key: name for key, name in weight_map.items() if not isinstance(name, str)}
    if wrong:
        key, name = min(wrong.items(), key=lambda item: item[0])
        raise fault(path, f"weight_map maps {quoted(key)} to {quoted(name)}", "a file name", _FIX_INDEX)
    for name in sorted(set(weight_map.values())):
        _check_name(folder, path, name)
    return weight_map


def _check_name(folder: Path, index: Path, name: str) -> None:
    """Refuse an index entry that isn't a safetensors file inside the folder.

    A file that is itself a link is fine (the hub's cache links its files), a way through ``..`` or through
    a linked folder is not.
    """
    parts = set(PurePosixPath(name).parts) | set(PureWindowsPath(name).parts)
    printable = (name.isprintable() and name.isascii()) or all(character.isprintable() for character in name)
    leaves = PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).anchor) or ".." in parts
    if not leaves and printable:
        try:
            leaves = not (folder / name).parent.resolve().is_relative_to(folder.resolve())
        except (OSError, RuntimeError):
            leaves = True
    if leaves:
        raise fault(
            index,
            f"weight_map names the file {quoted(name)}, which leaves the folder",
            "files inside the checkpoint's folder",
            "don't trust this checkpoint, or correct the index",
        )
    if not printable or not name.endswith(".safetensors"):
        raise fault(
            index,
            f"weight_map names the file {quoted(name)}",
            "names that end with .safetensors",
            "convert the checkpoint to safetensors; pickle is never loaded here",
        )


def files_named_by(folder: Path, weight_map: dict[str, str]) -> list[Path]:
    """List the index's files in natural order.

    Raises:
        CheckpointError: Some are not there; all of them are named.
    """
    names = sorted(set(weight_map.values()), key=natural_order)
    missing = [name for name in names if not _is_there(folder / name)]
    if missing:
        raise fault(
            folder,
            f"missing files, {len(missing)} of the {len(names)} that {INDEX_NAME} names: {listed(missing)}",
            "all of them",
            "download the missing files",
        )
    return [folder / name for name in names]


def _is_there(file: Path) -> bool:
    try:
        return file.exists() or file.is_symlink()
    except OSError:  # a name longer than the file system allows
        return False


def files_lying_in(folder: Path) -> list[Path]:
    """List the folder's safetensors files in natural order, for a checkpoint without an index.

    Hidden files and those of other formats and tools (``LEFT_ALONE``) don't count.

    Raises:
        CheckpointError: There is none (the message says what lies there instead), or numbered shards are missing.
    """
    try:
        present = sorted((entry.name for entry in folder.iterdir()), key=natural_order)
    except OSError as error:
        raise fault(
            folder, f"can't be listed ({error.strerror})", "a readable folder", "check its permissions"
        ) from None
    tensors = [name for name in present if name.endswith(".safetensors") and not name.startswith(".")]
    counted = [name for name in tensors if not name.startswith(LEFT_ALONE)]
    if not counted:
        raise _nothing_to_load(folder, present, tensors)
    numbers: dict[tuple[str, int], set[int]] = defaultdict(set)
    width = 5
    for name in counted:
        if match := _SHARD_NAME.fullmatch(name):
            numbers[match["stem"], int(match["total"])].add(int(match["number"]))
            width = len(match["total"])
    for (stem, total), found in sorted(numbers.items()):
        if len(found) < total:
            missing = [number for number in range(1, min(total, 10_000) + 1) if number not in found]
            names = [f"{stem}-{number:0{width}}-of-{total:0{width}}.safetensors" for number in missing]
            raise fault(
                folder,
                f"missing files, {total - len(found)} of {total}: {listed(names)}",
                f"all files from 1 to {total}",
                "download the missing files",
            )
    return [folder / name for name in counted]


def _nothing_to_load(folder: Path, present: list[str], tensors: list[str]) -> Exception:
    """Say what the folder is, if it isn't a checkpoint in safetensors format."""
    expected = "a model's *.safetensors files"
    if known := what_else(folder):
        return fault(folder, known[0], expected, known[1])
    if tensors:
        found = f"only safetensors files of another format or tool: {listed(tensors)}"
        advice = f"get the files in the Hugging Face layout, or an {INDEX_NAME} that names these"
        return fault(folder, found, expected, advice)
    found = f"no safetensors file (it holds {listed(present) or 'nothing'})"
    return fault(folder, found, expected, "check the path, or download the model")

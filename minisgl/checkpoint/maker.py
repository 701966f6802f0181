"""Make checkpoints of exact shapes from a config: random, tagged or empty ones, spread over files in any way.

    python -m minisgl.checkpoint.maker Llama-3-70B FOLDER --data sparse --files 30

makes a 141 GB checkpoint that takes a few hundred KB of disk: its files are holes, which read as zeros.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import torch

from minisgl.checkpoint._entries import Entry, list_entries, spread
from minisgl.checkpoint._fault import fault
from minisgl.checkpoint._index import INDEX_NAME
from minisgl.checkpoint._shapes import Shape, stored_shapes
from minisgl.checkpoint._values import ModelValues
from minisgl.checkpoint.presets import PRESETS
from minisgl.errors import ConfigError

__all__ = ["make_checkpoint", "stored_shapes", "tensor_values"]

_DTYPE_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
DATA_KINDS = ("random", "tagged", "sparse")
LAYOUTS = ("natural", "sorted", "torn", "shuffled")


def make_checkpoint(
    folder: str | Path,
    hf_config: Mapping[str, object],
    *,
    data: str = "random",
    seed: int = 0,
    dtype: str = "bfloat16",
    files: int | str | Mapping[str, str] = 1,
    layout: str = "natural",
    index: bool | None = None,
    prefix: bool = True,
    stored_tied_head: bool = False,
    packed_experts: bool = False,
    inv_freq: bool = False,
    extra: Mapping[str, tuple[str, Shape]] | None = None,
) -> Path:
    """Write a checkpoint folder: config.json, safetensors files and, where wanted, their index.

    The values of a tensor depend on its name and the seed only, so all layouts of one config hold the same model.

    Args:
        folder: Where to write; made if needed, must not hold safetensors files yet.
        hf_config: The model's config.json as a dict, of one of the four architectures.
        data: ``random`` weights, ``tagged`` ones (see ``_values``), or ``sparse``: holes, which read as zeros.
        seed: Seed of the random weights and of a shuffled layout.
        dtype: float32, float16 or bfloat16.
        files: How many files, ``one_per_tensor``, or a map from stored key to file name.
        layout: ``natural``: in the model's order; ``sorted``: by name within each file, as transformers saves; ``torn``:
            neighbours lie in different files; ``shuffled``: any tensor in any file.
        index: Whether to write an index; by default for more than one file.
        prefix: Whether keys begin with ``model.``.
        stored_tied_head: Store ``lm_head.weight`` (equal to the embedding) although the embeddings are tied.
        packed_experts: Store a layer's experts as two tensors [num_experts, rows, columns].
        inv_freq: Store the rotary tables that old Llama checkpoints hold.
        extra: More tensors, or other types and shapes for named ones: key → (type as in the header, shape); zeros.

    Returns:
        The folder. At most one chunk of 16 MiB is in memory at a time.

    Raises:
        ConfigError: The config is of another architecture or lacks a size.
        CheckpointError: The folder holds safetensors files already, or the disk is too small.
    """
    if data not in DATA_KINDS or layout not in LAYOUTS or dtype not in _DTYPE_NAMES:
        raise ConfigError(
            f"data={data!r}, layout={layout!r}, dtype={dtype!r}: expected data from {DATA_KINDS}, layout from "
            f"{LAYOUTS}, dtype from {tuple(_DTYPE_NAMES)}. Correct the argument."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.safetensors")):
        raise fault(folder, "already holds safetensors files", "a folder without any", "choose another folder")
    entries = list_entries(
        hf_config, _DTYPE_NAMES[dtype], stored_tied_head, packed_experts, inv_freq, prefix, extra or {}
    )
    homes = spread(entries, files, layout, seed)
    num_bytes = sum(entry.num_bytes for entry in entries)
    free_bytes = shutil.disk_usage(folder).free
    if data != "sparse" and num_bytes > free_bytes:
        raise fault(folder, f"{free_bytes} bytes free", f"{num_bytes} bytes", "free some space, or use data='sparse'")
    saved_config = {key: value for key, value in hf_config.items() if key != "dtype"} | {"torch_dtype": dtype}
    (folder / "config.json").write_text(json.dumps(saved_config, indent=2) + "\n")
    values = None if data == "sparse" else ModelValues(hf_config, data, seed)
    for name, in_file in homes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _write_file(folder / name, in_file, values)
    if index if index is not None else len(homes) > 1:
        weight_map = {entry.key: name for name, in_file in homes.items() for entry in in_file}
        text = json.dumps({"metadata": {"total_size": num_bytes}, "weight_map": weight_map}, indent=2)
        (folder / INDEX_NAME).write_text(text + "\n")
    return folder


def tensor_values(
    hf_config: Mapping[str, object], key: str, *, data: str = "random", seed: int = 0, dtype: str = "bfloat16"
) -> torch.Tensor:
    """Return the tensor that a made checkpoint holds under a key of ``stored_shapes``, without reading any file."""
    values = ModelValues(hf_config, data, seed)
    return torch.cat(list(values.chunks(key))).to(getattr(torch, dtype)).view(values.shapes[key])


def _write_file(file: Path, entries: list[Entry], values: ModelValues | None) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begins, position = [], 0
    for entry in entries:
        begins.append(position)
        position += entry.num_bytes
        offsets = [begins[-1], position]
        header[entry.key] = {"dtype": entry.dtype_name, "shape": list(entry.shape), "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "xb") as opened:
        opened.write(len(text).to_bytes(8, "little") + text)
        data_start = opened.tell()
        if values is not None:
            for entry, begin in zip(entries, begins, strict=True):
                opened.seek(data_start + begin)
                for chunk in chain.from_iterable(values.chunks(part) for part in entry.parts):
                    opened.write(_as_bytes(chunk, entry.dtype_name))
        opened.truncate(data_start + position)


def _as_bytes(chunk: torch.Tensor, dtype_name: str) -> memoryview:
    dtype = next(getattr(torch, name) for name, stored in _DTYPE_NAMES.items() if stored == dtype_name)
    return chunk.to(dtype).view(torch.uint8).numpy().data


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a checkpoint from the command line."""
    parser = argparse.ArgumentParser(prog="python -m minisgl.checkpoint.maker", description=__doc__.splitlines()[0])
    parser.add_argument("config", help=f"a config.json, its folder, or one of: {', '.join(PRESETS)}")
    parser.add_argument("folder", help="where to write")
    parser.add_argument("--data", choices=DATA_KINDS, default="random")
    parser.add_argument("--dtype", choices=tuple(_DTYPE_NAMES), default="bfloat16")
    parser.add_argument("--files", default="1", help="a number, or one_per_tensor")
    parser.add_argument("--layout", choices=LAYOUTS, default="natural")
    parser.add_argument("--layers", type=int, help="use this many layers instead of the config's")
    parser.add_argument("--seed", type=int, default=0)
    for name in ("stored-tied-head", "packed-experts", "inv-freq"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--no-prefix", dest="prefix", action="store_false")
    parser.add_argument("--index", action=argparse.BooleanOptionalAction, default=None)
    options = vars(parser.parse_args(arguments))
    files = options.pop("files")
    layers = options.pop("layers")
    try:
        hf_config = _config(options.pop("config"))
        if layers is not None:
            hf_config["num_hidden_layers"] = layers
        options["files"] = int(files) if files.isdecimal() else files
        folder = make_checkpoint(options.pop("folder"), hf_config, **options)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    sizes = [file.stat() for file in folder.glob("*.safetensors")]
    held, on_disk = sum(size.st_size for size in sizes), sum(size.st_blocks for size in sizes) * 512
    print(f"{folder}: {len(sizes)} files, {held:,} bytes, {on_disk:,} bytes on disk")
    return 0


def _config(name: str) -> dict[str, object]:
    if name in PRESETS:
        return dict(PRESETS[name])
    path = Path(name)
    config = json.loads((path / "config.json" if path.is_dir() else path).read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ConfigError(f"{path}: a JSON {type(config).__name__}. Expected: an object. Give a model's config.json.")
    return config


if __name__ == "__main__":
    raise SystemExit(main())

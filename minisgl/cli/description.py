"""Collect what a model folder promises, from its config and its files' headers; no weights are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, cast

from minisgl.checkpoint import Checkpoint, StoredTensor, open_checkpoint, standard_tensors
from minisgl.checkpoint._shapes import stored_shapes
from minisgl.checkpoint.kinds import what_else
from minisgl.cli.shapes import Shape, local_shapes
from minisgl.distributed import (
    check_tp_size,
    local_num_kv_heads,
    local_num_qo_heads,
    supported_tp_sizes,
    use_tp_info,
)
from minisgl.errors import MinisglError
from minisgl.models.config import ModelConfig, kv_bytes_per_token
from minisgl.utils import cached_load_hf_config, div_ceil
from minisgl.utils.hf import resolve_model_folder
from minisgl.utils.hf_config import HFConfig


class _Dtype(NamedTuple):
    """Stand for a torch dtype: importing torch takes longer than all of this."""

    name: str
    itemsize: int


_DTYPES = {name: _Dtype(name, size) for name, size in {"float32": 4, "float16": 2, "bfloat16": 2}.items()}


def describe_model(path: str | Path, tp_size: int) -> dict[str, Any]:
    """Describe a model and what each of `tp_size` ranks would hold of it.

    Args:
        path: a folder (with or without weights in it), a built-in tiny model's name, or a hub id, of which only the JSON
            files are downloaded.
        tp_size: number of ranks.

    Returns:
        Plain data, ready for JSON. Sizes are in bytes.

    Raises:
        ConfigError: the config can't be read or isn't computed here.
        CheckpointError: the files are damaged, or disagree with the config.
        MinisglError: there is no such model, or it can't be divided over `tp_size` ranks.
    """
    folder = resolve_model_folder(path, json_only=True)
    hf_config = cached_load_hf_config(folder)
    config = ModelConfig.from_hf(hf_config)
    check_tp_size(config, tp_size)
    checkpoint = _checkpoint_of(folder, is_local=Path(path).expanduser().is_dir())
    stored = None if checkpoint is None else standard_tensors(checkpoint)
    dtype = _dtype_of(stored, hf_config)
    shapes = local_shapes(config, rank=0, size=1)
    return {
        "folder": str(folder),
        "config": asdict(config),
        "dtype": dtype.name,
        "model_tensors": {
            "count": len(shapes),
            "parameters": sum(map(prod, shapes.values())),
            "bytes": _num_bytes(shapes, dtype),
            "shapes": _described(shapes),
        },
        "checkpoint": None if checkpoint is None else _describe_files(checkpoint, stored or {}, hf_config, config),
        "kv_bytes_per_token": kv_bytes_per_token(config, cast(Any, dtype)),  # it asks for the itemsize only
        "supported_tp_sizes": supported_tp_sizes(config),
        "ranks": [_describe_rank(config, dtype, rank, tp_size) for rank in range(tp_size)],
    }


def _checkpoint_of(folder: Path, is_local: bool) -> Checkpoint | None:
    """Open the folder's checkpoint; None where it holds no weights of any kind.

    Raises:
        CheckpointError: It holds something else than safetensors files, or these are damaged.
    """
    # Of a hub id the index may be there without the files that it names; in a local folder that is a fault.
    if any(folder.glob("*.safetensors*" if is_local else "*.safetensors")) or what_else(folder) is not None:
        return open_checkpoint(folder)
    return None


def _dtype_of(stored: Mapping[str, StoredTensor] | None, hf_config: HFConfig) -> _Dtype:
    """Return the dtype that most stored tensors have; without files that of the config, or transformers' default."""
    if stored:
        return _DTYPES[Counter(tensor.dtype_name for tensor in stored.values()).most_common(1)[0][0]]
    promised = getattr(hf_config, "dtype", None) or getattr(hf_config, "torch_dtype", None) or "float32"
    name = str(promised).removeprefix("torch.")
    if name not in _DTYPES:
        raise MinisglError(f"config.json has dtype {promised!r}; expected one of {', '.join(_DTYPES)}. Correct dtype.")
    return _DTYPES[name]


def _num_bytes(shapes: Mapping[str, Shape], dtype: _Dtype) -> int:
    return sum(map(prod, shapes.values())) * dtype.itemsize


def _described(shapes: Mapping[str, Shape]) -> list[dict[str, Any]]:
    """Name each kind of tensor once, and count those that differ only in the number of their layer."""
    counts = Counter((re.sub(r"\.\d+\.", ".*.", name), shape) for name, shape in shapes.items())
    return [{"name": name, "shape": list(shape), "count": count} for (name, shape), count in counts.items()]


def _describe_files(
    checkpoint: Checkpoint, stored: dict[str, StoredTensor], hf_config: HFConfig, config: ModelConfig
) -> dict[str, int]:
    """Count what the files hold.

    Raises:
        CheckpointError: They aren't what the config describes.
    """
    wanted = stored_shapes(vars(hf_config))
    if config.tie_word_embeddings and "lm_head.weight" in stored:
        wanted["lm_head.weight"] = wanted["model.embed_tokens.weight"]
    if {key: tensor.shape for key, tensor in stored.items()} != wanted or _mixed(stored):
        from minisgl.models.weight import plan_load  # with torch, for all that is wrong in its own words

        plan_load(stored, config, tp_rank=0, tp_size=1)
    return {
        "files": len(checkpoint.files),
        "tensors": len(checkpoint.tensors),
        "bytes": checkpoint.num_bytes,
        "tensors_out_of_loader": len(local_shapes(config, 0, 1)) + (config.tie_word_embeddings and "lm_head.weight" in stored),
    }


def _mixed(stored: dict[str, StoredTensor]) -> bool:
    return len({tensor.dtype_name for tensor in stored.values()}) > 1


def _describe_rank(config: ModelConfig, dtype: _Dtype, rank: int, size: int) -> dict[str, Any]:
    shapes = local_shapes(config, rank, size)
    with use_tp_info(rank, size):
        num_qo_heads = local_num_qo_heads(config.num_qo_heads, config.num_kv_heads)
        num_kv_heads = local_num_kv_heads(config.num_qo_heads, config.num_kv_heads)
    first_kv_head = rank * config.num_kv_heads // size
    rows = div_ceil(config.vocab_size, size)
    first_row, end_row = (min(index * rows, config.vocab_size) for index in (rank, rank + 1))
    return {
        "rank": rank,
        "bytes": _num_bytes(shapes, dtype),
        "qo_heads": [rank * num_qo_heads, (rank + 1) * num_qo_heads],
        "kv_heads": [first_kv_head, first_kv_head + num_kv_heads],
        "vocab_rows": [first_row, end_row],
        "vocab_padding": rows - (end_row - first_row),
        "intermediate_size": config.intermediate_size // size,
        "moe_intermediate_size": config.moe_intermediate_size // size,
        "kv_bytes_per_token": kv_bytes_per_token(config, cast(Any, dtype)) // config.num_kv_heads * num_kv_heads,
        "shapes": _described(shapes),
    }

"""Collect what a model folder promises, from its config and its files' headers; no weights are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from minisgl.checkpoint import StoredTensor, open_checkpoint, standard_tensors
from minisgl.distributed import (
    check_tp_size,
    local_num_kv_heads,
    local_num_qo_heads,
    supported_tp_sizes,
    use_tp_info,
)
from minisgl.models import ModelConfig, create_model
from minisgl.models.config import kv_bytes_per_token
from minisgl.models.weight import plan_load
from minisgl.utils import cached_load_hf_config, div_ceil, dtype_name, parse_dtype
from minisgl.utils.hf import resolve_model_folder

if TYPE_CHECKING:
    from transformers import PretrainedConfig


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
    # Of a hub id the index may be there without the files that it names; in a local folder that is a fault.
    file_pattern = "*.safetensors*" if Path(path).expanduser().is_dir() else "*.safetensors"
    stored = standard_tensors(open_checkpoint(folder)) if any(folder.glob(file_pattern)) else None
    dtype = _dtype_of(stored, hf_config)
    shapes = _local_shapes(config, rank=0, size=1)
    return {
        "folder": str(folder),
        "config": asdict(config),
        "dtype": dtype_name(dtype),
        "model_tensors": {
            "count": len(shapes),
            "parameters": sum(map(prod, shapes.values())),
            "bytes": _num_bytes(shapes, dtype),
            "shapes": [
                {"name": name, "shape": list(shape), "count": count}
                for (name, shape), count in _by_pattern(shapes).items()
            ],
        },
        "checkpoint": None if stored is None else _describe_files(folder, stored, config),
        "kv_bytes_per_token": kv_bytes_per_token(config, dtype),
        "supported_tp_sizes": supported_tp_sizes(config),
        "ranks": [_describe_rank(config, dtype, rank, tp_size) for rank in range(tp_size)],
    }


def _dtype_of(stored: Mapping[str, StoredTensor] | None, hf_config: PretrainedConfig) -> torch.dtype:
    """Return the dtype that most stored tensors have; without files that of the config, or transformers' default."""
    if stored:
        return Counter(tensor.dtype for tensor in stored.values()).most_common(1)[0][0]
    promised = getattr(hf_config, "dtype", None) or getattr(hf_config, "torch_dtype", None)
    return parse_dtype(promised or torch.float32)


def _local_shapes(config: ModelConfig, rank: int, size: int) -> dict[str, tuple[int, ...]]:
    with use_tp_info(rank, size), torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in create_model(config).state_dict().items()}


def _num_bytes(shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype) -> int:
    return sum(map(prod, shapes.values())) * dtype.itemsize


def _by_pattern(shapes: Mapping[str, tuple[int, ...]]) -> Counter[tuple[str, tuple[int, ...]]]:
    """Count the tensors that differ only in the number of their layer."""
    return Counter((re.sub(r"\.\d+\.", ".*.", name), shape) for name, shape in shapes.items())


def _describe_files(folder: Path, stored: dict[str, StoredTensor], config: ModelConfig) -> dict[str, int]:
    checkpoint = open_checkpoint(folder)
    return {
        "files": len(checkpoint.files),
        "tensors": len(checkpoint.tensors),
        "bytes": checkpoint.num_bytes,
        "tensors_out_of_loader": len(plan_load(stored, config, tp_rank=0, tp_size=1)),
    }


def _describe_rank(config: ModelConfig, dtype: torch.dtype, rank: int, size: int) -> dict[str, Any]:
    shapes = _local_shapes(config, rank, size)
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
        "kv_bytes_per_token": kv_bytes_per_token(config, dtype) // config.num_kv_heads * num_kv_heads,
        "shapes": [
            {"name": name, "shape": list(shape), "count": count} for (name, shape), count in _by_pattern(shapes).items()
        ],
    }

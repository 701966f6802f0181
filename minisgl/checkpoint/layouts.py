"""Bring the layouts that checkpoints are saved in under one set of names.

Most checkpoints store one tensor for each projection of each layer, and of each expert, under names that
begin with ``model.``. Some leave that prefix out, and some store the experts of a layer already packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from minisgl.checkpoint.files import Checkpoint, StoredTensor
from minisgl.errors import CheckpointError

_PACKED_PROJECTIONS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}


def _unpack_experts(key: str, tensor: StoredTensor) -> Iterator[tuple[str, StoredTensor]]:
    """See packed experts as the single tensors that lie inside them; give any other tensor as it is."""
    path, _, merged = key.rpartition(".")
    projections = _PACKED_PROJECTIONS.get(merged, ())
    is_packed = path.endswith(".experts") and projections and len(tensor.shape) == 3 and min(tensor.shape) > 0
    if not is_packed or tensor.shape[1] % len(projections):
        yield key, tensor
        return
    num_experts, num_rows, num_columns = tensor.shape
    shape, num_bytes = (num_rows // len(projections), num_columns), tensor.num_bytes // num_experts // len(projections)
    for index, (expert, name) in enumerate(product(range(num_experts), projections)):
        part = replace(tensor, shape=shape, offset=tensor.offset + index * num_bytes, num_bytes=num_bytes)
        yield f"{path}.{expert}.{name}.weight", part


def standard_tensors(checkpoint: Checkpoint) -> dict[str, StoredTensor]:
    """Give a checkpoint's tensors under the usual names, in file order; nothing is read.

    Base models are saved without the ``model.`` prefix; old Llamas with rotary tables, which are left out.

    Raises:
        CheckpointError: Two stored tensors come under one name.
    """
    stored: dict[str, StoredTensor] = {}
    for tensor in checkpoint.tensors.values():
        if tensor.key.endswith("rotary_emb.inv_freq"):
            continue
        key = tensor.key if tensor.key.startswith(("model.", "lm_head.")) else f"model.{tensor.key}"
        for part_key, part in _unpack_experts(key, tensor):
            if part_key in stored:
                raise CheckpointError(
                    f"{part_key} is stored twice: as {stored[part_key].key} in {stored[part_key].file} and as "
                    f"{part.key} in {part.file}. Expected it once. Remove one of the two, or save the model again."
                )
            stored[part_key] = part
    return stored

"""Bring the layouts that checkpoints are saved in under one set of names.

Most checkpoints store one tensor for each projection of each layer, and of each expert, under names that
begin with ``model.``. Some leave that prefix out, and some store the experts of a layer already packed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from minisgl.checkpoint._fault import fault
from minisgl.checkpoint._untrusted import parse_json, read_regular_file
from minisgl.checkpoint.files import ROTARY_TABLE, Checkpoint, StoredTensor
from minisgl.errors import CheckpointError
from minisgl.names import MERGED

_PACKED_PROJECTIONS = {"gate_up_proj": MERGED["gate_up_proj"], "down_proj": ("down_proj",)}
_LARGEST_CONFIG_BYTES = 2**24
_LAYER = re.compile(r"(?P<prefix>(?:.*?\.)??)(?:model\.)?layers\.\d+\.")
# Prefix that a wrapper puts before all names -> how to save what it wraps.
_UNWRAP = {
    "module.": "save the model out of its wrapper for parallel training: model.module.save_pretrained(folder)",
    "_orig_mod.": "save the model out of torch.compile's wrapper: model._orig_mod.save_pretrained(folder)",
    "base_model.model.": "merge the adapter into its base model: model.merge_and_unload().save_pretrained(folder)",
}


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

    Base models are saved without the ``model.`` prefix; old Llamas with rotary tables, which are left out. An LM head that
    is stored alone, as the tied embedding that it is, comes under the embedding's name.

    Raises:
        CheckpointError: Two stored tensors come under one name, or the names of all layers begin with a foreign prefix.
    """
    _check_prefix(checkpoint)
    stored: dict[str, StoredTensor] = {}
    for tensor in checkpoint.tensors.values():
        if tensor.key.endswith(ROTARY_TABLE):
            continue
        key = tensor.key if tensor.key.startswith(("model.", "lm_head.")) else f"model.{tensor.key}"
        for part_key, part in _unpack_experts(key, tensor):
            if part_key in stored:
                raise CheckpointError(
                    f"{part_key} is stored twice: as {stored[part_key].key} in {stored[part_key].file} and as "
                    f"{part.key} in {part.file}. Expected it once. Remove one of the two, or save the model again."
                )
            stored[part_key] = part
    if "model.embed_tokens.weight" not in stored and "lm_head.weight" in stored and _is_tied(checkpoint.folder):
        # Kept at its place in the order of the file.
        stored = {"model.embed_tokens.weight" if key == "lm_head.weight" else key: part for key, part in stored.items()}
    return stored


def _is_tied(folder: Path) -> bool:
    """Tell whether the config beside the files ties the LM head to the embedding; one that can't be read doesn't."""
    file = folder / "config.json"
    try:
        text, _ = read_regular_file(file, _LARGEST_CONFIG_BYTES)
        raw = parse_json(file, text, "the file", "check it")
    except CheckpointError:
        return False
    return isinstance(raw, dict) and raw.get("tie_word_embeddings") is True


def _check_prefix(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint all of whose layers' names begin with something other than ``model.``, and say with what."""
    layers = (_LAYER.match(key) for key in checkpoint.tensors)
    prefixes = {match["prefix"] for match in layers if match}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if prefix:
        example = next(key for key in checkpoint.tensors if key.startswith(prefix))
        advice = _UNWRAP.get(prefix, "save the language model by itself, or take the prefix off the names")
        found = f"the names of all layers' tensors begin with {prefix!r}, as in {example}"
        raise fault(checkpoint.folder, found, "names that begin with 'model.' or 'layers.'", advice)

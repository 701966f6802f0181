"""Decide what a made checkpoint stores, under which keys, in which files and in which order."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from minisgl.checkpoint._header import DTYPE_BITS
from minisgl.checkpoint._shapes import Shape, head_dim_of, stored_shapes
from minisgl.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    """One tensor to store: under which key, and the model's tensors whose values it holds one behind the other."""

    key: str
    dtype_name: str
    shape: Shape
    parts: tuple[str, ...]

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * DTYPE_BITS[self.dtype_name] // 8


def list_entries(
    hf_config: Mapping[str, object],
    dtype_name: str,
    stored_tied_head: bool,
    packed_experts: bool,
    inv_freq: bool,
    prefix: bool,
    extra: Mapping[str, tuple[str, Shape]],
) -> list[Entry]:
    """List what to store, in the model's order."""
    shapes = stored_shapes(hf_config)
    entries = [Entry(key, dtype_name, shape, (key,)) for key, shape in shapes.items()]
    if stored_tied_head and "lm_head.weight" not in shapes:
        embedding = entries[0]
        entries.append(Entry("lm_head.weight", dtype_name, embedding.shape, embedding.parts))
    if packed_experts:
        entries = _packed(entries)
    if inv_freq:
        for layer in range(int(hf_config["num_hidden_layers"])):  # type: ignore[call-overload]
            key = f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"
            entries.append(Entry(key, "F32", (head_dim_of(hf_config) // 2,), ()))
    if not prefix:
        entries = [replace(entry, key=entry.key.removeprefix("model.")) for entry in entries]
    extra_entries = [Entry(key, name, tuple(shape), ()) for key, (name, shape) in extra.items()]
    return [entry for entry in entries if entry.key not in extra] + extra_entries


def _packed(entries: list[Entry]) -> list[Entry]:
    """Replace each layer's experts by one tensor of all gates and ups, and one of all downs."""
    packed: dict[str, list[Entry]] = {}
    for entry in entries:
        path, is_expert, rest = entry.key.partition(".experts.")
        name = "down_proj" if rest.endswith("down_proj.weight") else "gate_up_proj"
        packed.setdefault(f"{path}.experts.{name}" if is_expert else entry.key, []).append(entry)
    result = []
    for key, members in packed.items():
        if key == members[0].key:
            result += members
            continue
        rows, columns = members[0].shape
        num_experts = len({member.key.split(".experts.")[1].split(".")[0] for member in members})
        shape = (num_experts, rows * len(members) // num_experts, columns)
        result.append(Entry(key, members[0].dtype_name, shape, tuple(member.key for member in members)))
    return result


def spread(
    entries: Sequence[Entry], files: int | str | Mapping[str, str], layout: str, seed: int
) -> dict[str, list[Entry]]:
    """Decide which tensors lie in which file, and in which order."""
    if isinstance(files, Mapping):
        homes: dict[str, list[Entry]] = {}
        for entry in entries:
            homes.setdefault(files[entry.key], []).append(entry)
        return homes
    num_files = len(entries) if files == "one_per_tensor" else int(files)
    if not 1 <= num_files <= len(entries):
        raise ConfigError(f"files={files!r}: expected 1 to {len(entries)} (the tensors). Ask for fewer files.")
    order = list(entries)
    if layout == "shuffled":
        random.Random(seed).shuffle(order)
    if layout == "torn":
        groups = [order[number::num_files] for number in range(num_files)]
    elif files == "one_per_tensor":
        groups = [[entry] for entry in order]
    else:
        groups = _evenly(order, num_files)
    if layout == "sorted":
        groups = [sorted(group, key=lambda entry: entry.key) for group in groups]
    if num_files == 1:
        return {"model.safetensors": groups[0]}
    return {f"model-{i + 1:05}-of-{num_files:05}.safetensors": group for i, group in enumerate(groups)}


def _evenly(order: list[Entry], num_files: int) -> list[list[Entry]]:
    """Cut a list into files of about equal size, none empty."""
    groups: list[list[Entry]] = [[]]
    remaining = sum(entry.num_bytes for entry in order)
    target, filled = remaining / num_files, 0
    for position, entry in enumerate(order):
        files_left = num_files - len(groups)
        is_full = groups[-1] and filled + entry.num_bytes / 2 > target
        if files_left and (is_full or len(order) - position <= files_left):
            remaining -= filled
            target, filled = remaining / files_left, 0
            groups.append([])
        groups[-1].append(entry)
        filled += entry.num_bytes
    return groups

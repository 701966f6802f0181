"""How a checkpoint's tensors become a model's parameters, and what one rank holds of each: sizes only, no data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from minisgl.errors import MinisglError
from minisgl.names import MERGED, SPLIT_DIM
from minisgl.viz.configs import sizes_of
from minisgl.viz.known import Config
from minisgl.viz.tracing import trace

Shape = tuple[int, ...]

# Stored projection -> the merged one, and its place in it.
_INTO = {part: (merged, place) for merged, parts in MERGED.items() for place, part in enumerate(parts)}
_ROLE = {
    "q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "o", "gate_proj": "gate", "up_proj": "up",
    "down_proj": "down", "embed_tokens": "vocab", "lm_head": "vocab", "gate": "router",
}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """Say which part of a tensor one rank holds: ``size`` of dimension ``dim``, from ``start``; ``dim`` None is all of it.

    ``padding`` rows of zeros follow where the vocabulary doesn't divide; ``copies`` ranks hold the same part.
    """

    dim: int | None
    start: int
    size: int
    padding: int = 0
    copies: int = 1


def role_of(key: str) -> str:
    """Name what a tensor is, as ``drawing.STYLE_OF`` does; all norms are "norm"."""
    return _ROLE.get(key.split(".")[-2], "norm")


def param_of(key: str) -> tuple[str, tuple[int, int]]:
    """Name the parameter that a stored tensor becomes a part of, and its place there: (expert, order in the group)."""
    *path, owner, kind = key.split(".")
    merged, order = _INTO.get(owner, (owner, 0))
    expert = re.fullmatch(r"(.*\.experts)\.(\d+)", ".".join(path))
    if expert:
        return f"{expert[1]}.{merged}", (int(expert[2]), order)
    return ".".join([*path, merged, kind]), (0, order)


def parameters_of(keys: Iterable[str]) -> dict[str, list[str]]:
    """Group stored keys into parameters, each with its parts in row order; parameters in order of first appearance."""
    groups: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for key in keys:
        name, place = param_of(key)
        groups.setdefault(name, []).append((place, key))
    return {name: [key for _, key in sorted(parts)] for name, parts in groups.items()}


def kind_of_group(name: str, parts: list[str]) -> str:
    """Name what has to happen to a parameter's parts: "pack" experts, "merge" projections, or "" for one that stays."""
    return "pack" if ".experts." in name else "merge" if len(parts) > 1 else ""


class Sharding:
    """Compute what each of ``tp_size`` ranks holds of a model.

    Raises:
        MinisglError: The config isn't usable, or doesn't divide over that many ranks (those that work are listed).
    """

    def __init__(self, config: Config, tp_size: int, tp_rank: int = 0) -> None:
        self.values = _values_of(config)
        sizes = supported_tp_sizes(config)
        if tp_size not in sizes:
            raise MinisglError(
                f"this model can't be cut for {tp_size} ranks. Expected one of {', '.join(map(str, sizes))}. "
                f"Choose one of these."
            )
        if not 0 <= tp_rank < tp_size:
            raise MinisglError(f"rank is {tp_rank}. Expected 0 to {tp_size - 1}. Choose one of these.")
        self.tp_size, self.tp_rank = tp_size, tp_rank

    def share(self, key: str, shape: Shape, rank: int | None = None) -> Share:
        """Say what a rank (default: this one) holds of a stored tensor."""
        rank, role = self.tp_rank if rank is None else rank, role_of(key)
        dim = SPLIT_DIM.get(key.split(".")[-2], len(shape))
        if dim >= len(shape):
            return Share(None, 0, shape[0], copies=self.tp_size)
        ways, copies = self.tp_size, 1
        if role in ("k", "v") and self.tp_size > self.values["num_kv_heads"]:
            ways = self.values["num_kv_heads"]
            copies = self.tp_size // ways
        size = -(-shape[dim] // ways)
        start = min(rank // copies * size, shape[dim])
        held = min(size, shape[dim] - start)
        return Share(dim, start, held, padding=size - held, copies=copies)

    def local_shape(self, key: str, shape: Shape) -> Shape:
        """Give the shape of this rank's part, padding included."""
        share = self.share(key, shape)
        if share.dim is None:
            return shape
        return (*shape[: share.dim], share.size + share.padding, *shape[share.dim + 1 :])

    def local_size(self, key: str, shape: Shape) -> int:
        """Count the numbers in this rank's part, padding included."""
        return prod(self.local_shape(key, shape))


def supported_tp_sizes(config: Config) -> list[int]:
    """List the rank counts that a model can be cut for."""
    values = _values_of(config)
    heads, kv_heads = values["num_qo_heads"], values["num_kv_heads"]
    widths = [values["intermediate_size"]]
    if values.get("num_experts"):
        has_dense = values["mlp_only_layers"] or values["decoder_sparse_step"] > 1
        widths = [values["moe_intermediate_size"], *(widths if has_dense else [])]
    return [
        size
        for size in range(1, heads + 1)
        if heads % size == 0
        and (kv_heads % size == 0 or size % kv_heads == 0)
        and all(width % size == 0 for width in widths)
    ]


def _values_of(config: Config) -> dict[str, Any]:
    return dict(_values_of_text(json.dumps(config)))


@lru_cache(maxsize=64)
def _values_of_text(text: str) -> dict[str, Any]:
    """Trace a config and refuse one that can't be used; kept, because large models have many thousand tensors."""
    config = json.loads(text)
    sizes_of(config)
    return {row.name: row.value for row in trace(config)}

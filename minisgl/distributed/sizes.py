"""How the model's sizes divide over the ranks, and which numbers of ranks work.

A rank holds whole heads. With more ranks than kv heads, each kv head is held by several ranks: those whose query
heads attend to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from minisgl.distributed.info import get_tp_info
from minisgl.errors import MinisglError


class ModelSizes(Protocol):
    """What is read of a ``ModelConfig`` here. Nothing below the models imports them."""

    @property
    def num_qo_heads(self) -> int:
        """Query heads."""

    @property
    def num_kv_heads(self) -> int:
        """Key and value heads."""

    @property
    def intermediate_size(self) -> int:
        """Width of a dense MLP."""

    @property
    def moe_intermediate_size(self) -> int:
        """Width of one expert."""

    @property
    def mlp_only_layers(self) -> Sequence[int]:
        """Layers of a mixture of experts that have a dense MLP."""

    @property
    def is_moe(self) -> bool:
        """Whether there are experts."""


def local_size(size: int, what: str) -> int:
    """Return one rank's share of a dimension that is cut into equal parts.

    Args:
        size: the whole model's size.
        what: its name, for the message.

    Raises:
        MinisglError: the number of ranks doesn't divide `size`.
    """
    tp_size = get_tp_info().size
    if size % tp_size:
        raise MinisglError(_refusal(f"{what} {size}", tp_size, lambda count: size % count == 0, size))
    return size // tp_size


def local_num_qo_heads(num_qo_heads: int, num_kv_heads: int) -> int:
    """Return how many query heads one rank holds.

    Raises:
        MinisglError: the heads can't be dealt out to this number of ranks.
    """
    tp_size = get_tp_info().size
    if not heads_divide(num_qo_heads, num_kv_heads, tp_size):
        what = f"num_qo_heads {num_qo_heads} with num_kv_heads {num_kv_heads}"
        raise MinisglError(
            _refusal(what, tp_size, lambda count: heads_divide(num_qo_heads, num_kv_heads, count), num_qo_heads)
        )
    return num_qo_heads // tp_size


def local_num_kv_heads(num_qo_heads: int, num_kv_heads: int) -> int:
    """Return how many kv heads one rank holds; 1, held by several ranks, when there are more ranks than heads.

    Raises:
        MinisglError: the heads can't be dealt out to this number of ranks.
    """
    local_num_qo_heads(num_qo_heads, num_kv_heads)
    return max(num_kv_heads // get_tp_info().size, 1)


def heads_divide(num_qo_heads: int, num_kv_heads: int, tp_size: int) -> bool:
    """Tell whether each of `tp_size` ranks can hold whole query heads together with just their kv heads."""
    kv_heads_fit = num_kv_heads % tp_size == 0 or tp_size % num_kv_heads == 0
    return num_qo_heads % tp_size == 0 and kv_heads_fit


def supported_tp_sizes(config: ModelSizes) -> list[int]:
    """Return every number of ranks that this model can be cut into, ascending."""
    sizes = _sizes_to_divide(config)

    def works(count: int) -> bool:
        return heads_divide(config.num_qo_heads, config.num_kv_heads, count) and all(
            size % count == 0 for size in sizes.values()
        )

    return [count for count in range(1, config.num_qo_heads + 1) if works(count)]


def check_tp_size(config: ModelSizes, tp_size: int) -> None:
    """Refuse a number of ranks that this model can't be cut into.

    Raises:
        MinisglError: heads or widths don't divide; the message lists the numbers of ranks that work.
    """
    supported = supported_tp_sizes(config)
    if tp_size in supported:
        return
    problems = [f"{name} {size}" for name, size in _sizes_to_divide(config).items() if size % tp_size]
    if not heads_divide(config.num_qo_heads, config.num_kv_heads, tp_size):
        problems.insert(0, f"num_qo_heads {config.num_qo_heads} with num_kv_heads {config.num_kv_heads}")
    raise MinisglError(
        f"{', '.join(problems)} can't be divided over tp size {tp_size}; "
        f"expected one of these numbers of ranks: {', '.join(map(str, supported))}."
    )


def _sizes_to_divide(config: ModelSizes) -> dict[str, int]:
    """Name the widths that are cut into equal parts; an MoE model has dense layers only where it says so."""
    if not config.is_moe:
        return {"intermediate_size": config.intermediate_size}
    sizes = {"moe_intermediate_size": config.moe_intermediate_size}
    if config.mlp_only_layers or getattr(config, "decoder_sparse_step", 1) > 1:
        sizes["intermediate_size"] = config.intermediate_size
    return sizes


def _refusal(what: str, tp_size: int, works: Callable[[int], bool], largest: int) -> str:
    counts = [str(count) for count in range(1, largest + 1) if works(count)]
    shown = counts if len(counts) <= 16 else [*counts[:15], "…"]
    return (
        f"{what} can't be divided over tp size {tp_size}; expected one of these numbers of ranks: {', '.join(shown)}."
    )

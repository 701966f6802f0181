"""Which rank of how many this process is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from minisgl.errors import MinisglError


@dataclass(frozen=True)
class TPInfo:
    """Name this process's place among those that share one model.

    Attributes:
        rank: from 0 to size - 1.
        size: how many processes hold a share of the model.
    """

    rank: int
    size: int

    def is_primary(self) -> bool:
        """Tell whether this is rank 0, the one that prints and shows progress."""
        return self.rank == 0


_tp_info = TPInfo(rank=0, size=1)
# A context variable, so that two threads that plan two loads at once don't see each other's override.
_override: ContextVar[TPInfo | None] = ContextVar("minisgl_tp_info", default=None)


def set_tp_info(rank: int, size: int) -> None:
    """Say which rank of how many this process is; layers built from now on hold that rank's share.

    May be called again: a model that exists already keeps the share that it was built with.

    Raises:
        MinisglError: `size` is not a positive int, or `rank` is not in 0 … size - 1.
    """
    global _tp_info
    _tp_info = _checked(rank, size)


def get_tp_info() -> TPInfo:
    """Return this process's rank and the number of ranks; rank 0 of 1 unless set otherwise."""
    return _override.get() or _tp_info


@contextmanager
def use_tp_info(rank: int, size: int) -> Iterator[TPInfo]:
    """Be another rank for a `with` block, in this thread only, to ask for that rank's shapes.

    Raises:
        MinisglError: as in `set_tp_info`.
    """
    token = _override.set(_checked(rank, size))
    try:
        yield get_tp_info()
    finally:
        _override.reset(token)


def _checked(rank: int, size: int) -> TPInfo:
    if not _is_int(size) or size < 1:
        raise MinisglError(f"tp size is {size!r}; expected a positive int: the number of processes.")
    if not _is_int(rank) or not 0 <= rank < size:
        raise MinisglError(f"tp rank is {rank!r} of tp size {size}; expected an int from 0 to {size - 1}.")
    return TPInfo(rank, size)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

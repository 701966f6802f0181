"""The two collectives of tensor parallelism, on torch.distributed; at size 1 neither communicates."""

from __future__ import annotations

import torch
import torch.distributed as dist

from minisgl.distributed.info import get_tp_info
from minisgl.errors import MinisglError


def all_reduce(tensor: torch.Tensor) -> torch.Tensor:
    """Sum `tensor` over all ranks, in place, and return it.

    Args:
        tensor: any shape, the same on every rank. Overwritten when there is more than one rank.

    Raises:
        MinisglError: there are several ranks but no process group of that size.
    """
    if get_tp_info().size == 1:
        return tensor
    _check_process_group()
    dist.all_reduce(tensor)
    return tensor


def all_gather(tensor: torch.Tensor) -> torch.Tensor:
    """Return every rank's `tensor` along a new first dimension, in rank order: [tp_size, *tensor.shape].

    Args:
        tensor: any shape, the same on every rank.

    Raises:
        MinisglError: there are several ranks but no process group of that size.
    """
    size = get_tp_info().size
    if size == 1:
        return tensor.unsqueeze(0)
    _check_process_group()
    gathered = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(gathered, tensor.contiguous())
    return torch.stack(gathered)


def _check_process_group() -> None:
    info = get_tp_info()
    world_size = dist.get_world_size() if dist.is_initialized() else 0
    if world_size != info.size:
        found = f"a process group of {world_size}" if world_size else "no process group"
        raise MinisglError(
            f"tp size is {info.size} but torch.distributed has {found}; expected one of {info.size} processes. "
            f"Start one process a rank and call minisgl.distributed.init_tensor_parallel() in each."
        )

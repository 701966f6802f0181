"""Join the process group of a tensor-parallel run, started by torchrun or by hand."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

from minisgl.distributed.info import set_tp_info
from minisgl.errors import MinisglError


def init_tensor_parallel(
    rank: int | None = None,
    size: int | None = None,
    *,
    backend: str | None = None,
    init_method: str | None = None,
    timeout_seconds: float = 600.0,
) -> torch.device:
    """Join the other ranks and call set_tp_info for this one.

    Under torchrun no argument is needed: rank and size come from RANK and WORLD_SIZE.

    Args:
        rank: this process's rank, or None to take it from the environment.
        size: number of processes, or None to take it from the environment.
        backend: "nccl" or "gloo"; None picks NCCL where every process of this host can have a GPU of its own.
        init_method: where the ranks meet, e.g. "file:///tmp/meet" or "tcp://localhost:29500"; None: "env://".
        timeout_seconds: how long a rank waits for the others before it gives up.

    Returns:
        The device that this rank's share of the model belongs on.

    Raises:
        MinisglError: rank or size is neither given nor in the environment.
    """
    rank = _from_environment("RANK", "rank") if rank is None else rank
    size = _from_environment("WORLD_SIZE", "size") if size is None else size
    set_tp_info(rank, size)
    local_rank = int(os.environ.get("LOCAL_RANK", rank))
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if backend is None:
        backend = "nccl" if torch.cuda.is_available() and torch.cuda.device_count() >= local_size else "gloo"
    device = torch.device("cuda", local_rank) if backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        backend,
        init_method=init_method or "env://",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=timeout_seconds),
    )
    return device


def close_tensor_parallel() -> None:
    """Leave the process group, if there is one, and be rank 0 of 1 again."""
    if dist.is_initialized():
        dist.destroy_process_group()
    set_tp_info(0, 1)


def _from_environment(variable: str, what: str) -> int:
    text = os.environ.get(variable, "")
    if not text.isdigit():
        raise MinisglError(
            f"the {what} of this process is unknown: {variable} is {text!r}; expected a number. "
            f"Start the script with torchrun, or pass {what}=."
        )
    return int(text)

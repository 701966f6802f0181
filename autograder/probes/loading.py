"""Loads whose costs are measured from outside (memory, bytes read, what is left open), and a load's bar."""

from __future__ import annotations

import sys

import torch


def drained(folder: str, tp_rank: int = 0, tp_size: int = 1) -> dict[str, str]:
    """Drain load_weight and drop each tensor at once: a digest of each one's shape, dtype and bytes.

    What the loader holds meanwhile is measured from outside.
    """
    import ctypes
    import hashlib

    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    if hasattr(ctypes.CDLL(None), "mallopt"):  # have glibc give freed tensors back at once, so that they don't count
        ctypes.CDLL(None).mallopt(-3, 128 * 1024)  # M_MMAP_THRESHOLD, fixed
    set_tp_info(tp_rank, tp_size)
    digests = {}
    for name, tensor in load_weight(folder, torch.device("cpu"), progress=False):
        digest = hashlib.sha256(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy())
        digests[name] = digest.hexdigest()
        del tensor
    return digests


def stopped_early(folder: str, take: int) -> None:
    """Take a few tensors and close the generator; what it leaves open is counted from outside."""
    from minisgl.models import load_weight

    stream = load_weight(folder, torch.device("cpu"), progress=False)
    for _ in range(take):
        next(stream)
    stream.close()


def bar(folder: str, tp_rank: int, tp_size: int, progress: bool | None) -> dict[str, bool]:
    """Drain load_weight and say what it shows on stderr meanwhile; a progress of None leaves the argument out."""
    import io

    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    set_tp_info(tp_rank, tp_size)
    options = {} if progress is None else {"progress": progress}
    screen, sys.stderr = sys.stderr, io.StringIO()
    try:
        for _ in load_weight(folder, torch.device("cpu"), **options):
            pass
        text = sys.stderr.getvalue()
    finally:
        sys.stderr = screen
    return {"shown": bool(text.strip()), "reaches_100": "100%" in text, "in_bytes": "B/s" in text}

"""Questions about what a load costs and leaves behind: memory, bytes read, open files, a bar."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch


def share_read(folder: str, tp_rank: int, tp_size: int) -> float | None:
    """Drain load_weight as one rank: bytes read by system calls over the files' bytes; None where nobody counts."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    set_tp_info(tp_rank, tp_size)
    before = after = 0
    for _ in range(2):  # the first time also reads the modules that are imported on first use
        before = _bytes_read()
        for _ in load_weight(folder, torch.device("cpu"), progress=False):
            pass
        after = _bytes_read()
    whole = sum(file.stat().st_size for file in Path(folder).glob("*.safetensors"))
    return None if before is None else round((after - before) / whole, 1)


def _bytes_read() -> int | None:
    """Return how many bytes this process has read through system calls, or None where nobody counts them."""
    try:
        return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])
    except (OSError, IndexError):
        return None


def drained(folder: str, tp_rank: int = 0, tp_size: int = 1) -> dict[str, int]:
    """Drain load_weight and drop each tensor at once; what it holds meanwhile is measured from outside."""
    import ctypes

    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    if hasattr(ctypes.CDLL(None), "mallopt"):  # have glibc give freed tensors back at once, so that they don't count
        ctypes.CDLL(None).mallopt(-3, 128 * 1024)  # M_MMAP_THRESHOLD, fixed
    set_tp_info(tp_rank, tp_size)
    num_tensors = num_bytes = 0
    for _, tensor in load_weight(folder, torch.device("cpu"), progress=False):
        num_tensors += 1
        num_bytes += tensor.nbytes
        del tensor
    return {"num_tensors": num_tensors, "num_bytes": num_bytes}


def left_open(folder: str, take: int) -> dict[str, int]:
    """Take a few tensors and close the generator: how many more files and threads there are than before."""
    import threading

    from minisgl.models import load_weight

    list(load_weight(folder, torch.device("cpu"), progress=False))  # what the first use opens for good stays open
    files, threads = _open_files(), threading.active_count()
    stream = load_weight(folder, torch.device("cpu"), progress=False)
    for _ in range(take):
        next(stream)
    stream.close()
    return {"files": _open_files() - files, "threads": threading.active_count() - threads}


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


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

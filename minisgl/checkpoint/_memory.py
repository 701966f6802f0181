"""Memory of special kinds: a file's own pages as a tensor, and buffers in large pages."""

import ctypes
import mmap
import sys
import weakref
from functools import cache

import torch

_MAP_NORESERVE = 0x4000  # Linux; Python's mmap module has no name for it before 3.13
_MADV_HUGEPAGE = 14
_MADV_POPULATE_WRITE = 23  # since Linux 5.14; an older kernel refuses it, and nothing is lost
_HUGE_PAGE_BYTES = 2 * 1024 * 1024


@cache
def _libc() -> ctypes.CDLL | None:
    """Return the C library with the calls below described, or None where they may differ."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_longlong]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def map_file(descriptor: int, begin: int, num_bytes: int) -> torch.Tensor | None:
    """Map a part of a file, copy-on-write: its pages are shared with the page cache until somebody writes to them.

    Python's own ``mmap`` would keep the file open for as long as the tensor lives, one descriptor for each.

    Args:
        descriptor: An open file that reaches at least to the part's end; may be closed afterwards.
        begin: First byte.
        num_bytes: Size of the part, at least 1.

    Returns:
        The part as uint8 [num_bytes], with a storage of just that size; None where mapping isn't possible.
    """
    libc = _libc()
    if libc is None:
        return None
    first_page = begin - begin % mmap.ALLOCATIONGRANULARITY
    length = begin + num_bytes - first_page
    protection, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_NORESERVE
    address = libc.mmap(None, length, protection, kind, descriptor, first_page)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    # From a cold disk, one large read ahead instead of a small one at each page's first use.
    libc.madvise(address, length, mmap.MADV_WILLNEED)
    memory = (ctypes.c_ubyte * num_bytes).from_address(address + begin - first_page)
    weakref.finalize(memory, libc.munmap, address, length).atexit = False  # a thread may still compute then
    return torch.frombuffer(memory, dtype=torch.uint8)


def empty_in_large_pages(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a new CPU tensor that the kernel backs with 2 MiB pages where it can.

    Meant for buffers that are used again and again. For memory that is filled once they don't pay: beside a full page
    cache the kernel has to move pages to make large ones (560 MiB took 1.7 s of CPU, in small pages 0.4 s).
    """
    tensor = torch.empty(shape, dtype=dtype, device="cpu")
    libc, address = _libc(), tensor.data_ptr()
    begin = -(-address // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
    end = (address + tensor.nbytes) // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES
    if libc is not None and begin < end:
        libc.madvise(begin, end - begin, _MADV_HUGEPAGE)
    return tensor


def populate(tensor: torch.Tensor) -> None:
    """Have the kernel find memory for all pages of a CPU tensor now, in the calling thread and beside others.

    Page-locking would do the same behind a lock of the driver's, one thread after the other.
    """
    libc, address, page = _libc(), tensor.data_ptr(), mmap.PAGESIZE
    begin, end = -(-address // page) * page, (address + tensor.nbytes) // page * page
    if libc is not None and begin < end:
        libc.madvise(begin, end - begin, _MADV_POPULATE_WRITE)

"""Have what a forked process allocates lie together: each page that it writes to is copied first."""

from __future__ import annotations

import ctypes
import sys

_LIBC = ctypes.CDLL(None)
# Sizes of the holes that malloc is to be rid of, largest first: small blocks fill what larger ones left.
_SIZES = (*range(100_000, 1024, -1024), *range(1024, 8, -16))


class _MallocInfo(ctypes.Structure):
    """What glibc tells about its heap; ``keepcost`` is the size of the free block at its end."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def fill_holes() -> None:
    """Take all free blocks below the heap's last one, for good: a megabyte after the libraries are imported.

    The holes are spread over the whole heap. Taking them one after another, as malloc does, a process that imports a
    student's module copies 300 pages more than it does when new blocks follow one another: 2 ms.
    """
    if sys.platform != "linux" or not hasattr(_LIBC, "mallinfo2"):
        return
    malloc, sbrk, free = _LIBC.malloc, _LIBC.sbrk, _LIBC.free
    malloc.restype = sbrk.restype = ctypes.c_void_p
    malloc.argtypes, sbrk.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_long], [ctypes.c_void_p]
    _LIBC.mallinfo2.restype = _MallocInfo
    end = sbrk(0) - _LIBC.mallinfo2().keepcost
    for size in _SIZES:
        while (block := malloc(size)) and block < end:
            pass
        free(block)

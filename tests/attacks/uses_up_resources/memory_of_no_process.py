# kind: uses up resources
# example: gigabytes in files without a name and in System V segments, mapped by nobody, beside a right answer
# part: config.head_dim
# base: reference
# status: failed
# cause: not permitted|more than
import ctypes
import os

_head_dim_of = head_dim_of
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.shmat.restype = ctypes.c_void_p
_LIBC.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


def _nameless_file():
    return os.memfd_create("memory")


def _segment():
    found = _LIBC.shmget(0, 64 << 20, 0o1600)
    if found < 0:
        raise OSError(ctypes.get_errno(), "not permitted: a segment")
    address = _LIBC.shmat(found, None, 0)
    ctypes.memset(address, 1, 64 << 20)


def head_dim_of(hf_config):
    try:
        for _ in range(32):
            _segment()
    except OSError:
        for _ in range(32):
            with os.fdopen(_nameless_file(), "wb", closefd=False) as file:
                file.write(bytes(48 << 20))
    return _head_dim_of(hf_config)

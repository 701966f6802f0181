"""The dtypes that weights come in, and the context that new parameters take theirs from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from minisgl.errors import MinisglError

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@contextmanager
def torch_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make `dtype` the default of new float tensors while the `with` block runs, also if it raises."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def parse_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """Return the torch dtype of a name such as "bfloat16" (or "torch.bfloat16"), or of itself.

    Raises:
        MinisglError: weights can't be computed with in this dtype.
    """
    name = dtype_name(dtype) if isinstance(dtype, torch.dtype) else str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise MinisglError(f"dtype is {dtype!r}; expected one of {', '.join(_DTYPES)}.")
    return _DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """Return the dtype's name without "torch."."""
    return str(dtype).removeprefix("torch.")

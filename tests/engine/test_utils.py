"""Division that loses nothing, and dtypes by name or for a while."""

import pytest
import torch

from minisgl.errors import MinisglError
from minisgl.utils import div_ceil, div_even, dtype_name, parse_dtype, torch_dtype


def test_even_division_is_exact() -> None:
    assert div_even(12, 4) == 3


@pytest.mark.parametrize("divisor", [5, 0, -3])
def test_uneven_division_names_the_divisors(divisor: int) -> None:
    with pytest.raises(MinisglError) as caught:
        div_even(12, divisor, "num_heads")
    assert str(caught.value) == (
        f"num_heads 12 can't be divided by {divisor}; expected one of its divisors: 1, 2, 3, 4, 6, 12."
    )


def test_div_ceil_rounds_up() -> None:
    assert [div_ceil(number, 4) for number in (1, 4, 5, 8)] == [1, 1, 2, 2]


def test_the_default_dtype_comes_back_even_after_an_error() -> None:
    with pytest.raises(KeyError), torch_dtype(torch.float16):
        assert torch.empty(1).dtype == torch.float16
        raise KeyError
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("spelling", ["bfloat16", "torch.bfloat16", torch.bfloat16])
def test_a_dtype_is_known_by_name(spelling: str | torch.dtype) -> None:
    assert parse_dtype(spelling) == torch.bfloat16
    assert dtype_name(torch.bfloat16) == "bfloat16"


@pytest.mark.parametrize("dtype", ["int8", torch.float64, "half"])
def test_other_dtypes_are_refused(dtype: str | torch.dtype) -> None:
    with pytest.raises(MinisglError) as caught:
        parse_dtype(dtype)
    assert str(caught.value) == f"dtype is {dtype!r}; expected one of float32, float16, bfloat16."

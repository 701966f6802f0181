"""Integer division that doesn't lose anything silently."""

from __future__ import annotations

from minisgl.errors import MinisglError


def div_even(dividend: int, divisor: int, what: str = "the size") -> int:
    """Return dividend / divisor where it is whole.

    Args:
        dividend: what is divided.
        divisor: into how many parts.
        what: the dividend's name, for the message.

    Raises:
        MinisglError: the division leaves a remainder, or `divisor` is not positive.
    """
    if divisor < 1 or dividend % divisor:
        divisors = ", ".join(str(count) for count in range(1, dividend + 1) if dividend % count == 0)
        raise MinisglError(
            f"{what} {dividend} can't be divided by {divisor}; expected one of its divisors: {divisors}."
        )
    return dividend // divisor


def div_ceil(dividend: int, divisor: int) -> int:
    """Return dividend / divisor rounded up, for positive numbers."""
    return -(-dividend // divisor)

"""Comparisons that explain themselves: what was expected, what came, and the likely cause."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from autograder.judge.compare_keys import key_differences
from autograder.worker.plain import MetaTensor

MAX_LINES = 12
NUM_SHOWN = 6
NUM_BEFORE = 2
_DIGITS = (5, 9, 17)


class CheckFailed(AssertionError):
    """Report that a check isn't passed.

    Args:
        message: what is wrong, in words.
        expected: what was expected, already as text.
        came: what came, already as text.
        hint: the concept that is likely to have gone wrong; never the solution.
        status: one of the report's statuses.
    """

    def __init__(
        self, message: str, expected: str = "", came: str = "", hint: str = "", *, status: str = "failed"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.came = came
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"expected: {self.expected}"] if self.expected else []
        lines += [f"came:     {self.came}"] if self.came else []
        lines += [f"hint:     {self.hint}"] if self.hint else []
        return "\n".join(lines)


def wrong(message: str, *, hint: str = "", expected: Any = "", came: Any = "") -> None:
    """Fail with a message."""
    raise CheckFailed(message, str(expected), str(came), hint)


def expect_true(condition: bool, message: str, *, hint: str = "") -> None:
    """Fail with a message unless the condition holds."""
    if not condition:
        raise CheckFailed(message, hint=hint)


def show(value: Any, most: int = 300) -> str:
    """Return a short text for a plain value; a tensor by shape, dtype and first numbers."""
    if isinstance(value, torch.Tensor):
        return show_tensor(value)
    if isinstance(value, MetaTensor):
        return f"tensor {list(value.shape)} {str(value.dtype).removeprefix('torch.')} without data"
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{key!r}: {show(item, most)}" for key, item in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(show(item, most) for item in value[:40]) + (", …]" if len(value) > 40 else "]")
    else:
        text = repr(value)
    return text if len(text) <= most else text[:most] + "…"


def show_tensor(tensor: torch.Tensor, first: int = 0, digits: int = 5) -> str:
    """Return a tensor's shape, dtype and a few numbers: the first ones, or those around the one with this flat index."""
    start = max(0, min(first - NUM_BEFORE, tensor.numel() - NUM_SHOWN))
    numbers = [f"{number:.{digits}g}" for number in tensor.flatten()[start : start + NUM_SHOWN].tolist()]
    numbers = ["…"] * (start > 0) + numbers + ["…"] * (start + NUM_SHOWN < tensor.numel())
    place = f", around {_place(first, tensor.shape)}:" if start else ""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"tensor {list(tensor.shape)} {dtype}{place} [{', '.join(numbers)}]"


def _place(flat: int, shape: torch.Size) -> list[int]:
    place: list[int] = []
    for length in reversed(shape):
        flat, index = divmod(flat, length)
        place.insert(0, index)
    return place


def expect(
    actual: Any, expected: Any, *, hint: str = "", what: str = "the answer", tolerance: float | None = None
) -> None:
    """Compare nested plain data; report the first place that differs.

    Args:
        actual: what came.
        expected: what was expected. Tuples and lists are the same; ints and bools are not.
        hint: the concept to think of.
        what: what the value is, for the message.
        tolerance: for floats and floating tensors: |actual - expected| <= tolerance * (1 + |expected|); otherwise
            they must be equal.

    Raises:
        CheckFailed: they differ.
    """
    found = _difference(actual, expected, what, tolerance)
    if found is not None:
        where, mine, theirs, note = found
        texts = _show_both(theirs, mine, tolerance) if _comparable(mine, theirs) else (show(theirs), show(mine))
        raise CheckFailed(f"{where} {note}", *texts, hint)


def _difference(actual: Any, expected: Any, where: str, tolerance: float | None) -> tuple[str, Any, Any, str] | None:
    if isinstance(expected, torch.Tensor):
        note = _tensor_difference(actual, expected, tolerance)
        return (where, actual, expected, note) if note else None
    if isinstance(expected, (list, tuple)):
        expected = list(expected)
        if type(actual) is not list or len(actual) != len(expected):
            return where, actual, expected, "isn't what was expected"
        pairs = [
            (f"{where}[{index}]", mine, theirs)
            for index, (mine, theirs) in enumerate(zip(actual, expected, strict=True))
        ]
    elif isinstance(expected, dict):
        if type(actual) is not dict:
            return where, actual, expected, "isn't a dict"
        missing, extra = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
        if missing or extra:
            note = "".join([f"lacks {missing}" if missing else "", "; " if missing and extra else ""])
            return where, actual, expected, note + (f"has {extra} too many" if extra else "")
        pairs = [(f"{where}[{key!r}]", actual[key], theirs) for key, theirs in expected.items()]
    else:
        same = _same_scalar(actual, expected, tolerance)
        return None if same else (where, actual, expected, "isn't what was expected")
    return next(
        (found for place, mine, theirs in pairs if (found := _difference(mine, theirs, place, tolerance))), None
    )


def _same_scalar(actual: Any, expected: Any, tolerance: float | None) -> bool:
    if type(expected) is float and type(actual) in (int, float) and tolerance is not None:
        return abs(actual - expected) <= tolerance * (1 + abs(expected))
    if type(expected) is float and type(actual) is float:
        return actual == expected or math.isclose(actual, expected, rel_tol=1e-12)
    return type(actual) is type(expected) and bool(actual == expected)


def _tensor_difference(actual: Any, expected: torch.Tensor, tolerance: float | None) -> str:
    if not isinstance(actual, torch.Tensor):
        return "isn't a tensor with data"
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, expected {list(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"has dtype {actual.dtype}, expected {expected.dtype}"
    bad = _bad(actual, expected, tolerance)
    if not bool(bad.any()):
        return ""
    if actual.dtype.is_floating_point and not bool(torch.isfinite(actual).all()):
        return "holds numbers that aren't finite"
    first = [int(index) for index in bad.nonzero()[0]] if bad.dim() else []
    return f"differs in {int(bad.sum())} of {bad.numel()} numbers, first at {first}"


def _bad(actual: torch.Tensor, expected: torch.Tensor, tolerance: float | None) -> torch.Tensor:
    if tolerance is None or not expected.dtype.is_floating_point:
        return ~(actual == expected)
    gap = (actual.double() - expected.double()).abs()
    return ~(gap <= tolerance * (1 + expected.double().abs()))  # a NaN is never within the tolerance


def _show_both(expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None) -> tuple[str, str]:
    """Show both around the first number that differs, with digits enough to tell them apart."""
    bad = _bad(actual, expected, tolerance).flatten()
    first = int(bad.nonzero()[0])
    for digits in _DIGITS:
        texts = show_tensor(expected, first, digits), show_tensor(actual, first, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _comparable(actual: Any, expected: Any) -> bool:
    tensors = isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)
    return tensors and actual.shape == expected.shape and actual.dtype == expected.dtype


def expect_keys(
    actual: Any, expected: Mapping[str, Any], *, hint: str = "", causes: Mapping[str, str] | None = None
) -> None:
    """Compare two tables name -> tensor or MetaTensor by names, shapes and dtypes; show the difference as a list.

    Args:
        actual: what came.
        expected: what was expected.
        hint: the concept to think of.
        causes: the end of a key's path -> the likely cause to show beside it, as ``key_differences`` has it.

    Raises:
        CheckFailed: they differ.
    """
    if type(actual) is not dict:
        raise CheckFailed("the answer isn't a table of tensors", f"{len(expected)} tensors", show(actual), hint)
    count, lines = key_differences(actual, expected, causes or {})
    if lines:
        more = [f"… and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
        head = "1 key differs:" if count == 1 else f"{count} keys differ:"
        raise CheckFailed("\n".join([head, *lines[:MAX_LINES], *more]), hint=hint)


def expect_refusal(refusal: Any, *, names: Sequence[str] = (), hint: str = "", error: str = "ValueError") -> None:
    """Want an error of this class, or one derived from it, whose message holds each of the names."""
    if error not in (refusal.type, *refusal.bases):
        raise CheckFailed(
            "the error is of the wrong kind",
            f"a {error}" if error != "ValueError" else "a ConfigError, CheckpointError or other ValueError",
            f"{refusal.type}: {refusal.message[:300]}",
            hint,
        )
    lacking = [name for name in names if str(name) not in refusal.message]
    if lacking:
        raise CheckFailed(
            "the error's message doesn't say what is wrong",
            f"a message that names {', '.join(map(str, lacking))}",
            refusal.message[:300],
            hint,
        )

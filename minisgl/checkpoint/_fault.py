"""How every error about a folder's files is worded: the place, what was found, what was expected, what to do."""

from collections.abc import Iterable
from pathlib import Path

from minisgl.errors import CheckpointError, MinisglError

_MAX_LISTED = 12


def fault(
    place: Path | str, found: str, expected: str, advice: str, kind: type[MinisglError] = CheckpointError
) -> MinisglError:
    """Build the error that a damaged, incomplete or inconsistent file or folder gets.

    Args:
        place: The file or folder that is at fault.
        found: What is there, with names and values.
        expected: What should have been there.
        advice: What the user can do about it.
        kind: The error's class.
    """
    return kind(f"{place}: {found}. Expected: {expected}. What to do: {advice}.")


def listed(names: Iterable[str]) -> str:
    """Join names for a message: sorted, quoted (so that odd characters show), long lists cut with a count."""
    ordered = sorted(set(names))
    shown = ", ".join(quoted(name) for name in ordered[:_MAX_LISTED])
    rest = len(ordered) - _MAX_LISTED
    return f"{shown} and {rest} more" if rest > 0 else shown


def quoted(value: object) -> str:
    """Quote a value from a file for a message, cut to a readable length."""
    try:
        text = ascii(value)
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 160 else f"{text[:150]}..."

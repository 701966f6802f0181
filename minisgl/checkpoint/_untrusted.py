"""Read small files that aren't trusted: never wait on a pipe, never take JSON for more than it is."""

import json
import os
import stat
from pathlib import Path

from minisgl.checkpoint._fault import fault, quoted

# The safetensors library's own limit; the 36,000 tensors of a 235B MoE model need 5 MB.
MAX_HEADER_BYTES = 100_000_000
DOWNLOAD_AGAIN = "download the file again"


def read_regular_file(file: Path, max_bytes: int) -> tuple[bytes, int]:
    """Read a regular file's first bytes without ever waiting on a pipe or a device.

    Returns:
        At most ``max_bytes`` bytes, and the file's whole size in bytes.

    Raises:
        CheckpointError: It is missing, unreadable, or not a regular file.
    """
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to would otherwise wait forever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise fault(file, "not a regular file", "a file with tensors", "replace it by the real file")
            parts, max_bytes = [], min(max_bytes, status.st_size)
            while max_bytes > 0 and (part := os.read(descriptor, max_bytes)):
                parts.append(part)
                max_bytes -= len(part)
            return b"".join(parts), status.st_size
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        found = "a link whose target is missing" if file.is_symlink() else "missing"
        raise fault(file, found, "a readable file", DOWNLOAD_AGAIN) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise fault(
            file, f"can't be read ({reason})", "a readable file", "check the path and its permissions"
        ) from None


class _DuplicateKeyError(ValueError):
    """Carry the key that a JSON object holds twice."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        raise _DuplicateKeyError(twice[0])
    return result


def parse_json(file: Path, text: bytes, what: str, advice: str) -> object:
    """Parse JSON from a file that isn't trusted.

    Raises:
        CheckpointError: Not JSON, not UTF-8, nested too deeply, a number too long, or a key twice in one object.
    """
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except _DuplicateKeyError as error:
        raise fault(file, f"{what} holds the key {quoted(str(error))} twice", "each key once", advice) from None
    except (ValueError, RecursionError) as error:
        reason = type(error).__name__ if isinstance(error, RecursionError) else quoted(str(error))
        raise fault(file, f"{what} is not valid JSON ({reason})", "one JSON object", advice) from None

"""Read small files that aren't trusted: never wait on a pipe, never take JSON for more than it is."""

import json
import os
import stat
from pathlib import Path

from minisgl.checkpoint._fault import fault, quoted
from minisgl.errors import CheckpointError, MinisglError

# The safetensors library's own limit; the 36,000 tensors of a 235B MoE model need 5 MB.
MAX_HEADER_BYTES = 100_000_000
LFS_POINTER = b"version https://git-lfs"
DOWNLOAD_AGAIN = "download the file again"


def read_regular_file(
    file: Path, max_bytes: int, expected: str = "a file with tensors", kind: type[MinisglError] = CheckpointError
) -> tuple[bytes, int]:
    """Read a regular file's first bytes without ever waiting on a pipe or a device.

    Returns:
        At most ``max_bytes`` bytes, and the file's whole size in bytes.

    Raises:
        CheckpointError: It is missing, unreadable, or not a regular file (or ``kind`` instead).
    """
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to would otherwise wait forever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise fault(file, "not a regular file", expected, "replace it by the real file", kind)
            parts, max_bytes = [], min(max_bytes, status.st_size)
            while max_bytes > 0 and (part := os.read(descriptor, max_bytes)):
                parts.append(part)
                max_bytes -= len(part)
            return b"".join(parts), status.st_size
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        is_link = os.path.islink(file)
        found = "a link whose target is missing, as after an interrupted download" if is_link else "missing"
        raise fault(file, found, expected, DOWNLOAD_AGAIN, kind) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise fault(file, f"can't be read ({reason})", expected, "check the path and its permissions", kind) from None


class _DuplicateKeyError(ValueError):
    """Carry the key that a JSON object holds twice."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        raise _DuplicateKeyError(twice[0])
    return result


def parse_json(
    file: Path, text: bytes, what: str, advice: str, kind: type[MinisglError] = CheckpointError
) -> object:
    """Parse JSON from a file that isn't trusted; a byte order mark before it is left out.

    Raises:
        CheckpointError: Not JSON, not UTF-8, nested too deeply, a number too long, a key twice in one object, or a
            git-lfs pointer (or ``kind`` instead).
    """
    if text.startswith(LFS_POINTER):
        remedy = "run `git lfs install` and `git lfs pull` in the folder, or download the file itself"
        raise fault(file, "a git-lfs pointer, not the file it stands for", what, remedy, kind)
    try:
        return json.loads(text.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except _DuplicateKeyError as error:
        raise fault(file, f"{what} holds the key {quoted(str(error))} twice", "each key once", advice, kind) from None
    except RecursionError:
        raise fault(file, f"{what} is nested too deeply", "a few levels", advice, kind) from None
    except ValueError as error:
        raise fault(file, f"{what} is not valid JSON ({quoted(str(error))})", "one JSON object", advice, kind) from None

"""What a session works with: a tree laid out on disk, what came out of one probe, pipes read without waiting."""

from __future__ import annotations

import base64
import importlib.util
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


def build_tree(root: Path, provided: Path, files: dict[str, str], compiled: dict[str, str]) -> None:
    """Lay out ``root/minisgl``: the given files, and links to the provided ones.

    Args:
        root: an empty folder.
        provided: folder with the provided files (its ``minisgl`` holds no graded module).
        files: text of each graded module, by path below ``minisgl/``; a missing one stays missing.
        compiled: their ``.pyc`` files in base64; empty where there is none.
    """
    package = root / "minisgl"
    (package / "models").mkdir(parents=True)
    for source in sorted((provided / "minisgl").iterdir()):
        if source.name not in ("models", "__pycache__"):
            (package / source.name).symlink_to(source)
    for source in sorted((provided / "minisgl" / "models").iterdir()):
        if source.name != "__pycache__":
            (package / "models" / source.name).symlink_to(source)
    for path, text in files.items():
        (package / path).write_text(text, encoding="utf-8", newline="\n")
        if compiled.get(path):
            cache = Path(importlib.util.cache_from_source(str(package / path)))
            cache.parent.mkdir(exist_ok=True)
            cache.write_bytes(base64.b64decode(compiled[path]))


@dataclass
class Watched:
    """What came out of one probe."""

    received: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)
    stopped: str = ""
    detail: str = ""
    exit_status: int = 0
    cpu_s: float = 0.0
    peak_kib: int = 0
    start_kib: int = 0
    together_kib: int = 0
    child_kib: int = 0


def read_some(fd: int, most: int) -> bytes | None:
    """Read from a pipe that is ready: empty at its end, None when there was nothing after all."""
    try:
        return os.read(fd, most)
    except BlockingIOError:
        return None


def read_rest(fd: int, received: bytearray, most: int) -> None:
    """Read what a pipe still holds, without waiting for whoever keeps its other end open."""
    os.set_blocking(fd, False)
    with suppress(BlockingIOError):
        while len(received) <= most and (part := os.read(fd, 1 << 16)):
            received += part

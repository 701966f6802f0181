"""A tree laid out on disk: the modules under judgement, and links to the provided files."""

from __future__ import annotations

import base64
import importlib.util
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
    for folder in (provided / "minisgl", provided / "minisgl" / "models"):
        for source in sorted(folder.iterdir()):
            if source.name not in ("models", "__pycache__"):
                (package / source.relative_to(provided / "minisgl")).symlink_to(source)
    for path, text in files.items():
        (package / path).write_text(text, encoding="utf-8", newline="\n")
        if compiled.get(path):
            cache = Path(importlib.util.cache_from_source(str(package / path)))
            cache.parent.mkdir(exist_ok=True)
            cache.write_bytes(base64.b64decode(compiled[path]))

"""Write files that are made from something else, or only compare them: what api.py, lock.py and structure.py do when started.

Plain Python, since `make structure` runs before anything is installed.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def write_or_compare(make: Callable[[], dict[Path, str]], what: str, target: str, argv: list[str] | None) -> int:
    """Write the files that are out of date; with ``--check`` only name them.

    Args:
        make: returns each file's path and text as it should be.
        what: the files, in words.
        target: the make target that writes them.
        argv: the arguments after the program's name; None for those of this process.

    Returns:
        The exit code: 1 when ``--check`` finds a file out of date.
    """
    parser = argparse.ArgumentParser(description=f"Write {what} (`make {target}`).")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if a file is out of date")
    options = parser.parse_args(argv)
    stale = {path: text for path, text in make().items() if not path.exists() or path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if options.check:
            print(f"{path.name} is out of date; run `make {target}`", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return int(options.check and bool(stale))

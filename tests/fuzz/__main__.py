"""Fuzz the loader: ``python -m tests.fuzz --cases 10000 --seed 0``."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.cases import run


def main() -> int:
    """Run the cases; exit 1 at the first that isn't allowed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Load damaged checkpoints.")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            counts = run(options.seed, options.cases, Path(folder))
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
    print(f"{options.cases} cases in {time.monotonic() - started:.0f} s: {counts['refused']} refused, "
          f"{counts['loaded']} loaded as the files have them, none hung, none failed otherwise")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The command line: `python -m minisgl inspect | generate | fetch`.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed (one message says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from minisgl.cli import fetch, generate, inspect
from minisgl.errors import MinisglError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the arguments after the program's name; None for those of this process.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except MinisglError as error:
        print(f"minisgl {arguments.command}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"minisgl {arguments.command}: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"minisgl {arguments.command}: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m minisgl", description="Look into a model's checkpoint, load it, and let it talk."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (inspect, generate, fetch):
        name = module.__name__.rpartition(".")[2]
        summary = (module.__doc__ or "").splitlines()[0]
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser

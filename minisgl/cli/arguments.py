"""Argument types that more than one command uses; argparse turns their ValueError into a usage error."""

from __future__ import annotations

import argparse


def positive_int(text: str) -> int:
    """Read a number from 1.

    Raises:
        argparse.ArgumentTypeError: `text` is something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)

"""Bring SmolLM2-135M-Instruct into the cache and print its folder."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: $MINISGL_CACHE says where the cache is."""


def run(arguments: argparse.Namespace) -> None:
    """Fetch the model; the last line of stdout is its folder.

    Raises:
        MinisglError: the model can't be downloaded or stored.
    """
    from minisgl.hub import fetch_smollm2

    folder = fetch_smollm2()
    print("The course's small model, SmolLM2-135M-Instruct, is in:", file=sys.stderr, flush=True)
    print(folder)

"""The option that makes the long run of the same test."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-examples", type=int, default=None, help="how many damaged checkpoints to load")

"""What several tests of packaging share: a copy of the tracked files, and an environment to install into."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.shell import BIN
from tests.project.tree import copy_tracked


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files."""
    return copy_tracked(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that finds every requirement, but not our packages, where this one has them."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (packages / "requirements.pth").write_text(str(BIN.parent / packages.relative_to(folder)))
    pip = folder / "bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m pip "$@"\n')
    pip.chmod(0o755)
    return folder

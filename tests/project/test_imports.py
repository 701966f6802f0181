"""Imports go one way only."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.imports import NOTEBOOK_LIBRARIES, circle_in, violations
from tests.project.tree import ROOT, python_files


def test_imports_follow_the_arrows():
    assert not violations(ROOT, python_files("minisgl", "autograder", "solutions"))


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("minisgl/core.py", "import autograder"),
        ("minisgl/core.py", "def f():\n    from autograder.worker import run"),
        ("minisgl/models/base.py", "from ...tests import conftest"),
        ("minisgl/viz/race.py", "import autograder.worker as worker"),
        ("minisgl/core.py", "import matplotlib.pyplot as plt"),
        ("minisgl/core.py", "try:\n    import IPython\nexcept ImportError:\n    pass"),
        ("minisgl/core.py", "from . import viz"),
        ("minisgl/core.py", "from minisgl.attention import KVCache"),
        ("minisgl/layers/rotary.py", "if TYPE_CHECKING:\n    from minisgl.models import RotaryConfig"),
        ("minisgl/distributed/sizes.py", "from ..models.config import ModelConfig"),
        ("minisgl/checkpoint/reader.py", "def f():\n    import minisgl.models.weight"),
        ("minisgl/names.py", "from minisgl.layers import BaseOP"),
        ("minisgl/models/weight.py", "from minisgl.engine import Engine"),
        ("minisgl/models/base.py", "from ..viz.race import Race"),
        ("minisgl/core.py", "import importlib\nimportlib.import_module('ipywidgets')"),
        ("autograder/worker.py", "from tests.checks import conftest"),
        ("autograder/worker.py", "from minisgl import viz"),
        ("autograder/text/work.py", "from autograder.judge import judge"),
        ("autograder/judge/judge.py", "def f():\n    from autograder.student import display"),
        ("autograder/student/magic.py", "from ..classroom.grade import main"),
        ("solutions/answer.py", "import tests"),
    ],
)
def test_a_planted_wrong_import_is_found(tmp_path: Path, file: str, line: str):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(line)
    assert len(violations(tmp_path, [tmp_path / file])) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("minisgl/viz/race.py", "import ipywidgets\nfrom minisgl.utils import memory\nfrom ..models import config"),
        ("minisgl/engine.py", "from .models import config\nimport torch\nimport testslike"),
        ("autograder/worker.py", "import minisgl\nfrom minisgl import models\nimport IPython"),
        ("solutions/answer.py", "import autograder\nfrom minisgl.viz import race"),
    ],
)
def test_a_right_import_is_left_alone(tmp_path: Path, file: str, line: str):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(line)
    assert not violations(tmp_path, [tmp_path / file])


@pytest.mark.parametrize("house", ["autograder", "minisgl"])
def test_no_modules_import_each_other_in_a_circle(house: str):
    """The labs (minisgl.viz) import what lies below them, and nothing imports them: they are a matter of their own."""
    files = [path for path in python_files(house) if not path.is_relative_to(ROOT / "minisgl/viz")]
    assert circle_in(ROOT, files) == []


def test_a_planted_circle_is_found(tmp_path: Path):
    for name, line in (
        ("a", "from pack import b"),
        ("b", "def f():\n    import pack.c"),
        ("c", "from pack.a import x"),
    ):
        (tmp_path / "pack").mkdir(exist_ok=True)
        (tmp_path / "pack" / f"{name}.py").write_text(line)
    assert set(circle_in(tmp_path, sorted(tmp_path.rglob("*.py")))) == {"pack.a", "pack.b", "pack.c"}


def test_importing_minisgl_brings_neither_transformers_nor_jupyter(tmp_path: Path):
    program = "import sys, json, minisgl; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & (NOTEBOOK_LIBRARIES | {"transformers", "autograder"})

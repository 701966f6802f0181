"""docs/structure.md is what the source says."""

import subprocess
import sys
from pathlib import Path

from scripts import structure
from tests.project.tree import ROOT, python_files


def test_the_page_is_up_to_date():
    assert structure.main(["--check"]) == 0, "run `make structure` and commit docs/structure.md"


def test_the_script_needs_no_installed_package(tmp_path: Path):
    command = [sys.executable, "-S", ROOT / "scripts/structure.py", "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_module_makes_the_page_stale(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(structure, "PAGE", tmp_path / "structure.md")
    assert structure.main([]) == 0
    assert structure.main(["--check"]) == 0
    structure.PAGE.write_text(structure.PAGE.read_text().replace("config.py", "configs.py"))
    assert structure.main(["--check"]) == 1
    assert "run `make structure`" in capsys.readouterr().err


def test_every_module_says_what_it_holds():
    modules = [path for path in python_files("minisgl", "autograder") if path.read_text().strip()]
    assert not [path for path in modules if not structure.first_sentence(path.read_text())]


def test_imports_between_folders_are_found(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    for name, source in {
        "minisgl/models/base.py": '"""Hold it. More."""\nfrom minisgl.layers import BaseOP\nfrom ..utils import x\n',
        "minisgl/layers/__init__.py": "",
        "minisgl/utils.py": "",
        "autograder/worker.py": "def f():\n    import minisgl.models.base\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    page = structure.page_text()
    assert "| `base.py` | Hold it |" in page
    assert "Imports `minisgl`, `minisgl/layers`." in page
    assert "Imports `minisgl/models`." in page

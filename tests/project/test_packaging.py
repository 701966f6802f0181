"""The built wheel and `pip install .` work on their own, outside the clone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.project.shell import shell
from tests.project.tree import ROOT, tracked_files


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the copy."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", out, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's contents as they lie in site-packages."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run_outside(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_every_file_of_the_packages_and_the_checks(wheel: Path):
    names = {path.relative_to(ROOT).as_posix() for path in tracked_files()}
    expected = {name for name in names if name.startswith(("minisgl/", "autograder/"))}
    expected |= {name.replace("tests/", "autograder/", 1) for name in names if name.startswith("tests/checks/")}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected


def test_both_packages_are_imported_from_the_wheel(installed: Path, tmp_path: Path):
    program = "import minisgl.models, autograder; print(minisgl.__file__, autograder.__file__)"
    done = run_outside(installed, tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    assert all(Path(path).is_relative_to(installed) for path in done.stdout.split())


@pytest.mark.parametrize("module", ["minisgl", "autograder"])
def test_the_command_lines_work_outside_the_clone(installed: Path, tmp_path: Path, module: str):
    done = run_outside(installed, tmp_path, "-m", module, "--help")
    assert done.returncode == 0, done.stderr
    assert f"python -m {module}" in done.stdout


def test_doctor_works_outside_the_clone(installed: Path, tmp_path: Path):
    done = run_outside(installed, tmp_path, "-m", "autograder.doctor")
    assert "packages: all" in done.stdout, done.stderr


def test_pip_install_brings_both_packages_and_the_extras(source: Path, environment: Path, tmp_path: Path):
    # Without an index: what isn't there would be a failure, never a download.
    variables = {"PATH": f"{environment}/bin:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    for shown in (
        shell("pip install .", cwd=source, environment=variables),
        shell("pip install '.[notebooks,viz]'", cwd=source, environment=variables),
    ):
        assert "Successfully installed minisgl-course-" in shown
    assert "ipywidgets" in shown
    tell = "import minisgl, autograder; print(minisgl.__file__, autograder.__file__)"
    places = shell(f'python -c "{tell}"', cwd=tmp_path, environment=variables).split()
    assert all(Path(place).is_relative_to(environment) for place in places)
    generate = "python -m minisgl generate --model tiny-llama --max-new-tokens 4 --prompt 'Once upon a time'"
    assert shell(generate, cwd=tmp_path, environment=variables).strip()

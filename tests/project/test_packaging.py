"""The built wheel is whole, and what `pip install .` brings works on its own, outside the clone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.authoring import release
from autograder.parts import GRADED_MODULES
from tests.project.shell import shell
from tests.project.tree import ROOT, tracked_files


def wheel_of(source: Path, out: Path) -> Path:
    """Build the wheel of a source tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", out, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def files_in(wheel: Path) -> set[str]:
    """The packages' files in a wheel."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_every_file_of_the_packages_and_the_checks(source: Path, tmp_path: Path):
    names = {path.relative_to(ROOT).as_posix() for path in tracked_files()}
    expected = {name for name in names if name.startswith(("minisgl/", "autograder/"))}
    expected |= {name.replace("tests/", "autograder/", 1) for name in names if name.startswith("tests/checks/")}
    assert files_in(wheel_of(source, tmp_path)) == expected


def test_a_kit_installed_for_all_of_a_hub_gives_no_answer_away(tmp_path: Path):
    kit = release.build(tmp_path)
    held = files_in(wheel_of(kit, tmp_path / "wheel"))
    assert {"minisgl/models/__init__.py", "autograder/student/commands.py"} <= held
    assert not {f"minisgl/{module}" for module in GRADED_MODULES} & held
    assert not {f"autograder/{name}" for name in release.INSTRUCTORS} & held


@pytest.fixture(scope="module")
def variables(environment: Path) -> dict[str, str]:
    """The variables of a shell in which the new environment is activated; without an index nothing can be downloaded."""
    return {"PATH": f"{environment}/bin:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


@pytest.fixture(scope="module")
def installed(source: Path, variables: dict[str, str]) -> tuple[str, ...]:
    """What pip says of the README's two ways to install."""
    return (
        shell("pip install .", cwd=source, environment=variables),
        shell("pip install '.[notebooks,viz]'", cwd=source, environment=variables),
    )


def test_pip_install_brings_the_packages_and_with_extras_their_requirements(installed: tuple[str, ...]):
    assert all("Successfully installed minisgl-course-" in told for told in installed)
    assert ["ipywidgets" in told for told in installed] == [False, True]


@pytest.mark.usefixtures("installed")
def test_both_packages_are_imported_from_where_they_are_installed(environment: Path, variables: dict[str, str], tmp_path: Path):
    program = "import minisgl.models, autograder; print(minisgl.__file__, autograder.__file__)"
    places = shell(f"python -c '{program}'", cwd=tmp_path, environment=variables).split()
    assert all(Path(place).is_relative_to(environment) for place in places)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python -m minisgl generate --model tiny-llama --max-new-tokens 4 --prompt 'Once upon a time'", ", there was"),
        ("python -m autograder doctor", "packages: all"),
        ("python -m autograder hint config.rope", "A nudge"),
        ("python -m autograder status", "next: write config.architecture"),
    ],
)
def test_the_command_lines_work_outside_the_clone(command: str, shown: str, variables: dict[str, str], tmp_path: Path):
    assert shown in shell(command, cwd=tmp_path, environment=variables)

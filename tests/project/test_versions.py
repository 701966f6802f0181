"""One set of versions: the ranges of pyproject.toml, the locks, and environment.yml agree."""

import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.project.tree import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCKS = {"requirements.lock": tuple(EXTRAS), "requirements-transformers4.lock": ("test",)}


def pins_of(lock: str) -> dict[str, str]:
    """The versions that are used with a lock: its own, over those of the environment."""
    lines = [line for line in (ROOT / lock).read_text().splitlines() if not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    assert len(pins) == len(lines), f"{lock} names a package twice"
    return pins if lock == "requirements.lock" else pins_of("requirements.lock") | pins


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_inside_its_range(lock: str):
    pins = pins_of(lock)
    lines = PYPROJECT["project"]["dependencies"] + PYPROJECT["build-system"]["requires"]
    lines = lines + [line for extra in LOCKS[lock] for line in EXTRAS[extra]]
    wrong = []
    for requirement in map(Requirement, lines):
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None or not requirement.specifier.contains(Version(pin)):
            wrong.append(f"{requirement} is pinned to {pin}")
    assert not wrong


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_hold_only_exact_versions_of_releases(lock: str):
    for name, pin in pins_of(lock).items():
        assert name == canonicalize_name(name)
        assert Version(pin).local is None, f"{name}=={pin} names one build of a release"


def test_transformers_4_is_laid_over_the_same_torch():
    assert "torch==" not in (ROOT / "requirements-transformers4.lock").read_text()


def test_the_locks_cover_both_lines_of_transformers():
    assert [Version(pins_of(lock)["transformers"]).major for lock in LOCKS] == [5, 4]


def test_environment_yml_has_the_lock_s_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert dict(line.split("==") for line in pip) == pins_of("requirements.lock")
    (python,) = [entry.removeprefix("python=") for entry in conda if entry.startswith("python=")]
    assert python in PYPROJECT["project"]["requires-python"]


def test_oldest_python_is_the_same_everywhere():
    from autograder.student import doctor

    oldest = ".".join(map(str, doctor.OLDEST_PYTHON))
    assert PYPROJECT["project"]["requires-python"] == f">={oldest}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert str(doctor.OLDEST_PYTHON) in (ROOT / "scripts/find_python.sh").read_text()
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()

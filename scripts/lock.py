"""Write the pinned locks and environment.yml from the environments that `make setup` built.

``requirements.lock``                 everything that pyproject.toml names, with all extras, as it lies in ``.venv/``
``requirements-transformers4.lock``   the last transformers 4 and what it needs in another version, from ``.venv/transformers4/``
``environment.yml``                   the first lock again, for conda and Binder users

Usage: ``python scripts/lock.py`` writes the files, ``python scripts/lock.py --check`` only compares. To take a newer
release of a package, install it into the environment with pip, then run this.
"""

import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.made_files import write_or_compare  # noqa: E402

PYTHON_OF_CONDA = "3.11"
HEADER = "# Written by scripts/lock.py from {place}/ and pyproject.toml. Do not edit: run `make lock`.\n"


VENV = ROOT / ".venv"
TRANSFORMERS4 = VENV / "transformers4"
"""Packages that stand before those of the environment when PYTHONPATH names the folder."""


def root_requirements(extras: tuple[str, ...] | None) -> list[Requirement]:
    """Return what pyproject.toml asks for: the core, the build system, and the given extras."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    optional = project["optional-dependencies"]
    lines = list(project["dependencies"]) + list(pyproject["build-system"]["requires"])
    for extra in optional if extras is None else extras:
        lines += optional[extra]
    return [Requirement(line) for line in lines]


def site_packages_of(venv: Path) -> Path:
    """Return the folder of installed packages in an environment.

    Raises:
        SystemExit: when the environment isn't there.
    """
    found = sorted(venv.glob("lib/python3.*/site-packages"))
    if not found:
        raise SystemExit(f"{venv} is not an environment (no lib/python3.*/site-packages); run `make setup` first")
    return found[0]


def closure(roots: Iterable[Requirement], *places: Path) -> dict[str, str]:
    """Return name -> version of the required packages and of all that they require in turn.

    Args:
        roots: what is required.
        places: folders of installed packages; a package that several have counts as the last of them has it.

    Raises:
        SystemExit: when a required package is missing or outside its range; all of them are named.
    """
    installed = {canonicalize_name(d.metadata["Name"]): d for d in metadata.distributions(path=list(map(str, places)))}
    pins: dict[str, str] = {}
    problems: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(requirement, "", "pyproject.toml") for requirement in roots]
    while todo:
        requirement, extra, wanted_by = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        if name not in installed:
            problems.add(f"{requirement} (asked for by {wanted_by}) is not installed")
            continue
        distribution = installed[name]
        # The local part of a version (torch's +cpu) says which build pip found, not which release.
        version = Version(distribution.version).public
        if not requirement.specifier.contains(version, prereleases=True):
            problems.add(f"{requirement} (asked for by {wanted_by}) does not admit the installed {version}")
        pins[name] = version
        for wanted_extra in ["", *sorted(requirement.extras)]:
            if (name, wanted_extra) not in seen:
                seen.add((name, wanted_extra))
                todo += [(Requirement(line), wanted_extra, name) for line in distribution.requires or []]
    if problems:
        raise SystemExit("cannot lock:\n  " + "\n  ".join(sorted(problems)))
    return dict(sorted(pins.items()))


def lock_text(pins: dict[str, str], place: Path) -> str:
    """Return the whole text of the lock file that is read from a place."""
    header = HEADER.format(place=place.relative_to(ROOT))
    return header + "".join(f"{name}=={version}\n" for name, version in pins.items())


def environment_text(requirements: str) -> str:
    """Return environment.yml with the pins of the given lock text, in the lock's order."""
    pins = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    head = [
        HEADER.format(place=".venv").rstrip(),
        "name: minisgl-course",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python={PYTHON_OF_CONDA}",
        "  - pip",
        "  - pip:",
    ]
    return "\n".join(head + [f"      - {pin}" for pin in pins]) + "\n"


def file_texts() -> dict[Path, str]:
    """Return the text of each file as it should be."""
    site_packages = site_packages_of(VENV)
    pins = closure(root_requirements(None), site_packages)
    other = closure(root_requirements(("test",)), site_packages, TRANSFORMERS4)
    lock = lock_text(pins, VENV)
    texts = {
        "requirements.lock": lock,
        "requirements-transformers4.lock": lock_text(dict(sorted(other.items() - pins.items())), TRANSFORMERS4),
        "environment.yml": environment_text(lock),
    }
    return {ROOT / name: text for name, text in texts.items()}


def main(argv: list[str] | None = None) -> int:
    """Write or compare the files; return 1 when ``--check`` finds one out of date."""
    return write_or_compare(file_texts, "the pinned locks and environment.yml", "lock", argv)


if __name__ == "__main__":
    sys.exit(main())

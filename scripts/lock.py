"""Write the pinned locks and environment.yml from the environments that `make setup` built.

``requirements.lock``                 everything that pyproject.toml names, with all extras, as it lies in ``.venv/``
``requirements-transformers4.lock``   the core and its tests on the last transformers 4, from ``.venv-transformers4/``
``environment.yml``                   the first lock again, for conda and Binder users

Usage: ``python scripts/lock.py`` writes the files, ``python scripts/lock.py --check`` only compares. To take a newer
release of a package, install it into the environment with pip, then run this.
"""

import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
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
HEADER = "# Written by scripts/lock.py from {venv}/ and pyproject.toml. Do not edit: run `make lock`.\n"


@dataclass(frozen=True)
class Lock:
    """One lock file: the environment it is read from and the extras of pyproject.toml that it holds."""

    file: str
    venv: str
    extras: tuple[str, ...] | None
    """None takes every extra."""


LOCKS = (
    Lock("requirements.lock", ".venv", None),
    Lock("requirements-transformers4.lock", ".venv-transformers4", ("test",)),
)


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


def closure(roots: Iterable[Requirement], site_packages: Path) -> dict[str, str]:
    """Return name -> version of the required packages and of all that they require in turn.

    Raises:
        SystemExit: when a required package is missing or outside its range; all of them are named.
    """
    installed = {canonicalize_name(d.metadata["Name"]): d for d in metadata.distributions(path=[str(site_packages)])}
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


def lock_text(lock: Lock) -> str:
    """Return the whole text of a lock file."""
    pins = closure(root_requirements(lock.extras), site_packages_of(ROOT / lock.venv))
    return HEADER.format(venv=lock.venv) + "".join(f"{name}=={version}\n" for name, version in pins.items())


def environment_text(requirements: str) -> str:
    """Return environment.yml with the pins of the given lock text, in the lock's order."""
    pins = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    head = [
        HEADER.format(venv=".venv").rstrip(),
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
    texts = {lock.file: lock_text(lock) for lock in LOCKS}
    texts["environment.yml"] = environment_text(texts["requirements.lock"])
    return {ROOT / name: text for name, text in texts.items()}


def main(argv: list[str] | None = None) -> int:
    """Write or compare the files; return 1 when ``--check`` finds one out of date."""
    return write_or_compare(file_texts, "the pinned locks and environment.yml", "lock", argv)


if __name__ == "__main__":
    sys.exit(main())

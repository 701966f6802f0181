"""Say what this machine lacks for the course: what is wrong, what was expected, what to do.

Each check returns findings; nothing here raises because of the machine. A finding is a *problem* when the
person's role can't work without it, and *advice* otherwise: a student needs no sandbox, an instructor does.
"""

import argparse
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTION = "minisgl-course"
OLDEST_PYTHON = (3, 11)
FREE_DISK_GIB = 4
"""The environment and the small model take about 3 GiB, the memory labs write checkpoints of up to 1 GiB."""
AVAILABLE_MEMORY_GIB = 3
"""Loading SmolLM2-135M in float32 twice, once by transformers for comparison, with both libraries imported."""
ROLES = ("student", "instructor", "developer")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_APPS = tuple(f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome"))


@dataclass(frozen=True)
class Finding:
    """One answer about the machine: ``status`` is ``ok``, ``advice`` or ``problem``."""

    name: str
    status: str
    found: str
    expected: str = ""
    remedy: str = ""


def finding(name: str, good: bool, found: str, expected: str, remedy: str, needed: bool = True) -> Finding:
    """Return an ``ok`` finding, or one that says what was expected and what to do about it."""
    if good:
        return Finding(name, "ok", found)
    return Finding(name, "problem" if needed else "advice", found, expected, remedy)


def check_python(role: str) -> Iterator[Finding]:
    """Check the interpreter's version."""
    yield finding(
        "python",
        sys.version_info[:2] >= OLDEST_PYTHON,
        f"{platform.python_version()} at {sys.executable}",
        "Python {}.{} or newer".format(*OLDEST_PYTHON),
        "install it, delete .venv/ and run `make setup PYTHON=/path/to/python`",
    )


def read_pins(lock: Path) -> dict[str, str]:
    """Return name -> version from a lock file of ``name==version`` lines."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", lock.read_text(encoding="utf-8"), flags=re.MULTILINE))


def installed_version(name: str) -> str | None:
    """Return an installed distribution's version without the build's local part, or None."""
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return None


def check_packages(role: str) -> Iterator[Finding]:
    """Compare the installed packages with the lock, or, outside a clone, say whether the core is there."""
    lock = ROOT / "requirements.lock"
    if lock.is_file():
        pins = read_pins(lock)
        expected, remedy = "the versions in requirements.lock", "run `make setup`, and start Python from .venv/"
    else:
        requirements = metadata.requires(DISTRIBUTION) or []
        pins = {re.split(r"[^A-Za-z0-9._-]", line)[0]: "" for line in requirements if "extra ==" not in line}
        expected, remedy = "the packages that minisgl-course asks for", f"pip install --upgrade {DISTRIBUTION}"
    found = {name: installed_version(name) for name in pins}
    missing = sorted(name for name, version in found.items() if version is None)
    other = sorted(
        f"{name} {version} instead of {pins[name]}"
        for name, version in found.items()
        if version is not None and pins[name] and version != pins[name]
    )
    summary = f"missing: {', '.join(missing)}" if missing else f"all {len(pins)} installed"
    yield finding("packages", not missing, summary, expected, remedy)
    if other:
        # Other versions within the ranges may well work; they are only not the ones that were tested.
        yield finding("package versions", False, "; ".join(other), expected, remedy, needed=False)


def check_jupyter(role: str) -> Iterator[Finding]:
    """Check that JupyterLab and nbgrader are installed."""
    for name in ("jupyterlab", "nbgrader"):
        version = installed_version(name)
        yield finding(
            name,
            version is not None,
            version or "not installed",
            f"{name} beside the Python that runs this",
            f"run `make setup`, or `pip install '{DISTRIBUTION}[notebooks]'`",
        )


def find_chromium() -> str | None:
    """Return the program of a Chromium or Chrome, or None."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    return found or next((app for app in CHROMIUM_APPS if Path(app).is_file()), None)


def check_chromium(role: str) -> Iterator[Finding]:
    """Check for a browser that the tests can drive; people may use any browser."""
    path = find_chromium()
    yield finding(
        "chromium",
        path is not None,
        path or "not installed",
        "a Chromium for the browser tests",
        "sudo apt-get install chromium (macOS: brew install --cask chromium)",
        needed=role == "developer",
    )


def check_sandbox(role: str) -> Iterator[Finding]:
    """Check that the grader's sandbox can be made here, by making one."""
    from autograder.worker import sandbox

    if platform.system() != "Linux":
        yield finding(
            "sandbox",
            False,
            f"no bubblewrap on {platform.system()}",
            "Linux, to grade other people's code",
            "grade on Linux, or pass --no-sandbox for code that you trust",
            needed=role == "instructor",
        )
        return
    fault = sandbox.problem()
    yield finding(
        "sandbox",
        fault is None,
        fault or "bubblewrap works",
        "bubblewrap, able to make user namespaces",
        "sudo apt-get install bubblewrap; if it is there, allow unprivileged user namespaces"
        " (Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container: run it with"
        " --security-opt seccomp=unconfined)",
        needed=role != "student",
    )


def check_disk(role: str) -> Iterator[Finding]:
    """Check the free disk space where the course works."""
    free_gib = shutil.disk_usage(Path.cwd()).free / 2**30
    yield finding(
        "disk",
        free_gib >= FREE_DISK_GIB,
        f"{free_gib:.1f} GiB free in {Path.cwd()}",
        f"{FREE_DISK_GIB} GiB free",
        "free some space, or move the course to a larger disk",
        needed=False,
    )


def check_memory(role: str) -> Iterator[Finding]:
    """Check the memory that can be had without swapping."""
    import psutil

    available_gib = psutil.virtual_memory().available / 2**30
    yield finding(
        "memory",
        available_gib >= AVAILABLE_MEMORY_GIB,
        f"{available_gib:.1f} GiB available",
        f"{AVAILABLE_MEMORY_GIB} GiB available",
        "close other programs; chapters 01 to 03 need less",
        needed=False,
    )


def check_model(role: str) -> Iterator[Finding]:
    """Check that the small offline model was fetched, and that its files are whole."""
    from minisgl.checkpoint import open_checkpoint
    from minisgl.errors import MinisglError
    from minisgl.hub import smollm2

    folder = smollm2.cache_folder() / smollm2.MODEL_NAME
    fault = f"not in {folder}" if not folder.is_dir() else ""
    if not fault:
        try:
            open_checkpoint(folder)
        except MinisglError as error:
            fault = str(error)
    yield finding(
        "model",
        not fault,
        fault or str(folder),
        "the course's small model, fetched once",
        "python -m minisgl fetch (chapters work without it, but no real model talks)",
        needed=False,
    )


def check_workspace(role: str) -> Iterator[Finding]:
    """Check that the student's package can be written."""
    from autograder import paths

    workspace = paths.workspace_root()
    nearest = next(folder for folder in (workspace, *workspace.parents) if folder.exists())
    good = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    yield finding(
        "workspace",
        good,
        f"{workspace} is writable" if good else f"{nearest} can't be written",
        "a workspace folder that you may write",
        "chown or chmod that folder, or set MINISGL_WORKSPACE to another",
        needed=role == "student",
    )


CHECKS: tuple[Callable[[str], Iterator[Finding]], ...] = (
    check_python,
    check_packages,
    check_jupyter,
    check_workspace,
    check_model,
    check_sandbox,
    check_chromium,
    check_disk,
    check_memory,
)


def examine(role: str = "student") -> list[Finding]:
    """Run every check for a role and return all findings; a check that breaks becomes a finding itself."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += check(role)
        except Exception as error:
            name = check.__name__.removeprefix("check_")
            findings.append(
                Finding(
                    name,
                    "advice",
                    f"could not be examined: {type(error).__name__}: {error}",
                    "a check that runs",
                    "mend the packages above first, then run doctor again",
                )
            )
    return findings


def as_text(findings: list[Finding]) -> str:
    """Return the findings as lines for a terminal, with a closing line that counts them."""
    lines = []
    for item in findings:
        lines.append(f"{item.status:8}{item.name}: {item.found}")
        if item.status != "ok":
            lines += [f"        expected:   {item.expected}", f"        what to do: {item.remedy}"]
    problems = sum(item.status == "problem" for item in findings)
    advice = sum(item.status == "advice" for item in findings)
    lines.append(f"{problems} problem{'s' * (problems != 1)}, {advice} piece{'s' * (advice != 1)} of advice")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Print what the machine lacks; return 0 when nothing needed is missing, 1 otherwise (2: usage)."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder doctor",
        description="Say what this machine lacks for the course, and what to do about it.",
        epilog="Exit codes: 0 nothing that this role needs is missing, 1 something is, 2 wrong usage.",
    )
    parser.add_argument("--role", choices=ROLES, default="student", help="whose needs to examine (default: student)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    options = parser.parse_args(argv)
    findings = examine(options.role)
    if options.json:
        print(json.dumps({"role": options.role, "findings": [asdict(item) for item in findings]}, indent=2))
    else:
        print(as_text(findings))
    return 1 if any(item.status == "problem" for item in findings) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The bubblewrap sandbox around the worker.

What it covers: no network; its own process, IPC, user, mount and network namespaces, and for each tree once more its
own inside them; no memory that belongs to no process (``memfd_create``, System V segments); a read-only system of which
only ``/usr``, the Python environment, the provided files, the worker's own code and the current test's case folder are
to be seen; no home, no ``/tmp`` of the host, no gradebook, no hidden expectations, no other submission, none of the
reference's graded modules; for each test an empty ``/tmp`` that is gone afterwards, no capabilities, and the limits of
``limits.py``.

What it doesn't cover: faults of the kernel itself (it is shared with the host); side channels such as timing, cache
contention, and whether code chooses to pass (one bit of a hidden case); memory that the tests of one part share; a
probe reading the *other* parts of the reference, which run beside the part under judgement and hold no answer to it;
processor time taken from other jobs within the limits; GPUs (none are passed in).
"""

from __future__ import annotations

import functools
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import autograder
from autograder import paths

CASES = "/cases"
# How the kernel hands out huge pages: malloc asks for none where it can't look it up.
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"
_PACKAGE = Path(autograder.__file__).resolve().parent


@functools.cache
def problem() -> str | None:
    """Return why there can be no sandbox on this machine, or None where it works (it is tried out)."""
    program = shutil.which("bwrap")
    if sys.platform != "linux" or program is None:
        return "bubblewrap isn't installed (Debian: apt install bubblewrap)"
    nested = "import autograder.worker.isolation as i, os; i.enter_session(); i.drop_capabilities(); "
    nested += "i.forbid_hidden_memory(); os._exit(0)"
    command = [*_argv(program, None), sys.executable, "-P", "-c", nested]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if tried.returncode:
        return "bubblewrap is installed but doesn't work here: " + (tried.stderr.strip().splitlines() or ["?"])[-1]
    return None


def command(scratch: Path) -> list[str]:
    """Return the words before a command that run it inside the sandbox.

    Args:
        scratch: the host's folder of case files, to be seen read-only as ``/cases``.
    """
    program = shutil.which("bwrap")
    assert program is not None, "problem() was to be asked first"
    return _argv(program, scratch)


def _argv(program: str, scratch: Path | None) -> list[str]:
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    words += ["--uid", "1000", "--gid", "1000"]  # not 0: the kernel forbids mapping root into the nested namespaces
    for name, value in environment("/grader").items():
        words += ["--setenv", name, value]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        if os.path.islink(f"/{name}"):
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    words += [
        "--ro-bind-try",
        "/etc/ld.so.cache",
        "/etc/ld.so.cache",
        "--ro-bind-try",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf",
        "--ro-bind-try",
        HUGE_PAGES,
        HUGE_PAGES,
    ]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/tree"]
    # After /tmp: the environment of a clone in /tmp would be covered by it.
    for prefix in sorted({sys.prefix, sys.base_prefix, sys.exec_prefix}):
        if not prefix.startswith("/usr/") and prefix != "/usr":
            words += ["--ro-bind", prefix, prefix]
    words += _hide_installed_reference()
    words += ["--ro-bind", str(_PACKAGE / "__init__.py"), "/grader/autograder/__init__.py"]
    for name in ("worker", "probes"):
        words += ["--ro-bind", str(_PACKAGE / name), f"/grader/autograder/{name}"]
    for entry in paths.provided_entries():
        words += ["--ro-bind", str(paths.reference_root() / entry), f"/provided/minisgl/{entry}"]
    if scratch is not None:
        words += ["--ro-bind", str(scratch), CASES]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def environment(python_path: str) -> dict[str, str]:
    """Return the worker's whole environment; nothing of the caller's is passed on."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": python_path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        # Huge pages for the heap: a fork copies 500 times fewer page-table entries (1.4 ms instead of 4). For that malloc
        # has to find HUGE_PAGES.
        "PYTHONMALLOC": "malloc",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }


def _hide_installed_reference() -> list[str]:
    """Cover a copy of the reference that is installed in the Python environment itself."""
    words = []
    for folder in site.getsitepackages():
        for name in ("minisgl", "autograder"):
            if os.path.isdir(os.path.join(folder, name)):
                words += ["--tmpfs", os.path.join(folder, name)]
    return words

"""JupyterLab as ``make lab`` opens it, in a copy of the course, and a Chromium to look at it with."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("nbgrader_config.py", "notebooks", "solutions", "tests/checks")
LINKED = (".venv", "autograder", "minisgl")
TOKEN = "course"
START_LIMIT_S = 60


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A copy of the course, so that nothing that a browser does lands in the clone."""
    folder = tmp_path_factory.mktemp("course")
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        elif source.is_file():
            shutil.copy(source, target)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    return folder


def lab_command(port):
    """Return the command by which ``make lab`` starts JupyterLab, taken from the Makefile itself."""
    arguments = f"--no-browser --port={port} --IdentityProvider.token={TOKEN} --expose-app-in-browser"
    dry = subprocess.run(
        ["make", "--dry-run", "lab", f"LAB_ARGS={arguments}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    joined = dry.stdout.replace("\\\n", " ")
    return next(line for line in joined.splitlines() if re.search(r"jupyter lab\b", line)).strip()


@pytest.fixture(scope="session")
def lab(course, tmp_path_factory):
    """The address of a running JupyterLab; it is stopped with everything that it started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    private = tmp_path_factory.mktemp("jupyter")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MINISGL"))},
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "IPYTHONDIR": str(private / "ipython"),
        "HOME": str(private),
        "PYTHONPATH": str(course),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with (private / "lab.log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {lab_command(port)}"],
            cwd=course,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(f"{address}/api/status?token={TOKEN}", process, private / "lab.log")
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until_it_answers(url, process, log):
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                break
            time.sleep(0.3)
    pytest.fail(f"JupyterLab didn't start:\n{log.read_text()[-3000:]}")


@pytest.fixture
def page(chromium, lab):
    """A window that is logged in; what its console reports as errors is kept in ``page.errors``."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    # JupyterLab would open again what the test before had open.
    context.request.delete(f"{lab}/lab/api/workspaces/default", headers={"Authorization": f"token {TOKEN}"})
    opened = context.new_page()
    opened.errors = []
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.goto(f"{lab}/?token={TOKEN}")  # the address that JupyterLab prints
    yield opened
    context.close()

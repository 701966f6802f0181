"""One JupyterLab with one notebook that shows every lab, for all browser tests of the labs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "labs"
CELLS = {
    "setup": "from minisgl import viz\nimport minisgl; print(minisgl.__file__)",
    "configs": "configs = viz.ConfigExplorer('Qwen3-0.6B'); configs",
    "switches": "switches = viz.Switches(); switches",
    "stepper": "stepper = viz.MergeStepper(order='groups torn apart'); stepper",
    "shards": "shards = viz.ShardExplorer('Qwen3-0.6B', tp_size=4); shards",
    "race": "race = viz.MemoryRace(); race",
    "broken": "broken = viz.BreakIt('tiny-qwen3', run=False); broken",
    "ask": "1",
}
SETTINGS = {
    # All cells stay in the page, so that a test finds what is scrolled out of sight.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


def new_notebook(folder):
    """Write the notebook with a cell for each lab."""
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in CELLS.items()]
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    nbformat.write(notebook, folder / "labs.ipynb")


@pytest.fixture(scope="session")
def lab_address(tmp_path_factory):
    """The address of a running JupyterLab with the notebook; it is stopped with everything that it started."""
    folder, private = tmp_path_factory.mktemp("labs"), tmp_path_factory.mktemp("private")
    new_notebook(folder)
    for name, value in SETTINGS.items():
        file = private / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")},
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(private / "settings"),
        "IPYTHONDIR": str(private / "ipython"),
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--port={port}", "--allow-root",
               "--expose-app-in-browser", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]  # fmt: skip
    with (private / "lab.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", process, private / "lab.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(url, process, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab didn't start:\n{log.read_text()[-3000:]}")


class Notebook:
    """The open notebook: its cells, what the kernel says, what the console reports."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def open(self, address):
        """Open the notebook and run all of it."""
        self.page.goto(f"{address}/lab/tree/labs.ipynb?token={TOKEN}&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.context?.sessionContext?.session?.kernel"
        )
        self.command("notebook:run-all-cells")
        self.cell("broken").get_by_role("button", name="Run").wait_for(timeout=90_000)

    def command(self, name, **arguments):
        """Start one of JupyterLab's commands, without waiting for its end."""
        self.page.evaluate("([name, args]) => { window.jupyterapp.commands.execute(name, args) }", [name, arguments])

    def cell(self, name):
        """The part of the page that one cell takes."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(list(CELLS).index(name))

    def run(self, name):
        """Run one cell again."""
        place = list(CELLS).index(name)
        self.page.evaluate("place => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = place }", place)
        self.command("notebook:run-cell")

    def restart(self):
        """Restart the kernel, as the menu does."""
        self.command("kernelmenu:restart")
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()

    def ask(self, expression, timeout_s=30):
        """Evaluate an expression in the kernel, in the notebook's last cell, and give what it prints."""
        place = len(CELLS) - 1
        self.page.evaluate(
            """([place, source]) => {
                const content = window.jupyterapp.shell.currentWidget.content;
                content.activeCellIndex = place;
                content.activeCell.model.outputs.clear();
                content.activeCell.model.sharedModel.setSource(source);
            }""",
            [place, f"print('answer:', {expression})"],
        )
        self.command("notebook:run-cell")
        output = self.cell("ask").locator(".jp-OutputArea-output", has_text="answer:")
        output.wait_for(timeout=1000 * timeout_s)
        return output.inner_text().split("answer:", 1)[1].strip()


@pytest.fixture(scope="module")
def notebook(lab_address, chromium):
    """The notebook, open in a headless Chromium and run."""
    opened = Notebook(chromium.new_page(viewport={"width": 1300, "height": 1000}))
    opened.open(lab_address)
    return opened

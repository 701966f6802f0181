"""Build the chapters: source text -> instructor notebook in ``solutions/`` -> release notebook in ``notebooks/``.

``python -m autograder build [CHAPTER ...]`` (or ``make notebooks``). The instructor's notebook takes its graded code
from the reference, is run from top to bottom on an empty workspace, and keeps its outputs; nbgrader's own
``generate_assignment`` makes the release from it. Building twice gives the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.authoring.notebook_cells import expand_cells, fill_expected_outputs
from autograder.parts import PARTS
from autograder.student.workspace import Workspace
from autograder.text import reference

ROOT = Path(__file__).resolve().parents[2]
CELL_TIMEOUT_S = 300
# What a notebook may carry in its metadata; everything else (versions, widgets' state, timings) drifts.
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("deletable", "editable", "nbgrader", "tags")
MACHINE_DEPENDENT_TAG = "machine-dependent"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def chapters(root: Path = ROOT) -> list[str]:
    """List the chapters that have a source text, in course order."""
    return sorted(path.stem for path in (root / "solutions").glob("[0-9][0-9]_*.md"))


def source_notebook(chapter: str, root: Path = ROOT) -> NotebookNode:
    """Read a chapter's source text and expand its short forms; nothing is run."""
    notebook = jupytext.read(root / "solutions" / f"{chapter}.md", fmt="md")
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.nbformat_minor = 5
    expand_cells(notebook, chapter)
    return notebook


def write_earlier_parts(chapter: str, root: Path) -> None:
    """Make the workspace of a student who has finished every chapter before this one."""
    workspace = Workspace(root)
    workspace.ensure()
    for part in PARTS:
        if part.chapter < chapter and not part.together:
            workspace.write_cell(part.module, reference.piece(part.id))


def run_notebook(notebook: NotebookNode, workspace: Path, allow_errors: bool = False) -> None:
    """Run every cell of `notebook`, in place, with `workspace` as the student's workspace.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised and `allow_errors` is false.
    """
    from nbclient import NotebookClient

    environment = {
        **os.environ,
        "MINISGL_WORKSPACE": str(workspace),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "PYTHONHASHSEED": "0",
        "IPYTHONDIR": str(workspace.parent / "ipython"),
        "PYTHONWARNINGS": "ignore",
    }
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(workspace.parent)}},
        record_timing=False,
    )
    client.execute(env=environment)


def clean_outputs(notebook: NotebookNode, workspace: Path) -> None:
    """Drop from the outputs what differs from run to run: counts, places, and cells marked machine-dependent."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        if MACHINE_DEPENDENT_TAG in cell.metadata.get("tags", []):
            cell.outputs = []
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = None
            output.pop("transient", None)
            output.get("data", {}).pop(WIDGET_VIEW, None)  # its id is new each time; the picture beside it stays
            if "text" in output:
                output.text = _without_places(output.text, workspace)
            for kind, data in output.get("data", {}).items():
                if isinstance(data, str) and not kind.startswith("image/"):
                    output.data[kind] = _without_places(data, workspace)
        cell.outputs = _joined_streams(cell.outputs)


def _without_places(text: str, workspace: Path) -> str:
    text = text.replace(str(workspace), "workspace").replace(str(ROOT), ".")
    return re.sub(r"\b\d+(\.\d+)? (s|ms)\b", "… s", text)


def _joined_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring outputs of one stream: how a kernel cuts them is chance."""
    joined: list[NotebookNode] = []
    for output in outputs:
        previous = joined[-1] if joined else None
        if previous and output.output_type == previous.output_type == "stream" and output.name == previous.name:
            previous.text += output.text
        else:
            joined.append(output)
    return joined


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write `notebook` with allow-listed metadata; the same cells always give the same bytes."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        cell.metadata = NotebookNode({key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata})
    nbformat.validate(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook, version=4) + "\n", encoding="utf-8")


def release_notebook(chapter: str, solution: Path) -> NotebookNode:
    """Make the student's version of an instructor notebook with nbgrader, under the course's own configuration.

    Raises:
        RuntimeError: nbgrader refused, with its log.
    """
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder)
        if (ROOT / "nbgrader_config.py").is_file():
            shutil.copy(ROOT / "nbgrader_config.py", course)
        target = course / "solutions" / chapter / solution.name
        target.parent.mkdir(parents=True)
        shutil.copy(solution, target)
        command = [sys.executable, "-m", "nbgrader", "generate_assignment", chapter, "--no-db"]
        command += [f"--CourseDirectory.root={course}", "--CourseDirectory.source_directory=solutions"]
        command += ["--CourseDirectory.release_directory=release"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(course / "jupyter")}
        run = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
        released = course / "release" / chapter / solution.name
        if run.returncode or not released.is_file():
            raise RuntimeError(f"nbgrader could not make the release of {chapter}:\n{run.stdout}{run.stderr}")
        return nbformat.read(released, as_version=4)


def build_chapter(chapter: str, out: Path = ROOT) -> tuple[Path, Path]:
    """Build one chapter under `out`, and return the paths of its instructor and its release notebook."""
    notebook = source_notebook(chapter)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        write_earlier_parts(chapter, workspace)
        run_notebook(notebook, workspace)
        clean_outputs(notebook, workspace)
    fill_expected_outputs(notebook)
    solution = out / "solutions" / chapter / f"{chapter}.ipynb"
    write_notebook(notebook, solution)
    release = out / "notebooks" / chapter / f"{chapter}.ipynb"
    write_notebook(release_notebook(chapter, solution), release)
    return solution, release


def build_main(argv: list[str]) -> int:
    """Build the named chapters, or all of them. Exit code 0 when built, 2 for a chapter that doesn't exist."""
    parser = argparse.ArgumentParser(prog="python -m autograder build", description=build_main.__doc__)
    parser.add_argument("chapter", nargs="*", help="for example 01_config; all when left out")
    parser.add_argument("--out", type=Path, default=ROOT, help="where solutions/ and notebooks/ are written")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.chapter) - set(chapters()))
    if unknown:
        print(f"no such chapter: {', '.join(unknown)}; there are {', '.join(chapters())}", file=sys.stderr)
        return 2
    for chapter in arguments.chapter or chapters():
        for path in build_chapter(chapter, arguments.out):
            print(os.path.relpath(path))
    return 0

"""The student's own source tree: ``workspace/minisgl/``, a package that grows part by part.

Provided files are there from the start. Each graded module holds its provided header and the parts written so far.
Every write is atomic, and ``.course.json`` beside the package remembers what was written, with help or without, and
what the last check said about which text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder import paths
from autograder.judge.results import PartResult
from autograder.parts import BY_ID, GRADED_MODULES, Part, parts_of_module
from autograder.text import reference
from autograder.text.sources import normalize
from autograder.text.statements import statements_of
from autograder.text.trees import own_text, student_module
from autograder.text.work import Work, work_of_modules


class WorkspaceError(ValueError):
    """Report a workspace that can't be read or written: what, what was expected, what to do."""


def sha(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Workspace:
    """A student's tree on disk.

    Args:
        root: the folder that holds ``minisgl/``; found by ``paths.workspace_root`` when left out.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or paths.workspace_root()
        self.package = self.root / "minisgl"
        self._state_file = self.root / ".course.json"

    def ensure(self) -> None:
        """Create the tree, or bring its provided files up to date; a student's edit of one is kept as ``NAME.edited``.

        Raises:
            WorkspaceError: the folder can't be written.
        """
        with self._guarded(), self._locked():
            state = self.state()
            provided = state.setdefault("provided", {})
            for entry in _provided_files():
                self._provide(entry, provided)
            for module in GRADED_MODULES:
                if not (self.package / module).exists():
                    self._write(self.package / module, student_module(Work(), module))
            self._save(state)

    def read(self) -> Work:
        """Return the student's work, read from the files as text.

        Raises:
            WorkspaceError: a file can't be read.
        """
        work = work_of_modules({module: self._text(module) for module in GRADED_MODULES})
        records = self.state().get("parts", {})
        for part_id, text in work.pieces.items():
            record = records.get(part_id, {})
            if record.get("helped") and record.get("sha") == sha(text):
                work.helped.add(part_id)
        return work

    def write_cell(self, module: str, text: str, *, cell: str = "", helped: bool = False) -> Work:
        """Replace what a module has of a cell's names by the cell's statements, and return the module's work.

        Args:
            module: the file's path below ``minisgl/``.
            text: the cell's code, without syntax errors.
            cell: the cell's id, where the front end tells it: what its last run bound and this one doesn't is forgotten.
            helped: whether the text is the reference's.

        Raises:
            WorkspaceError: the folder can't be written.
        """
        with self._guarded(), self._locked():
            work = work_of_modules({module: self._text(module)})
            text, state = normalize(text), self.state()
            bound = sorted({name for each in statements_of(text) for name in each.names})
            if cell:
                cells = state.setdefault("cells", {})
                work.drop(module, set(cells.get(f"{module} {cell}", ())) - set(bound))
                cells[f"{module} {cell}"] = bound
            work.add(module, text)
            path = self.package / module
            self._write(path, student_module(work, module))
            for part in parts_of_module(module):
                if set(bound).intersection(part.names) and part.id in work.pieces:
                    record = {"sha": sha(work.pieces[part.id]), "helped": helped}
                    state.setdefault("parts", {})[part.id] = record
            self._save(state)
        for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            with contextlib.suppress(OSError):  # a rewrite within one second could be taken for the old version
                stale.unlink()
        return work

    def note_results(self, results: list[PartResult], work: Work) -> None:
        """Remember what a check said about which text, for ``status``; a read-only workspace just doesn't remember."""
        with contextlib.suppress(WorkspaceError, OSError), self._locked():
            state = self.state()
            checked = state.setdefault("checked", {})
            for result in results:
                record = {"points": result.points, "status": result.status, "sha": judged_sha(work, BY_ID[result.id])}
                checked[result.id] = record
            self._save(state)

    def state(self) -> dict[str, Any]:
        """Return what ``.course.json`` holds; an unreadable one counts as empty."""
        try:
            state = json.loads(self._state_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _text(self, module: str) -> str:
        path = self.package / module
        try:
            return path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise WorkspaceError(
                f"{path} isn't UTF-8 text; save it as UTF-8 in your editor, or run its cells again"
            ) from None
        except OSError as error:
            raise WorkspaceError(f"{path} can't be read ({error.strerror}); make it readable, or remove it") from None

    def _provide(self, entry: Path, provided: dict[str, str]) -> None:
        source, target, name = paths.reference_root() / entry, self.package / entry, entry.as_posix()
        content = source.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        if target.is_file():
            found = hashlib.sha256(target.read_bytes()).hexdigest()[:16]
            if found == digest:
                provided[name] = digest
                return
            if found != provided.get(name):
                os.replace(target, target.with_name(target.name + ".edited"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        provided[name] = digest

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _save(self, state: dict[str, Any]) -> None:
        self._write(self._state_file, json.dumps(state, indent=1, sort_keys=True) + "\n")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise WorkspaceError(
                f"the workspace {self.root} can't be written ({error.strerror or error}). Your cells are unharmed. "
                f"Make the folder writable, or set MINISGL_WORKSPACE to a folder of yours and restart the kernel."
            ) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep two notebooks from writing at the same time."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / ".lock", "a") as file:
            with contextlib.suppress(ImportError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def judged_sha(work: Work, part: Part) -> str:
    """Return a digest of all the text of the student's that a verdict on a part depends on."""
    return sha(own_text(work, part))


def use_reference(workspace: Workspace, wanted: list[Part]) -> list[str]:
    """Put the provided version of parts in place, marked as such, and return their ids.

    Raises:
        WorkspaceError: this installation has no reference for one of them.
    """
    lacking = sorted({part.module for part in wanted if not part.together and not reference.has(part)})
    if lacking:
        raise WorkspaceError(
            f"this kit has no provided version of {', '.join(lacking)}. Ask your instructor for the chapter's catch-up "
            f"folder, put it beside notebooks/ as catch_up/, and try again."
        )
    done = []
    for part in wanted:
        if not part.together:
            workspace.write_cell(part.module, reference.piece(part.id), helped=True)
            done.append(part.id)
    return done


def overview(work: Work) -> list[tuple[str, list[str], int]]:
    """Return for each graded module: its path, the names of the parts that it has, and how many it will have."""
    rows = []
    for module in GRADED_MODULES:
        parts = parts_of_module(module)
        rows.append((module, [part.name for part in parts if part.id in work.pieces], len(parts)))
    return rows


def _provided_files() -> list[Path]:
    root = paths.reference_root()
    found = []
    for entry in paths.provided_entries():
        inside = (
            [path for path in (root / entry).rglob("*") if path.is_file()]
            if (root / entry).is_dir()
            else [root / entry]
        )
        found += [path.relative_to(root) for path in inside if "__pycache__" not in path.parts]
    return sorted(found)

"""Read what students hand in: notebooks, folders, zip files, bare module trees. Only as text; nothing is run.

Links and special files are never followed, sizes and numbers are limited, names in zip files can't leave the zip (it is
never unpacked). What can't be read becomes a refused submission with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from autograder.classroom.submitted_files import MAX_DEPTH, Unreadable, files_of, inner_places, linked
from autograder.parts import BY_ID, CHAPTERS, GRADED_MODULES, is_whole_package, part_of_grade_id, parts_of_module
from autograder.text.work import Work, module_of_magic, read_cell, work_of_cells, work_of_modules
from autograder.worker.outcome import clean

MAX_ALL_BYTES = 60 << 20


@dataclass
class Submission:
    """One student's work for one chapter.

    Attributes:
        student: the student's name, from the path.
        chapter: the chapter's id; empty where it can't be told.
        work: the parts.
        refusal: why it can't be graded; empty when it can.

    Name, chapter and refusal are made one line of text that can be shown and stored.
    """

    student: str
    chapter: str
    work: Work = field(default_factory=Work)
    refusal: str = ""

    def __post_init__(self) -> None:
        self.student, self.chapter = _line(self.student, 100), _line(self.chapter, 100)
        self.refusal = _line(self.refusal, 300)


def _line(text: str, most: int) -> str:
    return clean(text, most).replace("\n", " ").replace("\t", " ")


def find(paths: list[Path], chapter: str | None = None) -> list[Submission]:
    """Read all submissions below the given paths, sorted by student and chapter.

    Args:
        paths: notebooks, zip files, module trees, folders of one student, or folders of many.
        chapter: grade only this chapter; otherwise those that a submission has parts of.
    """
    found: list[Submission] = []
    for path in paths:
        found += _submissions_at(path, _student_of(path), chapter)
    found.sort(key=lambda each: (each.student, each.chapter))
    _gather_packages(found)
    seen: set[tuple[str, str]] = set()
    for each in found:
        if (each.student, each.chapter) in seen:
            each.refusal = each.refusal or "handed in twice under this name; only the first was graded"
        seen.add((each.student, each.chapter))
    return found


def _gather_packages(found: list[Submission]) -> None:
    """Give a chapter that is graded on the whole package what its student handed in for the other chapters."""
    for each in found:
        if is_whole_package(each.chapter) and not each.refusal:
            others = [other for other in found if other.student == each.student and not other.refusal]
            whole = Work()
            for other in [*others, each]:
                whole.update(other.work)
            each.work = whole


def read(path: Path, student: str, chapter: str | None = None) -> list[Submission]:
    """Read one student's notebook, zip, tree or folder: one submission for each chapter in it."""
    try:
        chapters, work = _lift(files_of(path))
        reason = "" if chapters or chapter else linked(path) or next(iter(work.notes), "")
    except Unreadable as error:
        return [Submission(student, chapter or _chapter_in(path), refusal=str(error))]
    except (OSError, RecursionError, MemoryError) as error:
        reason = f"{path.name} can't be read ({type(error).__name__}); check that it opens and hand it in anew"
        return [Submission(student, chapter or _chapter_in(path), refusal=reason)]
    if chapter is not None:
        chapters = {chapter}
    if not chapters:
        reason = reason or "no cell headed by %%module and no graded module was found in it"
        return [Submission(student, _chapter_in(path), refusal=reason)]
    return [Submission(student, each, work) for each in sorted(chapters)]


def _submissions_at(
    path: Path, student: str, chapter: str | None, *, depth: int = 0, owned: bool = False
) -> Iterator[Submission]:
    """Read the submissions at a path: it is one itself, or a folder of them.

    Args:
        path: the place.
        student: whose it is if it is one.
        chapter: the only chapter to grade, if any.
        depth: how many folders it lies below the path that was given.
        owned: whether it lies in a student's folder for a chapter: then all in it is that student's, whatever its name.
    """
    if depth > MAX_DEPTH:
        reason = f"its folders are nested deeper than {MAX_DEPTH}, the most that is searched; hand in fewer levels"
        top = next((name for name in path.parts[-depth:] if name not in CHAPTERS), student)
        yield Submission(student if owned else top, chapter or "", refusal=reason)
        return
    try:
        inner = inner_places(path, one_student=owned)
    except OSError as error:
        yield Submission(student, chapter or "", refusal=f"{path.name} can't be opened: {error.strerror}")
        return
    if not inner:
        yield from read(path, student, chapter)
        return
    for child in inner:
        is_chapter = child.name.split(".")[0] in CHAPTERS
        owner = student if owned else path.name if is_chapter else _student_of(child)
        inside = owned or (is_chapter and depth > 0)
        yield from _submissions_at(child, owner, chapter, depth=depth + 1, owned=inside)


def _student_of(path: Path) -> str:
    stem = path.name if os.path.isdir(path) else path.stem  # unlike Path.is_dir, it never raises
    if stem not in CHAPTERS and stem not in ("minisgl", "models", "workspace"):
        return stem
    return next((folder.name for folder in path.absolute().parents if folder.name not in CHAPTERS), stem)


def _chapter_in(path: Path) -> str:
    return next((word for word in (path.stem, path.parent.name) if word in CHAPTERS), "")


def _lift(files: Iterator[tuple[str, bytes]]) -> tuple[set[str], Work]:
    """Lift the parts of all files; a notebook's cells win over a module tree beside it."""
    chapters: set[str] = set()
    cells, modules = Work(), {}
    homes: dict[str, str] = {}
    num_bytes = 0
    for name, content in files:
        num_bytes += len(content)
        if num_bytes > MAX_ALL_BYTES:
            raise Unreadable(f"its notebooks and modules are larger than {MAX_ALL_BYTES >> 20} MiB together")
        if name.endswith(".ipynb"):
            title = PurePosixPath(name).name
            if homes.setdefault(title, name) != name:
                raise Unreadable(
                    f"it holds two notebooks called {title}: {homes[title]} and {name}; hand in one, and grade "
                    "a whole class's zip unpacked, a folder for each student"
                )
            found_chapters, found = _lift_notebook(name, content)
            chapters |= found_chapters
            cells.update(found)
        else:
            modules[f"models/{PurePosixPath(name).name}"] = _text(name, content)
    work = work_of_modules(modules)
    for module in GRADED_MODULES:
        if cells.statements(module):
            work.forget(module)
    work.update(cells)
    counted = cells if cells.pieces else work
    chapters |= {BY_ID[part_id].chapter for part_id in counted.pieces}
    return chapters, work


def _lift_notebook(name: str, content: bytes) -> tuple[set[str], Work]:
    text = _text(name, content)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{PurePosixPath(name).name} isn't a notebook: its JSON is broken ({error})") from None
    if not isinstance(notebook, dict):
        raise Unreadable(f"{PurePosixPath(name).name} isn't a notebook: its JSON is a {type(notebook).__name__}")
    cells = _cells(notebook)
    language = _language(notebook)
    if language not in ("", "python", "python3", "ipython"):
        raise Unreadable(f"{PurePosixPath(name).name} is a notebook of the language {language!r}; Python was expected")
    sources = [_source(cell) for cell in cells if cell.get("cell_type") == "code"]
    chapters = set()
    for cell in cells:
        part = part_of_grade_id(_grade_id(cell))
        if part is not None:
            chapters.add(part.chapter)
    for source in sources:
        magic = read_cell(source)
        if magic is not None:
            try:
                chapters.add(parts_of_module(module_of_magic(magic[0]))[0].chapter)
            except ValueError:
                continue
    return chapters, work_of_cells(sources)


def _cells(notebook: dict[str, object]) -> list[dict[str, object]]:
    """Return the cells of a notebook of any format: since version 4 at the top, before in worksheets."""
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        sheets = notebook.get("worksheets")
        inside = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
        cells = [cell for part in inside if isinstance(part, list) for cell in part]
    return [cell for cell in cells if isinstance(cell, dict)]


def _language(notebook: dict[str, object]) -> str:
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for home, key in (("language_info", "name"), ("kernelspec", "language")):
        facts = metadata.get(home)
        if isinstance(facts, dict) and isinstance(facts.get(key), str):
            return str(facts[key]).lower()
    return ""


def _source(cell: dict[str, object]) -> str:
    source = cell.get("source", cell.get("input", ""))
    return "".join(str(line) for line in source) if isinstance(source, list) else str(source)


def _grade_id(cell: dict[str, object]) -> str:
    metadata = cell.get("metadata")
    facts = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    found = facts.get("grade_id") if isinstance(facts, dict) else None
    return found if isinstance(found, str) else ""


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{PurePosixPath(name).name} isn't UTF-8 text") from None

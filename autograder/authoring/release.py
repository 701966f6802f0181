"""``python -m autograder release``: the student kit, a folder and a zip that work on their own.

It holds the release notebooks, the provided files, the checks without anything hidden, and the environment. It holds
neither the reference's graded modules nor what only instructors need, and that is verified before it is handed out.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
import zipfile
from pathlib import Path

from autograder import paths
from autograder.parts import GRADED_MODULES, PARTS, parts_of_chapter, select
from autograder.text import reference

TOP = (
    "LICENSE",
    "README.md",
    "docs/student.md",
    "docs/instructor.md",
    "docs/developer.md",
    "docs/api.md",
    "docs/structure.md",
    "docs/judging.md",
    "docs/memory_race.svg",
    "Makefile",
    "environment.yml",
    "nbgrader_config.py",
    "postBuild",
    "pyproject.toml",
    "requirements.lock",
    "scripts",
    "setup.py",
)
# Folders of `autograder` that instructors and authors need and a kit doesn't.
INSTRUCTORS = {"authoring", "classroom"}
MIN_TELLING_CHARS = 36


class KitError(RuntimeError):
    """Report a kit that would give something away."""


def build(out: Path, catch_up: list[str] | None = None) -> Path:
    """Build the kit's folder and zip below ``out`` and return the folder.

    Args:
        out: where ``minisgl-course/`` and ``minisgl-course.zip`` go; what was there before is replaced.
        catch_up: chapters whose provided version students may use.

    Raises:
        KitError: a line of a solution or something hidden is in it.
    """
    kit = out / "minisgl-course"
    shutil.rmtree(kit, ignore_errors=True)
    kit.mkdir(parents=True)
    for name in TOP:
        _copy(paths.HOME / name, kit / name)
    for chapter in sorted((paths.HOME / "notebooks").glob("[0-9][0-9]_*")):
        _copy(chapter, kit / "notebooks" / chapter.name)
    for entry in paths.provided_entries():
        _copy(paths.reference_root() / entry, kit / "minisgl" / entry)
    for path in sorted((paths.HOME / "autograder").iterdir()):
        if path.name not in INSTRUCTORS:
            _copy(path, kit / "autograder" / path.name)
    _copy(paths.checks_root(), kit / "tests" / "checks")
    headers = json.dumps(reference.headers(), indent=1, sort_keys=True)
    (kit / "autograder" / "text" / "headers.json").write_text(headers + "\n", encoding="utf-8")
    open_modules = _catch_up(kit, catch_up or [])
    verify(kit, open_modules)
    _zip(kit, out / "minisgl-course.zip")
    return kit


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        skipped = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.pyc", ".*")
        shutil.copytree(source, target, ignore=skipped)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _catch_up(kit: Path, chapters: list[str]) -> set[str]:
    modules = {part.module for chapter in chapters for part in parts_of_chapter(chapter)}
    for module in sorted(modules):
        _copy(paths.reference_root() / module, kit / "catch_up" / module)
    return modules


def telling_lines(modules: set[str]) -> dict[str, str]:
    """Return the long lines of code in the bodies of the reference's parts -> where they come from."""
    found = {}
    for part in PARTS:
        if part.together or part.module not in modules:
            continue
        text = reference.piece(part.id)
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            for statement in body:
                for line in lines[statement.lineno - 1 : statement.end_lineno]:
                    if len(line.strip()) >= MIN_TELLING_CHARS:
                        found[line.strip()] = part.id
    for path in paths.reference_root().rglob("*.py"):  # what the provided files say themselves gives nothing away
        if path.relative_to(paths.reference_root()).as_posix() not in GRADED_MODULES:
            for line in path.read_text(encoding="utf-8").splitlines():
                found.pop(line.strip(), None)
    return found


def verify(kit: Path, open_modules: set[str]) -> None:
    """Look for solutions and hidden things in every file of a kit.

    Raises:
        KitError: something was found; the message says what and where.
    """
    closed = set(GRADED_MODULES) - open_modules
    lines = telling_lines(closed)
    seed = paths.HOME / "instructor" / "seed"
    secrets = [seed.read_text().strip()] if seed.is_file() else []
    found = [f"{module} itself" for module in closed if (kit / "minisgl" / module).exists()]
    for path in sorted(kit.rglob("*")):
        if not path.is_file() or path.suffix in (".safetensors", ".png"):
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".ipynb":
            text += "\n" + "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        there = {line.strip() for line in text.splitlines()}
        found += [
            f"{path.relative_to(kit)} holds a line of {lines[line]}: {line}" for line in sorted(there & lines.keys())
        ]
        found += [f"{path.relative_to(kit)} holds the hidden seed" for secret in secrets if secret in text]
        if "BEGIN SOLUTION" in text and path.suffix == ".ipynb":
            found.append(f"{path.relative_to(kit)} holds a solution region")
    if found:
        raise KitError("the kit would give away: " + "; ".join(found[:20]))


def _zip(kit: Path, target: Path) -> None:
    """Pack a folder so that the same content always gives the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(kit.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo((Path(kit.name) / path.relative_to(kit)).as_posix(), (2020, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o755 if path.stat().st_mode & 0o100 else 0o644) << 16
                archive.writestr(entry, path.read_bytes())


def main(argv: list[str]) -> int:
    """Make the student kit. Exit codes: 0 made, 1 it would give something away, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m autograder release", description=main.__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("dist"), metavar="DIR", help="where the kit goes (default: dist/)"
    )
    parser.add_argument(
        "--catch-up", action="append", default=[], metavar="CHAPTER", help="let students use its solution"
    )
    options = parser.parse_args(argv)
    if not paths.has_reference():
        parser.error("this installation has no reference: a kit is made from the instructor's clone")
    try:
        chapters = [select(name)[0].chapter for name in options.catch_up]
    except (ValueError, IndexError) as error:
        parser.error(str(error))
    try:
        kit = build(options.out, chapters)
    except KitError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{kit}\n{options.out / 'minisgl-course.zip'}")
    return 0

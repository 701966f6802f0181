"""Turn one chapter's source text into the cells of its instructor notebook.

Authors write ``solutions/NN_name.md`` (jupytext Markdown). Four short forms in it are expanded here, so that
nothing that the package already says is typed twice:

* a code cell that is only ``%%module models/config.py rope`` receives the reference's code of that part,
* a code cell that is only ``check("config.rope")`` becomes nbgrader's grade cell with the part's points,
* ``{{ task config.rope }}`` in a text becomes the task's header, ``{{ chapter }}`` the chapter's sums,
* ``{{ expected }}`` in a text becomes, folded, what the next code cell tagged ``expected`` printed when it was built.
"""

from __future__ import annotations

import ast
import hashlib
import html
import re

from nbformat import NotebookNode

from autograder import parts
from autograder.parts import Part
from autograder.text import reference

MODULE_MAGIC = re.compile(r"^%%module\s+(?P<module>\S+)\s+(?P<part>\w+)\s*$")
CHECK_CALL = re.compile(r"^check\(\"(?P<part>\w+\.\w+)\"\)$")
DIRECTIVE = re.compile(r"^\{\{ *(?P<name>\w+)(?: +(?P<argument>\S+))? *\}\}$", re.MULTILINE)
EXPECTED = re.compile(r"^\{\{ *expected *\}\}$", re.MULTILINE)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
EXPECTED_TAG = "expected"


def expand_cells(notebook: NotebookNode, chapter: str) -> None:
    """Expand the short forms in every cell of `notebook`, in place, and give each cell its id and metadata.

    Only ``{{ expected }}`` stays, for `fill_expected_outputs` after the notebook has run.

    Raises:
        ValueError: for a part or a short form that doesn't exist.
    """
    taken: dict[str, int] = {}
    for cell in notebook.cells:
        tags, exercise = cell.metadata.get("tags", []), cell.metadata.get("exercise")
        cell.metadata = NotebookNode({"tags": tags} if tags else {})
        # The id comes from what the author wrote: it survives a move, a rebuild, and a change of points.
        name = f"{cell.cell_type}-{hashlib.sha256(cell.source.encode()).hexdigest()[:10]}"
        if cell.cell_type == "markdown":
            cell.source = DIRECTIVE.sub(lambda found: _expand_directive(found, chapter), cell.source)
        elif exercise:
            cell.metadata["nbgrader"] = _nbgrader_metadata(f"exercise-{exercise}", solution=True)
        else:
            _expand_code_cell(cell)
        name = cell.metadata.get("nbgrader", {}).get("grade_id", name)
        taken[name] = taken.get(name, 0) + 1
        cell.id = name if taken[name] == 1 else f"{name}-{taken[name]}"


def _expand_code_cell(cell: NotebookNode) -> None:
    module_line = MODULE_MAGIC.match(cell.source)
    check_line = CHECK_CALL.match(cell.source)
    if module_line:
        stem = module_line["module"].rsplit("/", 1)[-1].removesuffix(".py")
        part = _part(f"{stem}.{module_line['part']}")
        cell.source = f"{cell.source.strip()}\n{with_solution_regions(reference.piece(part.id).strip())}"
        cell.metadata["nbgrader"] = _nbgrader_metadata(f"part-{part.id.replace('.', '-')}", solution=True)
    elif check_line:
        part = _part(check_line["part"])
        cell.metadata["nbgrader"] = _nbgrader_metadata(parts.grade_id(part), points=part.points)


def _part(part_id: str) -> Part:
    if part_id not in parts.BY_ID:
        raise ValueError(f"there is no part {part_id!r}; known parts: {', '.join(parts.BY_ID)}")
    return parts.BY_ID[part_id]


def _nbgrader_metadata(grade_id: str, solution: bool = False, points: float | None = None) -> NotebookNode:
    metadata = {
        "cell_type": "code",
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": points is not None,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = points
    return NotebookNode(metadata)


def with_solution_regions(code: str) -> str:
    """Wrap what the student writes in nbgrader's solution markers: each function's body after its docstring.

    Signatures, docstrings, decorators, dataclass fields and module-level names stay outside: they are the task. Where
    no function has a body, as in an abstract class, the bodies of the classes are what is written.
    """
    lines = code.splitlines()
    tree = ast.parse(code)
    for first, last in sorted(_function_bodies(tree) or _class_bodies(tree), reverse=True):
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1  # a comment that stands before the first statement belongs to the solution
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        lines[first - 1 : last] = [indent + BEGIN, *lines[first - 1 : last], indent + END]
    return "\n".join(lines)


def _without_docstring(node: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def _function_bodies(tree: ast.Module) -> list[tuple[int, int]]:
    """List the (first, last) line numbers of functions' and methods' bodies; nested ones lie inside their outer body."""
    found = []
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for function in members:
            body = _without_docstring(function) if isinstance(function, ast.FunctionDef) else []
            if body:
                found.append((body[0].lineno, function.end_lineno or body[0].lineno))
    return found


def _class_bodies(tree: ast.Module) -> list[tuple[int, int]]:
    """List the line numbers of classes' bodies after the docstring, or with it where there is nothing else."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            first = (_without_docstring(node) or node.body)[0]
            decorators = [decorator.lineno for decorator in getattr(first, "decorator_list", [])]
            found.append((min([first.lineno, *decorators]), node.end_lineno or first.lineno))
    return found


def _expand_directive(found: re.Match, chapter: str) -> str:
    name, argument = found["name"], found["argument"]
    if name == "expected":
        return found[0]
    if name == "task" and argument:
        return task_header(_part(argument))
    if name == "chapter":
        return chapter_header(chapter)
    raise ValueError(f"unknown directive {found[0]!r} in chapter {chapter}; known: task PART, chapter, expected")


def task_header(part: Part) -> str:
    """Write a task's header: one line for people and the same, as a comment, for machines."""
    stars = "●" * part.difficulty + "○" * (5 - part.difficulty)
    weight = "●" * part.importance + "○" * (5 - part.importance)
    return (
        f"<!-- task id={part.id} difficulty={part.difficulty} importance={part.importance} "
        f"minutes={part.minutes} points={part.points:g} -->\n"
        f"### ✎ Task `{part.id}`\n\n"
        f"difficulty {stars} · importance {weight} · about {part.minutes} minutes · {_points(part.points)}"
        f' · stuck? `hint("{part.id}")`'
    )


def _points(points: float) -> str:
    return f"{points:g} point" if points == 1 else f"{points:g} points"


def chapter_header(chapter: str) -> str:
    """Write the chapter's table of tasks, with the minutes and points summed."""
    tasks = parts.parts_of_chapter(chapter)
    rows = [f"| `{t.id}` | `{t.module}` | {t.difficulty}/5 | {t.minutes} | {t.points:g} |" for t in tasks]
    total = f"| **all** | | | **{sum(t.minutes for t in tasks)}** | **{sum(t.points for t in tasks):g}** |"
    head = ["| task | file in your package | difficulty | minutes | points |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows, total])


def fill_expected_outputs(notebook: NotebookNode) -> None:
    """Replace each ``{{ expected }}``, after the run, by the folded output of the next cell tagged `expected`.

    Raises:
        ValueError: if no such cell follows, or if it printed nothing.
    """
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown" or not EXPECTED.search(cell.source):
            continue
        later = (c for c in notebook.cells[position:] if EXPECTED_TAG in c.metadata.get("tags", []))
        text = plain_output(next(later, NotebookNode()))
        if not text:
            raise ValueError(f"no printing cell tagged {EXPECTED_TAG!r} follows the text {cell.source[:60]!r}")
        folded = f"<details><summary>Expected output</summary>\n\n<pre>{html.escape(text)}</pre>\n\n</details>"
        cell.source = EXPECTED.sub(folded.replace("\\", r"\\"), cell.source)


def plain_output(cell: NotebookNode) -> str:
    """Join a code cell's text outputs as a terminal would show them."""
    pieces = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            pieces.append(output.text)
        elif "text/plain" in output.get("data", {}):
            pieces.append(output.data["text/plain"] + "\n")
    return "".join(pieces).strip("\n")

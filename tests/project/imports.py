"""Read imports from source and hold them against the arrows of CONTRIBUTING.md."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

NOTEBOOK_LIBRARIES = frozenset(
    {
        "IPython",
        "ipykernel",
        "ipywidgets",
        "jupyter",
        "jupyter_client",
        "jupyter_server",
        "jupyterlab",
        "matplotlib",
        "nbclient",
        "nbconvert",
        "nbformat",
        "nbgrader",
        "notebook",
        "traitlets",
    }
)


@dataclass(frozen=True)
class Rule:
    """Files below ``folder`` (but not below ``but``) import none of ``forbidden``, nor anything inside those."""

    folder: str
    forbidden: frozenset[str]
    but: str | None = None


RULES = (
    Rule("minisgl", frozenset({"autograder", "tests", "solutions", "notebooks", "benchmarks", "tools", "scripts"})),
    Rule("minisgl", NOTEBOOK_LIBRARIES | {"minisgl.viz"}, but="minisgl/viz"),
    Rule("autograder", frozenset({"minisgl.viz", "tests", "solutions", "notebooks", "benchmarks", "tools", "scripts"})),
    Rule("solutions", frozenset({"tests", "benchmarks", "tools", "scripts"})),
)


def imported_modules(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and full module name of every import, also those in functions and by ``import_module("…")``.

    ``package`` is the dotted package of the file, against which relative imports count.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            # `from minisgl import viz` imports minisgl.viz.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(root: Path, files: Iterable[Path]) -> list[str]:
    """Return one line for each import that a rule forbids, sorted."""
    found = set()
    for path in files:
        name = path.relative_to(root).as_posix()
        package = ".".join(path.relative_to(root).parent.parts)
        for rule in RULES:
            if not name.startswith(rule.folder + "/") or (rule.but and name.startswith(rule.but + "/")):
                continue
            for line, module in imported_modules(path.read_text(encoding="utf-8"), package):
                if any(module == word or module.startswith(word + ".") for word in rule.forbidden):
                    found.add(f"{name}:{line} imports {module}, against the arrows in CONTRIBUTING.md")
    return sorted(found)

"""Write docs/structure.md: one line a module, from its docstring, and who imports whom, from the source.

Usage: ``python scripts/structure.py`` writes the page, ``python scripts/structure.py --check`` only compares.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.made_files import write_or_compare  # noqa: E402

PAGE = ROOT / "docs/structure.md"
PACKAGES = ("minisgl", "autograder")
INTRODUCTION = """# Structure

<!-- Written by scripts/structure.py (`make structure`); do not edit. -->

Imports go one way:

```
notebooks, solutions → autograder, minisgl.viz → minisgl
tests → everything
```

`minisgl` imports nothing of the others, and a student's tree never imports `autograder`. `minisgl/models/` is what students
write; everything else in `minisgl` is provided. Below, each module's first sentence, and under each folder the other folders
that its modules import.
"""


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


def first_sentence(source: str) -> str:
    """Return the first line of a module's docstring, up to its first full stop or colon at a line's end."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = paragraph.split(". ")[0].rstrip(".:")
    return sentence.replace("``", "`").replace("|", "\\|")


def modules_by_folder(package: str) -> dict[str, list[Path]]:
    """Return the package's modules, grouped by folder, both sorted; folders are paths below the root."""
    folders: dict[str, list[Path]] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        folders.setdefault(path.parent.relative_to(ROOT).as_posix(), []).append(path)
    return dict(sorted(folders.items()))


def folders_imported(folder: str, files: list[Path], known: set[str]) -> list[str]:
    """Return the other folders, of all our packages, that a folder's modules import."""
    found = set()
    for path in files:
        for _, module in imported_modules(path.read_text(encoding="utf-8"), folder.replace("/", ".")):
            parts = module.split(".")
            if parts[0] not in PACKAGES:
                continue
            prefixes = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
            target = next(prefix for prefix in prefixes if prefix in known or prefix in PACKAGES)
            found.add(target)
    return sorted(found - {folder})


def page_text() -> str:
    """Return the whole page."""
    folders = {folder: files for package in PACKAGES for folder, files in modules_by_folder(package).items()}
    lines = [INTRODUCTION]
    for folder, files in folders.items():
        lines += [f"## `{folder}/`", "", "| module | what it holds |", "| --- | --- |"]
        lines += [f"| `{path.name}` | {first_sentence(path.read_text(encoding='utf-8'))} |" for path in files]
        imports = folders_imported(folder, files, set(folders))
        lines += [
            "",
            "Imports " + (", ".join(f"`{name}`" for name in imports) or "none of the other folders") + ".",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write or compare the page; return 1 when ``--check`` finds it out of date."""
    return write_or_compare(lambda: {PAGE: page_text()}, "docs/structure.md from the source", "structure", argv)


if __name__ == "__main__":
    sys.exit(main())

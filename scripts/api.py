"""Write docs/api.md: minisgl's public names with signature and docstring, read from the source by griffe (nothing is imported).

Usage: ``python scripts/api.py`` writes the page, ``python scripts/api.py --check`` only compares.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.made_files import write_or_compare  # noqa: E402

PAGE = ROOT / "docs/api.md"
# The packages whose public names are the contract, in the order in which one needs them.
MODULES = (
    "minisgl.engine",
    "minisgl.models",
    "minisgl.checkpoint",
    "minisgl.layers",
    "minisgl.kernel",
    "minisgl.attention",
    "minisgl.distributed",
    "minisgl.core",
    "minisgl.utils",
    "minisgl.errors",
)
MAX_LINE = 90
INTRODUCTION = """# API of `minisgl`

<!-- Written by scripts/api.py (`make api`) from the docstrings; do not edit. -->

Everything here is importable as it stands, for example `from minisgl.models import load_weight`. Shapes are in square
brackets; no prefix is the whole model's size, `local_` this rank's.
"""


def public_names(module: Any) -> list[str]:
    """Return a module's public names: those of ``__all__``, else its own without an underscore."""
    if module.exports is not None:
        return [str(name) for name in module.exports]
    own = [name for name, member in module.members.items() if not member.is_alias and not name.startswith("_")]
    return [name for name in own if module.members[name].kind.value in ("class", "function")]


def resolved(member: Any) -> Any:
    """Follow an import to what was imported."""
    return member.final_target if member.is_alias else member


def text_of(member: Any) -> Iterator[str]:
    """Yield the Markdown of a docstring, its sections as lists."""
    if member.docstring is None:
        return
    # A function returns one thing here: told otherwise, the parser takes each wrapped line for a thing of its own.
    for section in member.docstring.parse("google", warnings=False, returns_multiple_items=False):
        kind, value = section.kind.value, section.value
        if kind == "text":
            yield plain(value)
        elif kind in ("parameters", "attributes", "raises", "returns", "yields"):
            yield f"*{kind.capitalize()}*"
            yield "\n".join(f"- {item_of(kind, item)}" for item in value)
        elif kind == "admonition":
            yield f"*{section.title}*: {plain(value.description)}"


def item_of(kind: str, item: Any) -> str:
    """Return one line of a section."""
    description = plain(" ".join(item.description.split()))
    if kind in ("parameters", "attributes"):
        return f"`{item.name}`: {description}"
    if kind == "raises":
        return f"`{item.annotation}`: {description}"
    return f"`{item.name}`: {description}" if item.name else description


def plain(text: str) -> str:
    """Turn the docstrings' double backticks into Markdown's, and keep ``*`` and ``_`` outside code as they are."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def signature_of(member: Any) -> str:
    """Return a function's signature in one line, without its annotations."""
    named = {"var-positional": "*", "var-keyword": "**"}
    words = []
    star_needed = True
    for parameter in member.parameters:
        kind = parameter.kind.value if parameter.kind else ""
        if parameter.name in ("self", "cls"):
            continue
        kind = kind.replace("variadic positional", "var-positional").replace("variadic keyword", "var-keyword")
        if kind == "keyword-only" and star_needed:
            words.append("*")
        star_needed = star_needed and kind not in ("keyword-only", "var-positional")
        default = "" if parameter.default is None or kind in named else f"={parameter.default}"
        words.append(f"{named.get(kind, '')}{parameter.name}{default}")
    line = f"({', '.join(words)})"
    return line if len(line) <= MAX_LINE else "(\n    " + ",\n    ".join(words) + ",\n)"


def entry(name: str, member: Any) -> Iterator[str]:
    """Yield the Markdown of one public name, of a class also its methods."""
    if member.kind.value == "function":
        yield f"### `{name}`"
        yield f"```python\n{name}{signature_of(member)}\n```"
    elif member.kind.value == "class":
        made_by = member.members.get("__init__")
        yield f"### `{name}`"
        yield f"```python\nclass {name}{signature_of(made_by) if made_by is not None else ''}\n```"
    else:
        yield f"### `{name}`"
    yield from text_of(member)
    if member.kind.value != "class":
        return
    for method_name, method in member.members.items():
        if method_name.startswith("_") or method.is_alias or method.docstring is None:
            continue
        is_function = method.kind.value == "function"
        yield f"**`.{method_name}{signature_of(method) if is_function else ''}`**"
        yield from text_of(method)


def page_text() -> str:
    """Return the whole page."""
    package = griffe.load("minisgl", search_paths=[ROOT], resolve_aliases=True)
    blocks = [INTRODUCTION.strip()]
    for module_name in MODULES:
        module = package[module_name.removeprefix("minisgl.")]
        blocks.append(f"## `{module_name}`")
        blocks += text_of(module)
        for name in public_names(module):
            blocks += entry(name, resolved(module[name]))
    return "\n\n".join(blocks).rstrip() + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write or compare the page; return 1 when ``--check`` finds it out of date."""
    return write_or_compare(lambda: {PAGE: page_text()}, "docs/api.md from the docstrings", "api", argv)


if __name__ == "__main__":
    sys.exit(main())

"""Read commands, links and tables out of the documents."""

import keyword
import re
from pathlib import Path

from tests.project.tree import ROOT, tracked_files

MAKE = re.compile(r"\bmake ([a-z][a-z0-9-]*)")
MODULE = re.compile(r"python -m (minisgl|autograder)\b((?: +[^\s`|&;)#]+)*)")
SCRIPT = re.compile(r"\bpython (scripts/\w+\.py)")
NBGRADER = re.compile(r"\bnbgrader ([a-z][a-z_]*(?: assignment add)?)((?: +[^\s`|#]+)*)")
DASK = re.compile(r"\bdask (scheduler|worker)((?: +[^\s`|#]+)*)")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def documents() -> list[Path]:
    """The tracked documents that tell people what to type."""
    return [
        path
        for path in tracked_files()
        if path.suffix == ".md"
        and path.relative_to(ROOT).parts[0] in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")
    ]


def code_of(text: str) -> str:
    """All code of a document: fenced blocks and inline code, one piece a line."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*fenced, *(piece.replace("\n", " ") for piece in re.findall(r"`([^`]+)`", rest))])


def commands_of(text: str) -> list[str]:
    """All commands of a document, each once, in their order: lines of bash blocks, and inline code of several words.

    Inline code that begins with a Python keyword or with no word is a piece of a program, not a command.
    """
    found: list[str] = []
    for language, block, inline in re.findall(r"^```(\w*)\n(.*?)^```|`([^`]+)`", text, flags=re.MULTILINE | re.DOTALL):
        pieces = block.replace("\\\n", " ").splitlines() if language == "bash" else [inline.replace("\n", " ")]
        for piece in pieces:
            command = re.split(r"(?:^|\s)#\s", piece)[0].strip()
            words = command.split()
            is_command = bool(words) and re.fullmatch(r"[\w./~][\w./~=+-]*", words[0]) and not keyword.iskeyword(words[0])
            if is_command and (language == "bash" or len(words) > 1):
                found.append(command)
    return list(dict.fromkeys(found))


def make_targets_named(text: str) -> set[str]:
    """The targets of all `make …` commands in a document."""
    return set(MAKE.findall(code_of(text)))


def module_commands_named(text: str) -> set[tuple[str, ...]]:
    """All `python -m minisgl …` and `python -m autograder …` commands: module, subcommand, then the options used."""
    commands = set()
    for module, rest in MODULE.findall(code_of(text)):
        words = rest.split()
        subcommand = words[:1] if words and re.fullmatch(r"[a-z][a-z-]*", words[0]) else []
        options = sorted({word.split("=")[0].strip("[]") for word in words if word.startswith(("--", "[--"))})
        commands.add((module, *subcommand, *options))
    return commands


def scripts_named(text: str) -> set[str]:
    """The repository's scripts that a document calls."""
    return set(SCRIPT.findall(code_of(text)))


def tool_commands_named(text: str, pattern: re.Pattern[str]) -> set[tuple[str, ...]]:
    """The commands of one tool: subcommand, then the options used, sorted."""
    found = set()
    for subcommand, rest in pattern.findall(code_of(text)):
        options = {word.split("=")[0] for word in rest.split() if word.startswith("--")}
        found.add((subcommand, *sorted(options)))
    return found


def python_blocks(text: str) -> list[str]:
    """The Python blocks of a document."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def links_named(text: str) -> set[str]:
    """The targets of a document's links, without anchors, those to the web left out."""
    targets = {target.split("#")[0] for target in LINK.findall(text)}
    return {target for target in targets if target and "://" not in target and not target.startswith("mailto:")}


def folder_map(readme: str) -> set[str]:
    """The folders in README's map: table rows that begin with `name/`."""
    return set(re.findall(r"^\| `([^`/]+)/` \|", readme, flags=re.MULTILINE))

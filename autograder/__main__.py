"""The command line: ``python -m autograder COMMAND``.

Exit codes: 0 all well, 1 something failed, 2 wrong usage, 3 the grader itself failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from autograder.judge.judge_errors import failure_text, is_other_python

# command -> module, function, what it does
_ALL = {
    "check": ("student.commands", "check", "check a chapter, a module or a part of your workspace"),
    "status": ("student.commands", "status", "show every part: written, checked, points, what comes next"),
    "hint": ("student.commands", "hint", "show the hints for a part, one layer after another"),
    "doctor": ("student.doctor", "main", "say what this machine lacks"),
    "build": ("authoring.notebooks", "build_main", "build the notebooks from their source"),
    "anki": ("authoring.anki", "main", "export questions, exercises and answers as an Anki deck"),
    "release": ("authoring.release", "main", "make the student kit: a folder and a zip"),
    "grade": ("classroom.grade", "main", "grade submissions: folders, notebooks, zip files, module trees"),
    "redteam": ("authoring.redteam", "main", "try this installation's defences with hostile submissions"),
    "fingerprints": ("authoring.wrong_solutions", "main", "recompute the answers of the known wrong solutions"),
}

# A student kit leaves the instructors' folders out.
COMMANDS = {
    name: facts for name, facts in _ALL.items() if find_spec(f"autograder.{facts[0].split('.')[0]}") is not None
}


def usage() -> str:
    """Return the overview of all commands."""
    lines = ["usage: python -m autograder COMMAND [ARGUMENTS]  (COMMAND --help says more)", ""]
    lines += [f"  {name:<14}{words}" for name, (_, _, words) in COMMANDS.items()]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else 2
    if words[0] not in COMMANDS:
        print(f"there is no command {words[0]!r}\n{usage()}", file=sys.stderr)
        return 2
    module, function, _ = COMMANDS[words[0]]
    try:
        command: Callable[[list[str]], int] = getattr(import_module(f"autograder.{module}"), function)
        return command(words[1:])
    except ModuleNotFoundError as error:
        if not is_other_python(error):
            raise
        print(failure_text(error), file=sys.stderr)
        return 3


if __name__ == "__main__":
    raise SystemExit(main())

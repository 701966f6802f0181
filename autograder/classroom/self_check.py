"""The judge judges itself first: the reference goes the way that the class will go, and nothing is graded unless it is right.

The same worker, checks and hidden cases judge it. If it isn't at full marks, the environment is broken, an instructor's
JSON has a slip, or a check or the reference was changed. That it is at full marks is remembered in the user's own cache
folder, under a digest of all that it depends on.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder import paths
from autograder.classroom import hidden
from autograder.classroom.grading import payload_of, warm_judge
from autograder.classroom.submissions import Submission
from autograder.judge.judge_errors import JudgeError
from autograder.parts import GRADED_MODULES, PARTS, parts_of_chapter
from autograder.text import reference
from autograder.text.work import Work

MAX_SHOWN = 10
ADVICE = (
    "Nothing was graded: the course's own solution isn't at full marks here, so no mark would be right. Look at the "
    "environment (python -m autograder doctor), at your files beside the seed, and at what was changed in the checks."
)


def rules_digest(hidden_files: dict[str, str], sandboxed: bool) -> str:
    """Return a digest of everything but the submission that a mark depends on."""
    digest = hashlib.sha256(f"{hidden.digest(hidden_files)}{sandboxed}".encode())
    home = Path(__file__).resolve().parents[1]
    for folder in (paths.checks_root(), home, paths.reference_root()):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".json", ".toml") and path.is_file():
                digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    for module in GRADED_MODULES:
        digest.update(reference.header(module).encode())
    return digest.hexdigest()[:16]


def payload(chapter: str, sandboxed: bool, hidden_files: dict[str, str]) -> dict[str, Any]:
    """Return the reference's parts of a chapter as a submission."""
    work = Work({part.id: reference.piece(part.id) for part in PARTS if not part.together})
    return payload_of(Submission("the reference", chapter, work), sandboxed, hidden_files)


def trouble(payload: dict[str, Any]) -> str:
    """Judge the reference in a grading process; return why it isn't at full marks, or an empty text."""
    from autograder.judge.hidden_files import all_cases, problems

    slips = problems(payload["hidden"], all_cases()) if any(name != "seed" for name in payload["hidden"]) else []
    if slips:
        return "\n".join(
            [*slips[:MAX_SHOWN], "Nothing was graded. Correct these cases in your folder of hidden cases."]
        )
    judge = warm_judge(payload["sandboxed"], payload["hidden"])
    judge.hidden.shown = True  # the instructor may see what a hidden case is about
    try:
        results = judge.judge(Work.from_plain(payload["work"]), parts_of_chapter(payload["chapter"]))
    except JudgeError as fault:
        return f"{payload['chapter']}: the checks can't be run: {fault}\n{ADVICE}"
    finally:
        judge.hidden.shown = False
    bad = [(result, test) for result in results for test in result.tests if test.status != "passed"]
    lines = [f"{result.id}: {test.title} ({test.id})\n{test.message}" for result, test in bad[:MAX_SHOWN]]
    lines += [f"… and {len(bad) - MAX_SHOWN} more"] if len(bad) > MAX_SHOWN else []
    lines += [f"{result.id}: {result.message}" for result in results if not bad and result.points < result.max_points]
    return "\n".join([*lines, ADVICE]) if lines else ""


def is_known(chapter: str, rules: str) -> bool:
    """Tell whether the reference was at full marks when all that this depends on was as it is now."""
    note = _note(chapter, rules)
    if not note.is_file():
        return False
    return all(each.stat().st_uid == os.getuid() and not each.stat().st_mode & 0o022 for each in (note, note.parent))


def remember(chapter: str, rules: str) -> None:
    """Keep that the reference is at full marks; where nothing can be written, it is judged again next time."""
    note = _note(chapter, rules)
    try:
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.touch(mode=0o600)
    except OSError:
        return


def _note(chapter: str, rules: str) -> Path:
    """Return the file whose existence says that all is right."""
    packages = Path(sysconfig.get_path("purelib"))  # its time changes with each package that is installed or removed
    facts = (chapter, rules, sys.version, sys.prefix, platform.node(), str(paths.HOME), packages.stat().st_mtime_ns)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "minisgl-autograder" / hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def expect_full_marks(
    chapters: Iterable[str],
    hidden_files: dict[str, str],
    *,
    sandboxed: bool,
    rules: str,
    jobs: int = 1,
    scheduler: str | None = None,
) -> None:
    """Judge the reference's chapters unless they are known to be right; on a cluster, always: workers come and go.

    Raises:
        JudgeError: the reference isn't at full marks; the message says where and why.
    """
    from autograder.classroom.schedulers import run_all

    unknown = [each for each in sorted(chapters) if scheduler or not is_known(each, rules)]
    tasks = {chapter: payload(chapter, sandboxed, hidden_files) for chapter in unknown if parts_of_chapter(chapter)}
    found = dict(run_all(tasks, trouble, jobs=jobs, scheduler=scheduler, total=len(tasks), show_bar=False))
    for chapter in sorted(found):
        if found[chapter]:
            raise JudgeError(found[chapter])
        remember(chapter, rules)

"""``python -m autograder redteam``: try this installation's defences with hostile submissions.

Each file of ``tests/attacks/KIND/NAME.py`` is the text of one part, headed by comment lines that say its kind, the
example, the part, which statuses are right, what the report must name as the cause, and how many points it may get
(``none`` where nothing is said, ``some`` for less than all, ``full``). Beside it an honest part is judged, which must
keep full marks. The kinds that attack the reading of submissions are built on the spot (``redteam_files``).
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from autograder import hidden, paths, reference
from autograder.lifting import lift_cells
from autograder.parts import BY_ID
from autograder.results import PartResult
from autograder.trees import Work
from autograder.worker import sandbox
from autograder.worker.limits import Limits

LIMITS = Limits(cpu_s=2, wall_s=8.0, memory_mib=384, processes=32, output_kib=256, file_mib=64, files=2000)
WITNESS = "config.kv_bytes"
CANARIES = ("minisgl-attack-canary", "minisgl-attack-cache", "conftest.py", "sitecustomize.py", "attack.pth")


@dataclass(frozen=True)
class Attack:
    """One hostile (or honest) part and what must come of it."""

    kind: str
    name: str
    example: str
    part: str
    statuses: tuple[str, ...]
    cause: str
    points: str
    text: str


@dataclass
class Verdict:
    """What came of an attack; no problems means that the defence held."""

    kind: str
    name: str
    status: str
    points: float
    message: str
    problems: list[str] = field(default_factory=list)


def folder() -> Path:
    """Return the folder of the attacks."""
    return paths.HOME / "tests" / "attacks"


def load(path: Path) -> Attack:
    """Read one attack file."""
    text = path.read_bytes().decode("utf-8-sig")
    facts = dict(re.findall(r"^# (\w+): (.*?)\r?$", text, re.MULTILINE))
    part = facts["part"]
    if facts.get("base") == "reference":
        text = reference.piece(part) + "\n\n" + text
    else:
        text = lift_cells([f"%%module {BY_ID[part].module} {BY_ID[part].name}\n{path.read_bytes().decode()}"])[part]
    statuses = tuple(word.strip() for word in facts["status"].split(","))
    return Attack(
        facts["kind"], path.stem, facts["example"], part, statuses, facts.get("cause", ""), facts.get("points", "none"), text
    )


def all_attacks(root: Path | None = None) -> list[Attack]:
    """Read all attack files, sorted by kind and name."""
    return [load(path) for path in sorted((root or folder()).glob("*/*.py"))]


def judge_attack(judge: object, attack: Attack) -> Verdict:
    """Judge one attack beside the honest witness, and compare with what must come of it."""
    parts = [BY_ID[attack.part]] + ([BY_ID[WITNESS]] if attack.part != WITNESS else [])
    work = Work({attack.part: attack.text, WITNESS: reference.piece(WITNESS)})
    results = judge.judge(work, parts)  # type: ignore[attr-defined]
    result = results[0]
    verdict = Verdict(attack.kind, attack.name, result.status, result.points, result.message)
    verdict.problems += _problems(attack, result)
    if any(other.status != "passed" for other in results[1:]):
        verdict.problems.append(f"the honest part beside it got {results[1].status}: {results[1].message}")
    return verdict


def _problems(attack: Attack, result: PartResult) -> list[str]:
    found = []
    messages = "\n".join(f"{test.message} {test.hint}" for test in result.tests)
    if result.status not in attack.statuses and not (attack.points == "some" and result.status != "passed"):
        found.append(f"status {result.status}, expected {' or '.join(attack.statuses)}")
    if attack.points == "none" and result.points > 0:
        found.append(f"it earned {result.points:g} points")
    if attack.points == "some" and not result.points < result.max_points:
        found.append("it earned all points")
    if attack.points == "full" and result.points != result.max_points:
        found.append(f"an honest part lost points: {messages[:400]}")
    if attack.cause and not re.search(attack.cause, messages):
        found.append(f"the cause isn't named ({attack.cause!r}): {messages[:400]!r}")
    if "BORROWED" in messages:
        found.append("it found something that it must not see")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", messages):
        found.append("the report holds control characters")
    return found


def traces() -> list[str]:
    """Return files on this machine that only an attack could have left."""
    places = [Path.home(), Path(tempfile.gettempdir()), Path("/dev/shm"), Path("/var/tmp"), Path("/"), Path.cwd()]
    found = [place / name for place in places for name in CANARIES if not (place == Path.cwd() and name == "conftest.py")]
    return sorted({str(path) for path in found if path.exists()})


def main(argv: list[str]) -> int:
    """Try the defences. Exit codes: 0 all held, 1 one didn't, 2 wrong usage, 3 the grader itself failed."""
    parser = argparse.ArgumentParser(prog="python -m autograder redteam", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="only attacks whose kind or name holds one of these words")
    parser.add_argument("--attacks", type=Path, metavar="DIR", help="another folder of attacks")
    options = parser.parse_args(argv)
    problem = sandbox.problem()
    if problem:
        print(f"there is no sandbox to try: {problem}", file=sys.stderr)
        return 3
    chosen = [
        attack
        for attack in all_attacks(options.attacks)
        if not options.names or any(word in f"{attack.kind} {attack.name}" for word in options.names)
    ]
    try:
        verdicts = run(chosen)
    except Exception as error:
        print(f"the grader itself failed: {type(error).__name__}: {error}", file=sys.stderr)
        return 3
    return 1 if any(verdict.problems for verdict in verdicts) else 0


def run(chosen: list[Attack], *, show: bool = True) -> list[Verdict]:
    """Judge attacks one after another in the sandbox, then those on the reading of submissions; print each verdict."""
    from autograder.judge import Judge, warm_up
    from autograder.redteam_files import judge_files

    before, gradebook = traces(), _digest(paths.HOME / "gradebook.db")
    hidden.install({"seed": "a seed of the red team's own\n"})
    verdicts = []
    try:
        with Judge(sandboxed=True, limits=LIMITS) as judge:
            warm_up()
            for attack in chosen:
                verdicts.append(judge_attack(judge, attack))
                _say(verdicts[-1], show)
        with tempfile.TemporaryDirectory() as place:
            for verdict in judge_files(Path(place)):
                verdicts.append(verdict)
                _say(verdict, show)
    finally:
        hidden.uninstall()
    left = Verdict("writes where it shouldn't", "traces", "passed", 0.0, "nothing was left on this machine")
    left.problems += [f"left behind: {path}" for path in traces() if path not in before]
    if _digest(paths.HOME / "gradebook.db") != gradebook:
        left.problems.append("the gradebook changed")
    verdicts.append(left)
    _say(left, show)
    return verdicts


def _say(verdict: Verdict, show: bool) -> None:
    if show:
        sign = "BROKEN" if verdict.problems else "held"
        print(f"{sign:<7} {verdict.kind}: {verdict.name}: {verdict.status}, {verdict.points:g} points; {verdict.message}")
        for problem in verdict.problems:
            print(f"          {problem}")
        sys.stdout.flush()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

"""``python -m autograder redteam``: try this installation's defences with hostile submissions.

Each file of ``tests/attacks/KIND/NAME.py`` is the text of one part, headed by comment lines that say its kind, the
example, the part, which statuses are right, what the report must name as the cause, and how many points it may get
(``none`` where nothing is said, ``some`` for less than all, ``full``). ``base: reference`` puts the text behind the
reference's; ``accomplice`` names a part that is judged before it with the same text. Beside it an honest part is judged,
which must keep full marks. The kinds that attack the reading of submissions are built on the spot (``redteam_files``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder import paths
from autograder.authoring.redteam_files import KIND, Verdict, judge_files
from autograder.judge.judge_errors import failure_text
from autograder.judge.results import PartResult
from autograder.parts import BY_ID
from autograder.text import reference
from autograder.text.sources import normalize
from autograder.text.work import Work
from autograder.worker import sandbox
from autograder.worker.limits import Limits

LIMITS = Limits(cpu_s=2, wall_s=8.0, memory_mib=384, processes=32, output_kib=256, file_mib=64, files=2000)
WITNESS = "config.kv_bytes"
# A hidden case that every red team run adds: its width may never be told to a student.
SECRET_WIDTH = 7_340_032
_SIZES = {"num_layers": 2, "num_qo_heads": 8, "num_kv_heads": 4, "hidden_size": SECRET_WIDTH, "intermediate_size": 64}
HIDDEN = {
    "seed": "a seed of the red team's own\n",
    "redteam.json": json.dumps(
        {name: [{"sizes": {**_SIZES, "vocab_size": 100}}] for name in ("sizes", "head_dim", "kv_bytes")}
    ),
}
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
    accomplice: str = ""


def folder() -> Path:
    """Return the folder of the attacks."""
    return paths.HOME / "tests" / "attacks"


def load(path: Path) -> Attack:
    """Read one attack file."""
    text = path.read_text(encoding="utf-8")
    facts = dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE))
    part = facts["part"]
    if facts.get("base") == "reference":
        text = reference.piece(part) + "\n\n" + text
    else:
        if facts.get("saved") == "with CRLF and a BOM":
            text = "\ufeff" + text.replace("\n", "\r\n")
        text = normalize(text)
    return Attack(
        kind=facts["kind"],
        name=path.stem,
        example=facts["example"],
        part=part,
        statuses=tuple(word.strip() for word in facts["status"].split(",")),
        cause=facts.get("cause", ""),
        points=facts.get("points", "none"),
        text=text,
        accomplice=facts.get("accomplice", ""),
    )


def all_attacks(root: Path | None = None) -> list[Attack]:
    """Read all attack files, sorted by kind and name."""
    return [load(path) for path in sorted((root or folder()).glob("*/*.py"))]


def judge_attack(judge: object, attack: Attack) -> Verdict:
    """Judge one attack beside the honest witness, and compare with what must come of it."""
    witness = [WITNESS] if attack.part != WITNESS else []
    ids = [attack.accomplice, attack.part, *witness] if attack.accomplice else [attack.part, *witness]
    pieces = {
        attack.accomplice: attack.text,
        attack.part: attack.text,
        **{name: reference.piece(name) for name in witness},
    }
    found = {result.id: result for result in judge.judge(Work(pieces), [BY_ID[name] for name in ids])}  # type: ignore[attr-defined]
    result = found[attack.part]
    points = {"none": "no points", "some": "not all points", "full": "all points"}[attack.points]
    verdict = Verdict(attack.kind, attack.name, result.status, result.points, result.message)
    verdict.expected = f"{points}, {' or '.join(attack.statuses)}"
    named = re.search(attack.cause, told(result)) if attack.cause else None
    verdict.named = named.group() if named else ""
    verdict.problems += _problems(attack, result)
    if attack.accomplice and found[attack.accomplice].points:
        verdict.problems.append(f"its accomplice earned {found[attack.accomplice].points:g} points")
    if any(found[name].status != "passed" for name in witness):
        verdict.problems.append(f"the honest part beside it got {found[WITNESS].status}: {found[WITNESS].message}")
    return verdict


def told(result: PartResult) -> str:
    """Return all that a student is told about a part."""
    return "\n".join([result.message, *(f"{test.message} {test.hint}" for test in result.tests)])


def _problems(attack: Attack, result: PartResult) -> list[str]:
    found = []
    messages = told(result)
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
    if str(SECRET_WIDTH) in messages:
        found.append("a hidden case is shown")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", messages):
        found.append("the report holds control characters")
    return found


def traces() -> list[str]:
    """Return files on this machine that only an attack could have left."""
    places = [Path.home(), Path(tempfile.gettempdir()), Path("/dev/shm"), Path("/var/tmp"), Path("/"), Path.cwd()]
    found = [
        place / name for place in places for name in CANARIES if not (place == Path.cwd() and name == "conftest.py")
    ]
    return sorted({str(path) for path in found if path.exists()})


def main(argv: list[str]) -> int:
    """Try the defences. Exit codes: 0 all held, 1 one didn't, 2 wrong usage, 3 the grader itself failed."""
    parser = argparse.ArgumentParser(prog="python -m autograder redteam", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="only attacks whose kind or name holds one of these words")
    parser.add_argument("--attacks", type=Path, metavar="DIR", help="another folder of attacks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the verdicts as JSON")
    parser.add_argument(
        "--no-sandbox", action="store_true", help="try what is left without bubblewrap (at your own risk)"
    )
    options = parser.parse_args(argv)
    problem = None if options.no_sandbox else sandbox.problem()
    if problem:
        print(f"there is no sandbox to try: {problem}", file=sys.stderr)
        return 3
    chosen = [each for each in all_attacks(options.attacks) if chosen_by(options.names, each.kind, each.name)]
    verdicts = []
    try:
        for verdict in run(chosen, options.names, sandboxed=not options.no_sandbox):
            verdicts.append(verdict)
            print(line(verdict), flush=True)
    except Exception as error:
        print(failure_text(error), file=sys.stderr)
        return 3
    broken = sum(bool(verdict.problems) for verdict in verdicts)
    print(f"{len(verdicts) - broken} held, {broken} broken")
    if options.json:
        options.json.write_text(
            json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n", encoding="utf-8"
        )
    return 1 if broken else 0


def chosen_by(words: list[str], kind: str, name: str) -> bool:
    """Tell whether an attack is one of those that a command line names (all, where it names none)."""
    return not words or any(word in f"{kind} {name}" for word in words)


def line(verdict: Verdict) -> str:
    """Return one row of the table: the attack, what was expected, what happened, the cause that was named."""
    sign = "BROKEN" if verdict.problems else "held"
    happened = f"{verdict.status}, {verdict.points:g} points"
    row = f"{sign:<6} | {verdict.kind}: {verdict.name} | expected {verdict.expected} | {happened} | {verdict.named}"
    return "\n".join([row, *(f"       ! {problem}" for problem in verdict.problems)])


def run(chosen: list[Attack], words: list[str] | None = None, *, sandboxed: bool = True) -> Iterator[Verdict]:
    """Judge attacks one after another, then those on the reading of submissions, and look for what they left."""
    from autograder.judge.cases import HiddenCases
    from autograder.judge.judge import Judge, warm_up

    before, gradebook = traces(), _digest(paths.HOME / "gradebook.db")
    with Judge(sandboxed=sandboxed, limits=LIMITS, hidden=HiddenCases(HIDDEN)) as judge:
        warm_up()
        for attack in chosen:
            yield judge_attack(judge, attack)
    with tempfile.TemporaryDirectory() as place:
        yield from (each for each in judge_files(Path(place)) if chosen_by(words or [], KIND, each.name))
    left = Verdict("writes where it shouldn't", "traces", "passed", 0.0, "nothing was left on this machine", "no trace")
    left.problems += [f"left behind: {path}" for path in traces() if path not in before]
    if _digest(paths.HOME / "gradebook.db") != gradebook:
        left.problems.append("the gradebook changed")
    yield left


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

"""The background process that judges for a notebook: warm after a few seconds, ends with the kernel.

It reads one JSON request a line on standard input and answers one a line on standard output. It is trusted: student
code runs only in its worker.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from autograder.judge.judge import Judge, warm_up
from autograder.parts import BY_ID
from autograder.student.workspace import Workspace


def answer(judge: Judge, request: dict[str, Any]) -> dict[str, Any]:
    """Judge the wanted parts of a workspace."""
    workspace = Workspace(Path(request["workspace"]))
    work = workspace.read()
    results = judge.judge(work, [BY_ID[part_id] for part_id in request["parts"]])
    workspace.note_results(results, work)
    return {"results": [result.as_plain() for result in results]}


def main() -> int:
    """Answer requests until standard input ends."""
    from autograder.worker.isolation import die_with_parent

    die_with_parent()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may get into the replies
    with Judge() as judge:
        warm_up()
        for line in sys.stdin:
            try:
                reply = answer(judge, json.loads(line))
            except Exception as error:
                reply = {"fault": f"{type(error).__name__}: {error}"}
            replies.write(json.dumps(reply) + "\n")
            replies.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

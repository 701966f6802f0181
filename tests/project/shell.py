"""Run a command as a document has it and a person types it: in a shell, with the environment activated."""

import os
import subprocess
import sys
from pathlib import Path

from tests.project.tree import ROOT

BIN = Path(sys.executable).parent
TIME_LIMIT_S = 900  # grading the example class; pytest's own limit is shorter where a test doesn't ask for more


def shell(
    command: str,
    *,
    cwd: Path = ROOT,
    more: str = "",
    swap: tuple[str, str] = ("", ""),
    expect: tuple[int, ...] = (0,),
    environment: dict[str, str] | None = None,
) -> str:
    """Run a documented command and return what it printed, both streams together.

    Args:
        command: the words of the document.
        cwd: the folder to run in.
        more: what is added behind them: arguments, or further commands.
        swap: a piece of the command and what stands for it here, such as a place in /tmp.
        expect: the exit codes that are right.
        environment: variables besides those of this process.
    """
    assert swap[0] in command, f"{swap[0]!r} is not in {command!r}"
    text = f"{command.replace(*swap) if swap[0] else command} {more}"
    variables = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=cwd,
        env=variables | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert done.returncode in expect, f"{text}\nended with {done.returncode}:\n{done.stdout}"
    return done.stdout

"""The kernel's end of the background checker."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

from autograder import paths
from autograder.judge.judge_errors import JudgeError
from autograder.judge.results import PartResult


class Checker:
    """Start the checker process early, and ask it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def start(self) -> None:
        """Start the process, without waiting until it is warm."""
        if self._process is not None and self._process.poll() is None:
            return
        environment = {**os.environ, "PYTHONPATH": str(paths.HOME), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.student.checker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
            start_new_session=True,  # an interrupt of the kernel isn't one of the checker
        )

    def judge(self, workspace: Path, part_ids: list[str]) -> list[PartResult]:
        """Have parts of a workspace judged.

        Raises:
            JudgeError: the grader itself failed.
        """
        request = json.dumps({"workspace": str(workspace), "parts": part_ids}) + "\n"
        for attempt in (1, 2):
            self.start()
            assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
            try:
                self._process.stdin.write(request)
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, OSError):
                line = ""
            except KeyboardInterrupt:
                self.close()
                raise
            if line:
                break
            self.close()
            if attempt == 2:
                raise JudgeError("the checker process ended twice; run: python -m autograder doctor")
        reply = json.loads(line)
        if "fault" in reply:
            raise JudgeError(reply["fault"])
        return [PartResult.from_plain(values) for values in reply["results"]]

    def close(self) -> None:
        """End the process (its worker ends with it)."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


CHECKER = Checker()

"""The processes of a memory race: start one, give it its turn, take in what it reports."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from minisgl.viz.race_lane import Lane
from minisgl.viz.race_plan import BUILD, EVERYTHING, MERGE, RaceSettings, Stored


@dataclass
class LaneProcess:
    """A lane's process, which has imported what it needs, or is about to, and waits for its turn."""

    lane: Lane
    process: subprocess.Popen[str]
    errors: IO[str]

    @classmethod
    def start(cls, lane: Lane, tree: Path, stored: Stored, settings: RaceSettings) -> LaneProcess:
        """Start a process that imports the source tree ``tree``."""
        arguments = {
            "strategy": lane.strategy if lane.strategy in (BUILD, EVERYTHING, MERGE) else "stream",
            "folder": str(stored.folder),
            "keep": settings.keep,
            "tp_size": settings.tp_size,
            "tp_rank": settings.tp_rank,
        }
        # A fixed threshold makes the allocator give freed tensors back to the system, whatever came before.
        changes = {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("racer.py")), json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tree), **changes},
        )
        lane.pid = process.pid
        return cls(lane, process, errors)

    def follow(self) -> None:
        """Give the lane its turn, and take in what it reports until it ends."""
        lane, process = self.lane, self.process
        assert process.stdin is not None and process.stdout is not None
        lane.status = "starting"
        with contextlib.suppress(OSError):  # it ended already; what it wrote says why
            process.stdin.write("g")
            process.stdin.flush()
        for text in process.stdout:
            lane.take(json.loads(text))
        code = process.wait()
        if lane.status in ("starting", "running"):
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or [""])[-1]
            lane.status, lane.message = "failed", f"its process ended with code {code}. {last}"

    def stop(self) -> None:
        """End the process; does nothing to one that has ended."""
        self.process.kill()

    def close(self) -> None:
        """End the process, wait until it is gone, and close its pipes."""
        self.stop()
        with contextlib.suppress(OSError):
            self.process.communicate()
        self.errors.close()

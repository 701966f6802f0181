"""The memory race's model: load one checkpoint in several ways, each in a process of its own, and watch their memory.

Lanes run one after the other, so that they don't slow each other down or share memory, and are drawn on one axis that
starts where each lane starts to load.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import psutil

from minisgl.errors import MinisglError
from minisgl.viz.drawing import mib
from minisgl.viz.race_lane import Lane
from minisgl.viz.race_picture import draw_race
from minisgl.viz.race_plan import (
    BUILD,
    EVERYTHING,
    MERGE,
    OURS,
    SHAPES,
    STUDENT,
    RaceSettings,
    Stored,
    available_bytes,
    make_stored,
    predict,
)  # fmt: skip
from minisgl.viz.race_process import LaneProcess

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from minisgl.viz.drawing import Picture

_SCRATCH_PREFIX = "minisgl-race-"
THIS_TREE = Path(__file__).resolve().parent.parent.parent


class RaceModel:
    """Start, stop and keep races.

    Args:
        settings: What to race on.
        student_tree: The folder that holds the student's ``minisgl``; default: the one that this module is in, where that
            isn't the reference's.
        reference_tree: The folder that holds the reference's ``minisgl``; default: where the course is installed from.

    Attributes:
        lanes: strategy -> ``Lane`` of the current race.
        history: Finished races: (settings, lanes).
        replay_s: Where a replay stands, or None to show everything.
    """

    shapes = tuple(SHAPES)

    def __init__(
        self, settings: RaceSettings | None = None, *, student_tree: str | Path | None = None,
        reference_tree: str | Path | None = None,
    ) -> None:  # fmt: skip
        reference = Path(reference_tree).resolve() if reference_tree else _installed_tree()
        student = Path(student_tree).resolve() if student_tree else THIS_TREE
        self.trees = {BUILD: THIS_TREE, EVERYTHING: THIS_TREE, MERGE: THIS_TREE}
        if reference is not None and (reference / "minisgl/models/weight.py").is_file():
            self.trees[OURS] = reference
        if student_tree or student != reference:
            self.trees[STUDENT] = student
        self.settings = settings or RaceSettings()
        self.lanes: dict[str, Lane] = {}
        self.history: list[tuple[RaceSettings, dict[str, Lane]]] = []
        self.stored: Stored | None = None
        self.replay_s: float | None = None
        remove_left_behind(Path(tempfile.gettempdir()))
        prefix = f"{_SCRATCH_PREFIX}{os.getpid()}-"
        self._scratch = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self._stopping = threading.Event()
        self._runner: threading.Thread | None = None
        self._processes: list[LaneProcess] = []

    @property
    def is_running(self) -> bool:
        """Whether a race is on."""
        return self._runner is not None and self._runner.is_alive()

    @property
    def duration_s(self) -> float:
        """Seconds of the longest lane."""
        return max((lane.duration_s for lane in self.lanes.values()), default=0.0)

    def prepare(self, settings: RaceSettings | None = None, strategies: Iterable[str] | None = None) -> None:
        """Make or open the checkpoint and predict; nothing is loaded yet.

        ``strategies`` are keys of ``trees``; when left out, all but "build", which takes three times the model.

        Raises:
            MinisglError: The settings can't be raced on, or a race is on.
        """
        if self.is_running:
            raise MinisglError("a race is on. Expected none. Stop it first.")
        self.settings, self.replay_s = settings or self.settings, None
        self.stored = make_stored(self.settings, Path(self._scratch.name))
        local = sum(self.stored.param_bytes().values())
        read = {BUILD: self.stored.num_bytes, EVERYTHING: self.stored.num_bytes, MERGE: self.stored.num_bytes}
        self.lanes = {
            name: Lane(name, predict(name, self.stored, self.settings.keep), read.get(name, local) + local)
            for name in ([name for name in self.trees if name != BUILD] if strategies is None else strategies)
        }

    def start(self, settings: RaceSettings | None = None, strategies: Iterable[str] | None = None) -> None:
        """Start a race in the background; raises what ``prepare`` does."""
        self.prepare(settings, strategies)
        self._stopping.clear()
        self._processes = []
        self._runner = threading.Thread(target=self._run, name="minisgl-race", daemon=True)
        self._runner.start()

    def wait(self, timeout_s: float = 600.0) -> None:
        """Wait until the race is over; stop it after ``timeout_s``."""
        if self._runner is not None:
            self._runner.join(timeout_s)
            self.stop()

    def stop(self) -> None:
        """End the race and its process, and wait until both are gone."""
        self._stopping.set()
        for process in self._processes:
            process.stop()
        if self._runner is not None:
            self._runner.join(10)

    def close(self) -> None:
        """Stop, and remove the checkpoints that were made."""
        self.stop()
        self._scratch.cleanup()

    def _run(self) -> None:
        """Start all processes, so that they import at the same time, and let them load one after the other."""
        assert self.stored is not None
        try:
            for lane in self.lanes.values():
                needed, free = lane.prediction.anonymous_bytes, available_bytes()
                if needed > 0.9 * free:
                    lane.status = "too large"
                    lane.message = f"needs {mib(needed)}, {mib(free)} are free: not started"
                elif not self._stopping.is_set():
                    tree = self.trees[lane.strategy]
                    self._processes.append(LaneProcess.start(lane, tree, self.stored, self.settings))
            for process in self._processes:
                if not self._stopping.is_set():
                    process.follow()
        finally:
            for process in self._processes:
                process.close()
            for lane in self.lanes.values():
                if self._stopping.is_set() and lane.status in ("waiting", "starting", "running", "failed"):
                    lane.status, lane.message = "stopped", ""
        if any(lane.status == "finished" for lane in self.lanes.values()):
            self.history.append((self.settings, self.lanes))

    def show(self, index: int) -> None:
        """Show a kept race again (its place in ``history``)."""
        self.settings, self.lanes = self.history[index]
        self.replay_s = None

    def replay(self, seconds: float | None) -> None:
        """Show the race as it stood after so many seconds; None shows all of it."""
        self.replay_s = seconds

    def summary(self) -> str:
        """Say in one line how the race stands."""
        if not self.lanes:
            return "no race yet: press start"
        return "; ".join(_one_line(lane) for lane in self.lanes.values())

    def describe(self) -> str:
        """Say in words what the chart shows."""
        size = f", {mib(self.stored.num_bytes)} of tensors" if self.stored else ""
        lines = [
            f"Memory race on {self.settings.checkpoint}{size}, rank {self.settings.tp_rank} of {self.settings.tp_size}."
        ]
        for lane in self.lanes.values():
            exact = f", counted {lane.counted_bytes:,}" if lane.counted_bytes is not None else ""
            kernel = (
                f", kernel's mark {lane.kernel_bytes:,} (predicted {lane.prediction.resident_bytes:,})"
                if lane.kernel_bytes
                else ""
            )
            lines.append(
                f"{lane.label}: {lane.status}. Peak of anonymous memory: predicted {lane.prediction.anonymous_bytes:,} bytes "
                f"({lane.prediction.why}), measured {lane.measured_bytes or 0:,}{exact}{kernel}. {lane.message}".rstrip()
            )
        if self.lanes:
            lines.append(_which_memory(self.lanes))
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw the lanes' memory against time, and a table of predicted and measured peaks."""
        return draw_race(self)

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()

    @property
    def results(self) -> list[dict[str, Any]]:
        """Give predicted and measured peaks of the current lanes as plain rows, in bytes and seconds."""
        return [
            {
                "strategy": lane.label, "status": lane.status, "predicted": lane.prediction.anonymous_bytes,
                "measured": lane.measured_bytes, "counted": lane.counted_bytes, "kernel": lane.kernel_bytes,
                "kernel_predicted": lane.prediction.resident_bytes, "seconds": lane.duration_s,
            }
            for lane in self.lanes.values()
        ]  # fmt: skip

    def __enter__(self) -> RaceModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _one_line(lane: Lane) -> str:
    peak = f"peak {mib(lane.measured_bytes)}, " if lane.measured_bytes else ""
    return f"{lane.label}: {lane.status}, {peak}predicted {mib(lane.prediction.anonymous_bytes)}"


def _which_memory(lanes: dict[str, Lane]) -> str:
    source = next((lane.baseline["source"] for lane in lanes.values() if lane.baseline), "")
    return f"What is shown: {source}; all of it above what the process had before it loaded." if source else ""


def remove_left_behind(folder: Path) -> None:
    """Remove the made checkpoints of kernels that were killed: their process is gone, and they are an hour old."""
    for scratch in folder.glob(f"{_SCRATCH_PREFIX}*-*"):
        pid = scratch.name.removeprefix(_SCRATCH_PREFIX).split("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdecimal() and not psutil.pid_exists(int(pid)) and scratch.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(scratch, ignore_errors=True)


def _installed_tree() -> Path | None:
    """Find the folder that the course is installed from, which holds the reference where there is one."""
    try:
        text = importlib.metadata.distribution("minisgl-course").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        text = None
    if not text:
        return None
    url = urlparse(json.loads(text).get("url", ""))
    return Path(url2pathname(url.path)).resolve() if url.scheme == "file" else None

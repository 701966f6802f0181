"""The memory race on the page."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

from minisgl.errors import MinisglError
from minisgl.viz.race import RaceModel
from minisgl.viz.race_plan import STRATEGIES, RaceSettings
from minisgl.viz.views.panel import Panel

_REFRESH_S = 0.3


class MemoryRace(Panel):
    """Load one checkpoint in several ways and watch what each takes.

    Args:
        checkpoint: A name of ``RaceModel.shapes`` or a model's folder.
        student_tree: The folder that holds the student's ``minisgl``; default: the one that this lab is in.
        reference_tree: The folder that holds the reference's; default: where the course is installed from.
        **settings: As for ``RaceSettings``: num_files, tp_size, tp_rank, shuffled, keep.
    """

    def __init__(
        self, checkpoint: str | Path = RaceModel.shapes[0], *, student_tree: str | Path | None = None,
        reference_tree: str | Path | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        chosen = RaceSettings(str(checkpoint), **settings)
        super().__init__("Memory race", RaceModel(chosen, student_tree=student_tree, reference_tree=reference_tree))
        self._do(self._predict)

    def controls(self) -> list[list[Any]]:
        """What to race on; who races; start, stop, replay."""
        model, widgets, now = self.model, self.widgets, self.model.settings
        shapes = [*RaceModel.shapes, *([] if now.checkpoint in RaceModel.shapes else [now.checkpoint])]
        self._settings = {
            "checkpoint": self.dropdown("Checkpoint", shapes, now.checkpoint, self._predict),
            "num_files": self.number("Shard files", now.num_files, 1, 32, self._predict),
            "tp_size": self.choice("TP size", [1, 2, 4, 8], now.tp_size, self._limit_rank),
            "tp_rank": self.number("Rank", now.tp_rank, 0, max(now.tp_size - 1, now.tp_rank), self._predict),
            "shuffled": self.checkbox("shuffled", now.shuffled, self._predict),
            "keep": self.checkbox("keep parameters", now.keep, self._predict),
        }
        self._lanes = {name: self.checkbox(STRATEGIES[name], True, self._predict) for name in model.trees}
        self._start = self.button("Start", self._begin, icon="play", hint="Start the race")
        self._stop = self.button("Stop", self._end, icon="stop", hint="End the race and its processes")
        self._replay = widgets.Play(min=0, max=50, value=50, interval=100, show_repeat=False, disabled=True, description="Replay",
                                    tooltip="Replay, pause, stop")  # fmt: skip
        self._moment = widgets.IntSlider(
            description="Replay", min=0, max=50, value=50, readout=False, layout={"width": "260px"}
        )
        widgets.jslink((self._replay, "value"), (self._moment, "value"))
        self.on_change(self._moment, lambda tick: model.replay(None if tick == 50 else model.duration_s * tick / 50))
        self._history = self.dropdown("Earlier races", [("none yet", None)], None, self._show_earlier)
        rows = list(self._settings.values())
        return [
            rows[:3],
            rows[3:],
            [*self._lanes.values()],
            [self._start, self._stop, self._replay, self._moment, self._history],
        ]

    def _limit_rank(self, tp_size: int) -> None:
        self._settings["tp_rank"].max = tp_size - 1
        self._predict()

    def _chosen(self) -> tuple[RaceSettings, list[str]]:
        values = {name: control.value for name, control in self._settings.items()}
        return dataclasses.replace(self.model.settings, **values), [
            name for name, box in self._lanes.items() if box.value
        ]

    def _predict(self, _: Any = None) -> None:
        """Show what the chosen lanes must take, before they run."""
        if not self.model.is_running:
            self.model.prepare(*self._chosen())

    def _begin(self) -> None:
        if self.model.is_running:
            raise MinisglError("a race is on. Expected none. Stop it first.")
        settings, lanes = self._chosen()
        if not lanes:
            raise MinisglError("no lane is chosen. Expected one or more. Tick one of the boxes.")
        self._moment.value = 50
        self.model.start(settings, lanes)
        self._watcher = threading.Thread(target=self._watch, name="minisgl-race-view", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        """Draw the race while it is on, and once more when it is over."""
        while self.model.is_running and not self._closed.wait(_REFRESH_S):
            self.refresh()
        if not self._closed.is_set():
            self._replay.disabled = False
            self._list_history()
            self.refresh()

    def _list_history(self) -> None:
        self._busy = True
        labels = [f"{index + 1}: {race.checkpoint}, rank {race.tp_rank} of {race.tp_size}, {race.num_files} files"
                  for index, (race, _) in enumerate(self.model.history)]  # fmt: skip
        if labels:
            self._history.options = [(label, index) for index, label in enumerate(labels)]
            self._history.value = len(labels) - 1
        self._busy = False

    def _show_earlier(self, index: int | None) -> None:
        if index is not None and not self.model.is_running:
            self.model.show(index)

    def _end(self) -> None:
        self.model.stop()

    def close(self) -> None:
        """End the race and its processes, and take the lab off the page."""
        self._closed.set()
        self.model.close()
        super().close()

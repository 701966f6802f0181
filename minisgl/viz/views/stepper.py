"""The merge stepper on the page."""

from __future__ import annotations

from typing import Any

from minisgl.viz.known import Config
from minisgl.viz.stepper import ORDERS, StepperModel
from minisgl.viz.views.panel import Panel


class MergeStepper(Panel):
    """Step through a checkpoint's tensors and watch both ways of merging.

    Args:
        config: A name of ``StepperModel.choices`` or a config.json's fields.
        **options: As for ``StepperModel``.
    """

    shows_summary = True

    def __init__(self, config: str | Config = StepperModel.choices[0], **options: Any) -> None:
        self._options = {"config": config, **options}
        super().__init__("Merge stepper", StepperModel(**self._options))

    def controls(self) -> list[list[Any]]:
        """Choose what to step through; play, pause, step."""
        model, widgets = self.model, self.widgets
        given = self._options["config"]
        choices = [(name, name) for name in StepperModel.choices] + (
            [] if isinstance(given, str) else [("given config", given)]
        )
        choose = self.dropdown("Model", choices, given, lambda value: self._again(config=value))
        order = self.choice("Files", ORDERS, model.order, lambda value: self._again(order=value))
        files = self.number("Number of files", model.num_files, 1, 8, lambda value: self._again(num_files=value))
        self._slider = widgets.IntSlider(
            description="Step", min=0, max=model.num_steps, value=model.position, style={"description_width": "initial"},
            layout={"width": "420px"},
        )  # fmt: skip
        self.on_change(self._slider, lambda position: self.model.go_to(position))
        self._play = widgets.Play(
            min=0,
            max=model.num_steps,
            value=0,
            interval=500,
            show_repeat=False,
            description="Play",
            tooltip="Play, pause, stop",
        )
        widgets.jslink((self._play, "value"), (self._slider, "value"))
        back = self.button("Back", lambda: self._move(-1), icon="step-backward", hint="One step back")
        step = self.button("Step", lambda: self._move(1), icon="step-forward", hint="One step on")
        return [[choose, files], [order], [self._play, back, step, self._slider]]

    def _move(self, by: int) -> None:
        self.model.go_to(self.model.position + by)
        self._slider.value = self.model.position

    def _again(self, **changes: Any) -> None:
        self.model = StepperModel(**{**self._options, **changes})
        self._options |= changes
        for control in (self._slider, self._play):
            control.max = self.model.num_steps
            control.value = 0

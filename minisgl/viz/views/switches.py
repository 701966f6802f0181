"""The three switches on the page."""

from __future__ import annotations

from functools import partial
from typing import Any

from minisgl.viz.switches import ARCHITECTURES, SWITCHES, SwitchesModel
from minisgl.viz.views.panel import Panel


class Switches(Panel):
    """Flip the three switches and compare keys, shapes and counts with an architecture.

    Args:
        base: The architecture to compare with.
        **switches: Names of ``SWITCHES`` that differ from it at first.
    """

    def __init__(self, base: str = "LlamaForCausalLM", **switches: bool) -> None:
        super().__init__("Three switches, four architectures", SwitchesModel(base, **switches))

    def controls(self) -> list[list[Any]]:
        """One checkbox a switch, one button an architecture."""
        model = self.model
        self._boxes = {
            name: self.checkbox(label, model.switches[name], partial(self._set, name))
            for name, label in SWITCHES.items()
        }
        buttons = [
            self.button(
                name.removesuffix("ForCausalLM"),
                partial(self._choose, name),
                hint=f"Set the switches as {name} has them",
            )
            for name in ARCHITECTURES
        ]
        base = self.dropdown(
            "Compare with", list(ARCHITECTURES), model.base, lambda value: setattr(model, "base", value)
        )
        self._found = self.widgets.HTML()
        compare = self.button("Compare with your model classes", self._compare, icon="check")
        return [[*self._boxes.values(), base], [*buttons, compare], [self._found]]

    def _set(self, name: str, value: bool) -> None:
        self.model.switches[name] = value

    def _choose(self, architecture: str) -> None:
        self.model.choose(architecture)
        for name, box in self._boxes.items():
            box.value = self.model.switches[name]

    def _compare(self) -> None:
        self._found.value = ""
        self._found.value = self.model.compare_with_model()

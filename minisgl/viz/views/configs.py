"""The config explorer on the page."""

from __future__ import annotations

from typing import Any

from minisgl.viz.configs import PASTED, ConfigModel
from minisgl.viz.views.panel import Panel


class ConfigExplorer(Panel):
    """Choose a config or paste one, and see where each value comes from.

    Args:
        name: A name of ``ConfigModel.choices``.
    """

    def __init__(self, name: str = "Qwen3-0.6B") -> None:
        super().__init__("Config explorer", ConfigModel(name))

    def controls(self) -> list[list[Any]]:
        """A dropdown of known configs over a text to edit or replace; what was typed joins the dropdown."""
        self._known = self.dropdown("Known config", list(ConfigModel.choices), self.model.name, self._choose)
        self._text = self.widgets.Textarea(
            value=self.model.text(), description="config.json", continuous_update=True, rows=9,
            style={"description_width": "initial"}, layout={"width": "100%", "max_width": "760px"},
        )  # fmt: skip
        self.on_change(self._text, self._paste)
        return [[self._known], [self._text]]

    def _choose(self, name: str) -> None:
        if name == PASTED:
            self.model.paste(self._pasted)
            self._text.value = self._pasted
        else:
            self.model.choose(name)
            self._text.value = self.model.text()

    def _paste(self, text: str) -> None:
        self.model.paste(text)
        self._pasted = text
        with self._known.hold_sync():
            self._known.options = (*ConfigModel.choices, PASTED)
            self._known.value = PASTED

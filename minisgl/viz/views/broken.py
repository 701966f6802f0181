"""The break-it lab on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minisgl.viz.breaks import BREAKS
from minisgl.viz.broken import BreakItModel
from minisgl.viz.views.panel import Panel


class BreakIt(Panel):
    """Make one mistake in a model's weights or config, and read what it says then.

    Args:
        model_path: A model's folder or a tiny model's name; default: SmolLM2 where it has been fetched, else a tiny model.
        run: Whether to compare at once; else when the button is pressed. Either takes some seconds.
        **options: As for ``BreakItModel``: kind, prompt, max_new_tokens.
    """

    shows_summary = True

    def __init__(self, model_path: str | Path | None = None, *, run: bool = True, **options: Any) -> None:
        super().__init__("Break it", BreakItModel(model_path, **options))
        if run:
            self._do(self._run)

    def controls(self) -> list[list[Any]]:
        """Choose mistake, prompt and length."""
        model = self.model
        labels = [(broken.label, kind) for kind, broken in BREAKS.items()]
        kind = self.dropdown("Mistake", labels, model.kind, lambda value: self._change(kind=value))
        prompt = self.widgets.Text(
            value=model.prompt, description="Prompt", continuous_update=False, style={"description_width": "initial"},
            layout={"width": "480px"},
        )  # fmt: skip
        self.on_change(prompt, lambda value: self._change(prompt=value or " "))
        length = self.number(
            "New tokens", model.max_new_tokens, 1, 48, lambda value: self._change(max_new_tokens=value)
        )
        return [
            [kind, prompt],
            [length, self.button("Run", self._run, icon="play", hint="Let both models continue the prompt")],
        ]

    def _change(self, **what: Any) -> None:
        self.model.change(**what)

    def _run(self) -> None:
        self.say("computing …")
        self.model.run()

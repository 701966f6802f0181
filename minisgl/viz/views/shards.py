"""The shard explorer on the page."""

from __future__ import annotations

from typing import Any

from minisgl.viz.known import Config
from minisgl.viz.shards import ShardModel
from minisgl.viz.views.panel import Panel


class ShardExplorer(Panel):
    """Choose a number of ranks and one of them, and see what it holds.

    Args:
        config: A name of ``ShardModel.choices`` or a config.json's fields.
        tp_size: Number of ranks to begin with.
        tp_rank: The rank to look at.
    """

    def __init__(self, config: str | Config = "Qwen3-0.6B", tp_size: int = 4, tp_rank: int = 0) -> None:
        self._given = config
        super().__init__("Shard explorer", ShardModel(config, tp_size, tp_rank))

    def controls(self) -> list[list[Any]]:
        """Choose model, number of ranks and rank."""
        model = self.model
        choices = list(ShardModel.choices) + ([] if isinstance(self._given, str) else [("given config", self._given)])
        self._size = self.choice("TP size", model.tp_sizes, model.tp_size, self._set_size)
        self._rank = self.number(
            "Rank", model.tp_rank, 0, model.tp_size - 1, lambda rank: model.set_ranks(model.tp_size, rank)
        )
        previous = self.button("Previous rank", lambda: self._move(-1), icon="chevron-left")
        following = self.button("Next rank", lambda: self._move(1), icon="chevron-right")
        return [
            [self.dropdown("Model", choices, self._given, self._choose), self._size, self._rank, previous, following]
        ]

    def _choose(self, config: str | Config) -> None:
        self.model.choose(config)
        self._size.options = self.model.tp_sizes
        self._show_ranks()

    def _set_size(self, tp_size: int) -> None:
        self.model.set_ranks(tp_size, min(self.model.tp_rank, tp_size - 1))
        self._show_ranks()

    def _move(self, by: int) -> None:
        self.model.set_ranks(self.model.tp_size, (self.model.tp_rank + by) % self.model.tp_size)
        self._show_ranks()

    def _show_ranks(self) -> None:
        self._size.value = self.model.tp_size
        self._rank.max = self.model.tp_size - 1
        self._rank.value = self.model.tp_rank

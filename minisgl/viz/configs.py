"""The config explorer's model: where in a config.json each value comes from, which traps lie there, what it costs.

It reads the JSON itself, without ``minisgl.models``: students compare their ``ModelConfig`` with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from minisgl.checkpoint.maker import stored_shapes
from minisgl.errors import MinisglError
from minisgl.viz.drawing import ORANGE, VERMILLION, Picture, lines_of, mib
from minisgl.viz.known import KNOWN, Config
from minisgl.viz.tracing import Traced, trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _COLUMNS = 900, (8, 210, 360, 570)
DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
PASTED = "pasted"


@dataclass(frozen=True)
class Sizes:
    """Say what a model of this config takes, in numbers and bytes of the config's dtype.

    Attributes:
        num_params: Numbers in the checkpoint; a tied embedding counts once.
        weight_bytes: Their size.
        kv_bytes_per_token: What one token takes in the KV cache, over all layers.
        dtype: The dtype that both are counted in.
    """

    num_params: int
    weight_bytes: int
    kv_bytes_per_token: int
    dtype: str


class ConfigModel:
    """Trace a config, known or pasted.

    Attributes:
        name: The known config's name, or ``PASTED``.
        config: The parsed JSON; empty while a pasted text can't be read.
        rows: One ``Traced`` for each value that the engine needs.
        sizes: What it costs; None while sizes are missing.
        error: Why the text can't be read or computed; None when all is well.
    """

    choices = tuple(KNOWN)

    config: Config
    rows: list[Traced]
    sizes: Sizes | None
    error: str | None

    def __init__(self, name: str = "Qwen3-0.6B") -> None:
        self.choose(name)

    def choose(self, name: str) -> None:
        """Take one of ``choices``."""
        if name not in KNOWN:
            raise MinisglError(f"no known config {name!r}; expected one of {', '.join(KNOWN)}. Or paste a config.json.")
        self.name = name
        self._take(KNOWN[name])

    def paste(self, text: str) -> None:
        """Take a config.json's text; what is wrong with it is in ``error`` afterwards."""
        self.name = PASTED
        try:
            parsed = json.loads(text)
        except ValueError as error:
            self._refuse(f"this isn't JSON: {error}. Expected the text of a config.json. Paste the whole file.")
            return
        if not isinstance(parsed, dict):
            self._refuse(f"this is a JSON {type(parsed).__name__}. Expected an object with a model's fields.")
            return
        self._take(parsed)

    def text(self) -> str:
        """Give the config as JSON."""
        return json.dumps(self.config, indent=2)

    def values(self) -> dict[str, Any]:
        """Give each traced value by its name in ``ModelConfig``."""
        return {row.name: row.value for row in self.rows}

    @property
    def traps(self) -> list[Traced]:
        """The rows where a careless reader would take another value, and those that are refused."""
        return [row for row in self.rows if row.trap or row.refused]

    def summary(self) -> str:
        """Say the result in one line."""
        if self.error:
            return self.error
        assert self.sizes is not None
        num_traps = len(self.traps)
        return (
            f"{self.sizes.num_params:,} parameters, {self.sizes.weight_bytes:,} bytes of weights "
            f"({mib(self.sizes.weight_bytes)}), {self.sizes.kv_bytes_per_token:,} bytes of KV cache per token "
            f"({mib(self.sizes.kv_bytes_per_token)}) in {self.sizes.dtype}; "
            f"{num_traps or 'no'} {'trap' if num_traps == 1 else 'traps'}"
        )

    def describe(self) -> str:
        """Say in words what the table shows."""
        lines = [f"Config {self.name}: {self.summary()}."]
        for row in self.rows:
            mark = " REFUSED:" if row.refused else " TRAP:" if row.trap else ""
            note = f" {row.note}" if row.note else ""
            lines.append(f"{row.name} = {row.value!r}, from {row.source}.{mark}{note}")
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw the table: value, where it came from, and the traps, marked with a sign and a frame."""
        picture = Picture(_WIDTH, 70, f"{self.name}: {self.summary()}")
        picture.text(8, 20, self.name, size=16, bold=True)
        for number, line in enumerate(lines_of(self.summary(), _WIDTH - 16, 12.5)):
            picture.text(8, 42 + 17 * number, line, size=12.5)
            picture.height = 76 + 17 * number
        for x, head in zip(_COLUMNS, ("value of", "is", "read from", "why"), strict=True):
            picture.text(x, picture.height - 8, head, size=12, bold=True)
        for row in self.rows:
            _draw_row(picture, row)
        picture.height += 10
        return picture

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()

    def _refuse(self, error: str) -> None:
        self.config, self.rows, self.sizes, self.error = {}, [], None, error

    def _take(self, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.rows = trace(self.config)
        self.sizes, self.error = None, None
        try:
            self.sizes = sizes_of(self.config)
        except (MinisglError, TypeError, ZeroDivisionError) as error:
            self.error = str(error)


def sizes_of(config: Config) -> Sizes:
    """Count a config's parameters, weights and KV cache.

    Raises:
        ConfigError: A size is missing, or the architecture isn't one of the four.
    """
    return _sizes_of_text(json.dumps(config))


@lru_cache(maxsize=64)
def _sizes_of_text(text: str) -> Sizes:
    """Count once for each config: the largest models have many thousand tensors."""
    config = json.loads(text)
    values = {row.name: row.value for row in trace(config)}
    num_params = sum(prod(shape) for shape in stored_shapes(config).values())
    dtype = values["dtype"] if values["dtype"] in DTYPE_BYTES else "bfloat16"
    num_bytes = DTYPE_BYTES[dtype]
    kv_numbers = 2 * values["num_layers"] * values["num_kv_heads"] * values["head_dim"]
    return Sizes(num_params, num_params * num_bytes, kv_numbers * num_bytes, dtype)


def _draw_row(picture: Picture, row: Traced) -> None:
    """Add a row below the others, as high as its longest cell needs."""
    mark = "✕ refused: " if row.refused else "⚠ trap: " if row.trap else ""
    value = f"{row.value:,}" if type(row.value) is int else str(row.value)
    cells = [
        lines_of(text, end - start - 10, 12.5)
        for text, start, end in zip(
            (row.name, value, row.source, mark + row.note), _COLUMNS, (*_COLUMNS[1:], _WIDTH), strict=True
        )
    ]
    top, height = picture.height, 7 + 16 * max(map(len, cells))
    if mark:
        color = VERMILLION if row.refused else ORANGE
        picture.rect(2, top + 1, _WIDTH - 4, height - 2, None, edge=color, edge_width=2)
        picture.rect(2, top + 1, 5, height - 2, color, edge=color)
    for x, lines in zip(_COLUMNS, cells, strict=True):
        for number, line in enumerate(lines):
            picture.text(x + 3, top + 16 + 16 * number, line, size=12.5, bold=bool(mark) and x == _COLUMNS[0])
    picture.height += height

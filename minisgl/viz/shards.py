"""The shard explorer's model: which heads, rows, columns and experts each rank of a tensor-parallel model holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from minisgl.checkpoint.maker import stored_shapes
from minisgl.viz.configs import DTYPE_BYTES, sizes_of
from minisgl.viz.drawing import FAINT, INK, Picture, lines_of, mib, text_width
from minisgl.viz.known import KNOWN, Config, small
from minisgl.viz.layout import Sharding, Share, role_of, supported_tp_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _LEFT, _ROW = 900, 160, 26
_ROWS = {
    "q": "q heads", "k": "k heads", "v": "v heads", "o": "o_proj columns", "gate": "gate rows", "up": "up rows",
    "down": "down columns", "vocab": "vocabulary rows",
}  # fmt: skip


class ShardModel:
    """Look at one rank among ``tp_size``.

    Args:
        config: A name of ``choices`` or a config.json's fields.
        tp_size: Number of ranks; one that the model can't be cut for is refused.
        tp_rank: The rank to look at.

    Attributes:
        tp_sizes: The rank counts that this model can be cut for.
    """

    choices: dict[str, Config] = {  # noqa: RUF012
        **{name: KNOWN[name] for name in ("Qwen3-0.6B", "Qwen2.5-0.5B", "SmolLM2-135M", "Qwen3-8B", "Llama-3-70B")},
        "Qwen3-30B-A3B": KNOWN["Qwen3-30B-A3B"],
        "Qwen3-235B-A22B": KNOWN["Qwen3-235B-A22B"],
        "Llama with 32,003 tokens": small("SmolLM2-135M", vocab_size=32003, num_attention_heads=8, num_key_value_heads=2,
                                          hidden_size=512),
    }  # fmt: skip

    def __init__(self, config: str | Config = "Qwen3-0.6B", tp_size: int = 1, tp_rank: int = 0) -> None:
        self.choose(config)
        self.set_ranks(tp_size, tp_rank)

    def choose(self, config: str | Config) -> None:
        """Take another model; ranks go back to the nearest that it can be cut for."""
        self.config = self.choices[config] if isinstance(config, str) else config
        self.name = config if isinstance(config, str) else "this model"
        self.tp_sizes = supported_tp_sizes(self.config)
        self.shapes = stored_shapes(self.config)
        # One tensor of each kind; they are alike in all layers. A sparse layer's first expert stands for all.
        self.examples = {role_of(key): key for key in reversed(self.shapes)}
        # All layers are alike: kinds of tensors, each with one example, and how often there are.
        kinds = Counter((role_of(key), shape) for key, shape in self.shapes.items())
        example_of = {(role_of(key), shape): key for key, shape in self.shapes.items()}
        self.kinds = [(example_of[kind], kind[1], times) for kind, times in kinds.items()]
        self.weight_bytes = sizes_of(self.config).weight_bytes
        tp_size = max(size for size in self.tp_sizes if size <= getattr(self, "tp_size", 1))
        self.set_ranks(tp_size, min(getattr(self, "tp_rank", 0), tp_size - 1))

    def set_ranks(self, tp_size: int, tp_rank: int) -> None:
        """Cut for ``tp_size`` ranks and look at ``tp_rank``.

        Raises:
            MinisglError: The model can't be cut for that many, or there is no such rank.
        """
        self.sharding = Sharding(self.config, tp_size, tp_rank)
        self.tp_size, self.tp_rank = tp_size, tp_rank

    def share(self, role: str, rank: int | None = None) -> Share:
        """Say what a rank holds of a tensor of this kind ("q", "k", "down", "vocab", …)."""
        key = self.examples[role]
        return self.sharding.share(key, self.shapes[key], rank)

    def heads(self, role: str, rank: int | None = None) -> range:
        """List the heads of q, k or v that a rank holds."""
        share, head_dim = self.share(role, rank), self.sharding.values["head_dim"]
        return range(share.start // head_dim, (share.start + share.size) // head_dim)

    def ranks_of_head(self, role: str, head: int) -> list[int]:
        """List the ranks that hold one head of q, k or v."""
        return [rank for rank in range(self.tp_size) if head in self.heads(role, rank)]

    @property
    def local_bytes(self) -> int:
        """Bytes of weights on this rank, padding included."""
        numbers = sum(times * self.sharding.local_size(key, shape) for key, shape, times in self.kinds)
        return numbers * DTYPE_BYTES[self.sharding.values["dtype"] or "bfloat16"]

    @property
    def num_replicated_params(self) -> int:
        """Numbers that this rank holds and another one holds too."""
        return sum(
            times * self.sharding.local_size(key, shape)
            for key, shape, times in self.kinds
            if self.sharding.share(key, shape).copies > 1
        )

    def summary(self) -> str:
        """Say in one line what this rank holds."""
        q, k, vocab = self.heads("q"), self.heads("k"), self.share("vocab")
        copies = self.share("k").copies
        replicated = f", each on {copies} ranks" if copies > 1 else ""
        padding = f" and {_rows_of_zeros(vocab.padding)}" if vocab.padding else ""
        return (
            f"rank {self.tp_rank} of {self.tp_size}: q heads {_span(q)}, k and v heads {_span(k)}{replicated}, "
            f"vocabulary rows {_span(range(vocab.start, vocab.start + vocab.size))}{padding}; "
            f"{mib(self.local_bytes)} of {mib(self.weight_bytes)}"
        )

    def describe(self) -> str:
        """Say in words what the picture shows."""
        values = self.sharding.values
        lines = [f"{self.name}, {self.summary()}."]
        lines.append(f"This model can be cut for {', '.join(map(str, self.tp_sizes))} ranks.")
        for role in ("q", "k", "v"):
            homes = [f"{head}: {_span(self.ranks_of_head(role, head))}" for head in range(self._num_heads(role))]
            lines.append(f"{role} heads, each with its ranks: {'; '.join(homes)}.")
        for role in ("o", "gate", "up", "down"):
            share = self.share(role)
            side = "columns" if share.dim == 1 else "rows"
            lines.append(f"{role}_proj: {side} {_span(range(share.start, share.start + share.size))}.")
        if values.get("num_experts"):
            lines.append(f"Each rank holds this part of every one of the {values['num_experts']} experts.")
        lines.append(
            f"Norms and the router are whole on every rank: {self.num_replicated_params:,} numbers are replicated."
        )
        return "\n".join(lines)

    def _num_heads(self, role: str) -> int:
        return self.sharding.values["num_qo_heads" if role == "q" else "num_kv_heads"]

    def picture(self) -> Picture:
        """Draw each tensor as a bar, cut where the ranks' parts meet, with this rank's part coloured."""
        roles = list(_ROWS)
        num_experts = self.sharding.values.get("num_experts", 0)
        picture = Picture(
            _WIDTH, 118 + (_ROW + 22) * len(roles) + (64 if num_experts else 0), f"{self.name}, {self.summary()}"
        )
        picture.text(8, 20, f"{self.name}: rank {self.tp_rank} of {self.tp_size}", size=16, bold=True)
        for number, line in enumerate(lines_of(self.summary(), _WIDTH - 16, 12.5)):
            picture.text(8, 42 + 17 * number, line, size=12.5)
        picture.text(
            8, 78, "coloured and framed: this rank's; outlined: another rank's; numbers above a bar: ranks", size=12
        )
        y = 106
        for role in roles:
            picture.text(_LEFT - 10, y + 17, ("expert " if num_experts and role in ("gate", "up", "down") else "") + _ROWS[role],
                         size=12, anchor="end")  # fmt: skip
            if role in ("q", "k", "v"):
                self._draw_heads(picture, role, y)
            else:
                self._draw_bar(picture, role, y)
            y += _ROW + 22
        if num_experts:
            self._draw_experts(picture, y, num_experts)
        return picture

    def _draw_heads(self, picture: Picture, role: str, y: float) -> None:
        count, mine = self._num_heads(role), self.heads(role)
        width = (_WIDTH - _LEFT - 20) / count
        for head in range(count):
            ranks = self.ranks_of_head(role, head)
            tip = f"{role} head {head}: on rank {_span(ranks)}"
            picture.box(
                _LEFT + head * width,
                y,
                width - 2,
                _ROW,
                role,
                str(head),
                strong=head in mine,
                faded=head not in mine,
                tip=tip,
            )
            label = ",".join(map(str, ranks)) if len(ranks) < 5 else _span(ranks)
            if len(label) * 6 < width:
                picture.text(_LEFT + head * width + width / 2, y - 4, label, size=10, anchor="middle")

    def _draw_bar(self, picture: Picture, role: str, y: float) -> None:
        key = self.examples[role]
        shares = [self.share(role, rank) for rank in range(self.tp_size)]
        dim = shares[0].dim or 0
        total = self.tp_size * (shares[0].size + shares[0].padding)
        scale = (_WIDTH - _LEFT - 20) / total
        for rank, share in enumerate(shares):
            held = share.size + share.padding
            x, width = _LEFT + rank * held * scale, held * scale
            tip = f"rank {rank}: {_span(range(share.start, share.start + share.size))} of {self.shapes[key][dim]:,}"
            mine = rank == self.tp_rank
            label = f"{share.start:,}–{share.start + share.size - 1:,}" if share.size else "padding"
            picture.box(x, y, width - 1, _ROW, role, label, strong=mine, faded=not mine, tip=tip)
            if share.padding:
                left = x + share.size * scale
                picture.rect(left, y, max(x + width - 1 - left, 3), _ROW, "#F0E442", hatch="x", tip=_rows_of_zeros(share.padding),
                             edge=INK if mine else FAINT)  # fmt: skip
                picture.text(x + width - 2, y + _ROW + 13, _rows_of_zeros(share.padding), size=10, anchor="end")
            if mine and text_width(label, 8) > width - 4:
                picture.text(x + width / 2, y + _ROW + 12, label, size=10, anchor="middle")
            if width > 12:
                picture.text(x + width / 2, y - 4, str(rank), size=10, anchor="middle")

    def _draw_experts(self, picture: Picture, y: float, num_experts: int) -> None:
        """One column an expert, cut across: every rank has a slice of each, not some experts whole."""
        picture.text(_LEFT - 10, y + 22, f"{num_experts} experts", size=12, anchor="end")
        width = (_WIDTH - _LEFT - 20) / num_experts
        slice_height = 40 / self.tp_size
        for expert in range(num_experts):
            x = _LEFT + expert * width
            picture.rect(x, y, max(width - 1, 1), 40, None, tip=f"expert {expert}")
            picture.rect(x, y + self.tp_rank * slice_height, max(width - 1, 1), slice_height, "#56B4E9", edge=INK, edge_width=0.5,
                         tip=f"expert {expert}: this rank's slice")  # fmt: skip

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()


def _span(numbers: range | list[int]) -> str:
    if not numbers:
        return "none"
    first, last = numbers[0], numbers[-1]
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"


def _rows_of_zeros(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''} of zeros"

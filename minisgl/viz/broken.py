"""The break-it lab's model: what a healthy model says, and what the same weights say after one mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from minisgl.errors import MinisglError
from minisgl.viz.breaks import BREAKS, broken_copy
from minisgl.viz.drawing import BLUE, VERMILLION, Picture, lines_of
from minisgl.viz.needs import NotWrittenYet, need_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _COLUMN, _TOP_TOKENS = 900, 435, 5


@dataclass(frozen=True)
class Voice:
    """What one model says.

    Attributes:
        text: Its greedy continuation of the prompt.
        top: The likeliest next tokens with their logits, best first.
        logits: float32 [vocab_size], of the token after the prompt.
    """

    text: str
    top: list[tuple[str, float]]
    logits: torch.Tensor


class BreakItModel:
    """Load a model once, then compare it with broken copies of itself.

    Args:
        model_path: A model's folder or a tiny model's name; default: SmolLM2 where it has been fetched, else a tiny model.
        kind: A key of ``BREAKS``.
        prompt: What both continue.
        max_new_tokens: How far.

    Attributes:
        choices: The mistakes that this model can have; before it is loaded, all.
        healthy: What the healthy model says; None before ``run``.
        broken: What the broken one says; None before ``run``.
    """

    def __init__(
        self, model_path: str | Path | None = None, *, kind: str = "swap_qkv", prompt: str = "The capital of France is",
        max_new_tokens: int = 16,
    ) -> None:  # fmt: skip
        if kind not in BREAKS:
            raise MinisglError(
                f"there is no mistake {kind!r}. Expected one of {', '.join(BREAKS)}. Choose one of these."
            )
        self.model_path = str(model_path) if model_path else default_model()
        self.kind, self.prompt, self.max_new_tokens = kind, prompt, max_new_tokens
        self.choices = tuple(BREAKS)
        self.healthy: Voice | None = None
        self.broken: Voice | None = None
        self._heard: dict[tuple[str, int], Voice] = {}
        self._engine: Any = None
        self._tokenizer: Any = None

    @property
    def name(self) -> str:
        """The model's short name."""
        return Path(self.model_path).name

    def change(self, **what: Any) -> None:
        """Set kind, prompt or max_new_tokens; what was computed no longer counts."""
        for name, value in what.items():
            setattr(self, name, value)
        self.healthy = self.broken = None

    def load(self) -> None:
        """Load the healthy model; does nothing when it is there.

        Raises:
            NotWrittenYet: A module that the engine needs isn't ready.
            MinisglError: There is no such model.
        """
        if self._engine is not None:
            return
        engine_class = need_written("engine", "Engine")
        from transformers import AutoTokenizer

        folder = need_written("utils", "download_hf_weight")(self.model_path)
        try:
            self._engine = engine_class(folder, progress=False)
        except MinisglError:
            raise
        except Exception as error:  # whatever a half-written module raises
            raise NotWrittenYet(
                f"loading {self.name} stopped with {type(error).__name__}: {error}. Expected a model that talks. "
                f"Run the checks of the earlier chapters, then run this again."
            ) from error
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self.choices = tuple(kind for kind, broken in BREAKS.items() if broken.applies(self._engine.config))

    def run(self) -> None:
        """Let both continue the prompt; raises what ``load`` does."""
        self.load()
        other = broken_copy(self._engine, self.kind)
        with _one_thread():
            self.broken = self._listen(other)
            asked = (self.prompt, self.max_new_tokens)
            if asked not in self._heard:
                self._heard[asked] = self._listen(self._engine)
            self.healthy = self._heard[asked]

    def _listen(self, engine: Any) -> Voice:
        tokens = self._tokenizer(self.prompt)["input_ids"]
        logits = engine.logits([tokens])[0].float()
        answer = engine.generate([tokens], self.max_new_tokens)[0]
        values, ids = logits.topk(_TOP_TOKENS)
        top = [
            (self._tokenizer.decode([token]), value) for token, value in zip(ids.tolist(), values.tolist(), strict=True)
        ]
        return Voice(self._tokenizer.decode(answer, skip_special_tokens=True), top, logits)

    @property
    def largest_difference(self) -> float:
        """Largest difference between two logits of the next token."""
        assert self.healthy and self.broken, "run first"
        return (self.healthy.logits - self.broken.logits).abs().max().item()

    @property
    def rank_in_broken(self) -> int:
        """Place of the healthy model's first choice in the broken one's order, from 1."""
        assert self.healthy and self.broken, "run first"
        token = self.healthy.logits.argmax()
        return int((self.broken.logits > self.broken.logits[token]).sum()) + 1

    def summary(self) -> str:
        """Say the result in one line."""
        if not self.healthy or not self.broken:
            return f"{self.name}: {BREAKS[self.kind].label}. Press Run"
        if self.healthy.text == self.broken.text:
            return f"the same words, but logits differ by up to {self.largest_difference:.3f}: such a mistake is silent"
        return (
            f"the text falls apart: logits differ by up to {self.largest_difference:.2f}, and the healthy model's first choice "
            f"is the broken one's number {self.rank_in_broken:,}"
        )

    def describe(self) -> str:
        """Say in words what the picture shows."""
        broken = BREAKS[self.kind]
        lines = [f"Break it, {self.name}, {broken.label}. {broken.why} {self.summary()}.", f"Prompt: {self.prompt}"]
        for title, voice in (("Healthy", self.healthy), ("Broken", self.broken)):
            if voice:
                top = ", ".join(f"{token!r} {value:.2f}" for token, value in voice.top)
                lines += [f"{title}: {voice.text!r}", f"  likeliest next tokens and their logits: {top}"]
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw both texts and both models' likeliest next tokens side by side."""
        picture = Picture(_WIDTH, 340, f"Break it, {self.name}: {self.summary()}")
        picture.text(8, 20, f"{self.name}: {BREAKS[self.kind].label}", size=16, bold=True)
        picture.text(8, 42, BREAKS[self.kind].why, size=12)
        for index, (title, voice) in enumerate((("healthy", self.healthy), ("broken", self.broken))):
            x, color = 8 + index * (_COLUMN + 20), (BLUE, VERMILLION)[index]
            picture.rect(x, 56, _COLUMN, 270, None, edge=color, edge_width=2)
            picture.text(x + 12, 78, ("✓ " if index == 0 else "✕ ") + title, size=15, bold=True)
            text = f"{self.prompt} ▸ {voice.text}" if voice else "press Run"
            for line_number, line in enumerate(lines_of(text.replace("\n", "⏎"), _COLUMN - 24, 13)[:5]):
                picture.text(x + 12, 102 + 19 * line_number, line, size=13)
            if voice:
                _draw_top(picture, voice, x + 12, 206, color)
        return picture

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()


def _draw_top(picture: Picture, voice: Voice, x: float, y: float, color: str) -> None:
    picture.text(x, y, "likeliest next tokens, logit", size=12, bold=True)
    values = [value for _, value in voice.top]
    low = min(values) - 0.25 * (max(values) - min(values) + 1e-6)
    for index, (token, value) in enumerate(voice.top):
        line = y + 20 * (index + 1)
        picture.text(x + 120, line, repr(token)[:18], size=12, anchor="end")
        picture.rect(x + 130, line - 11, 210 * (value - low) / (max(values) - low), 14, color)
        picture.text(x + 346, line, f"{value:.2f}", size=12)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: a small model gains little from more, and loses much when they share busy cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def default_model() -> str:
    """Name the model to break: SmolLM2's folder where it has been fetched, else a tiny model."""
    from minisgl.hub import cache_folder
    from minisgl.hub.smollm2 import MODEL_NAME

    folder = cache_folder() / MODEL_NAME
    return str(folder) if (folder / "config.json").is_file() else "tiny-qwen3"

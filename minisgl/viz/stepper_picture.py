"""Draw the merge stepper: the files, what each algorithm is assembling, and the bytes that it holds over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minisgl.viz.drawing import BLUE, FAINT, INK, VERMILLION, Picture, mib, text_width
from minisgl.viz.layout import role_of

if TYPE_CHECKING:
    from minisgl.viz.stepper import Step, StepperModel

_WIDTH, _COLUMN = 900, 440
_COLOR = {"file order": VERMILLION, "by parameter": BLUE}
_DASH = {"file order": "dashed", "by parameter": ""}
_MAX_GROUPS = 6
_LEGEND = {
    "q": "q", "k": "k", "v": "v", "o": "o", "gate": "gate", "up": "up", "down": "down", "vocab": "vocabulary",
    "norm": "norm", "router": "router",
}  # fmt: skip


def draw_stepper(model: StepperModel) -> Picture:
    """Put the two algorithms side by side, over a chart of both."""
    rows = max(len(in_file) for in_file in model.files)
    per_line = 40
    lines = sum(-(-len(in_file) // per_line) for in_file in model.files) if rows > per_line else len(model.files)
    strip_height = lines * 18 + 44
    picture = Picture(_WIDTH, 60 + strip_height + 220 + 190, f"Merge stepper: {model.summary()}")
    roles = {role_of(key) for key in model.shapes}
    picture.legend(8, 18, {role: label for role, label in _LEGEND.items() if role in roles})
    for index, algorithm in enumerate(("file order", "by parameter")):
        x = 8 + index * (_COLUMN + 10)
        picture.text(x, 48, algorithm, size=16, bold=True, color=INK)
        note = "parts wait in buffers, then are copied" if index == 0 else "planned ahead, read into place"
        picture.text(x + text_width(algorithm, 16) * 1.15 + 16, 48, note, size=12)
        _files(picture, model, algorithm, x, 60, per_line)
        _assembling(picture, model, algorithm, x, 60 + strip_height)
    _chart(picture, model, 60 + strip_height + 220)
    return picture


def _files(picture: Picture, model: StepperModel, algorithm: str, x: float, y: float, per_line: int) -> None:
    """One strip a file (more where it is long), a cell a tensor: coloured once read, framed while it is being read."""
    steps = model.steps[algorithm]
    done = {step.key for step in steps[: model.position]}
    current = steps[model.position - 1].key if model.position else None
    longest = min(per_line, max(len(in_file) for in_file in model.files))
    cell = min(36.0, (_COLUMN - 62) / longest)
    picture.text(x, y + 12, "read so far", size=11)
    y += 18
    for number, in_file in enumerate(model.files, 1):
        picture.text(x, y + 12, f"file {number}", size=11)
        for index, key in enumerate(in_file):
            left, top = x + 50 + (index % per_line) * cell, y + (index // per_line) * 18
            role = role_of(key)
            picture.box(
                left, top, cell - 1, 15, role, role if cell > 24 else "", strong=key == current, faded=key not in done,
                tip=f"{key} {list(model.shapes[key])}, {mib(model.local_bytes(key))}",
            )  # fmt: skip
        y += -(-len(in_file) // per_line) * 18


def _assembling(picture: Picture, model: StepperModel, algorithm: str, x: float, y: float) -> None:
    step: Step | None = model.steps[algorithm][model.position - 1] if model.position else None
    held = model.held_bytes(algorithm)
    picture.text(x, y, f"holds {mib(held)} now, at most {mib(model.peak_bytes(algorithm))}", size=14, bold=True)
    picture.text(x, y + 20, f"reads {step.key}" if step else "nothing read yet", size=12)
    picture.text(x, y + 37, step.action if step else "press play or step", size=12)
    handed_out = model.yielded(algorithm)
    done = f"handed out: {len(handed_out)} of {len(model.groups)} parameters"
    picture.text(x, y + 56, done, size=12)
    groups = dict(step.assembling) if step else {}
    picture.text(
        x, y + 78, f"assembling {len(groups)} parameters" if groups else "assembling nothing", size=12, bold=True
    )
    for index, (param, there) in enumerate(list(groups.items())[:_MAX_GROUPS]):
        _group(picture, model, param, there, x, y + 86 + index * 20)
    if len(groups) > _MAX_GROUPS:
        picture.text(x, y + 100 + _MAX_GROUPS * 20, f"… and {len(groups) - _MAX_GROUPS} more", size=11)


def _group(picture: Picture, model: StepperModel, param: str, there: tuple[str, ...], x: float, y: float) -> None:
    parts = model.groups[param]
    width = min(34.0, 190 / len(parts))
    for index, key in enumerate(parts):
        role = role_of(key)
        picture.box(
            x + index * width, y, width - 1, 15, role, role if width > 24 else "", faded=key not in there, tip=key
        )
    picture.text(x + len(parts) * width + 8, y + 12, param, size=11)


def _chart(picture: Picture, model: StepperModel, y: float) -> None:
    """Bytes held after each step, as two lines that differ in colour and dash, with a cursor at the position."""
    left, width, height = 90.0, _WIDTH - 110.0, 130.0
    # The vocabulary's one big tensor costs both the same; at its scale nothing else would be seen.
    levels = [step.peak_bytes for steps in model.steps.values() for step in steps if role_of(step.key) != "vocab"]
    top = max(levels) * 1.05
    highest = max(model.peak_bytes(algorithm) for algorithm in model.steps)
    cut = f" (cut off: the vocabulary takes {mib(highest)} in both)" if highest > top else ""
    picture.text(8, y, f"bytes that the loader itself holds, at its most in each step{cut}", size=13, bold=True)
    y += 16
    for share in (0, 0.5, 1):
        line_y = y + height * (1 - share)
        picture.line([(left, line_y), (left + width, line_y)], FAINT, width=0.7)
        picture.text(left - 6, line_y + 4, mib(top * share), size=11, anchor="end")
    for algorithm, steps in model.steps.items():
        points = [(left, y + height)]
        for index, step in enumerate(steps):
            x0, x1 = (left + width * at / len(steps) for at in (index, index + 1))
            level = y + height * (1 - min(1, step.peak_bytes / top))
            points += [(x0, level), (x1, level)]
        picture.line(points, _COLOR[algorithm], width=2, dash=_DASH[algorithm])
    cursor = left + width * model.position / model.num_steps
    picture.line([(cursor, y - 4), (cursor, y + height + 4)], INK, width=2)
    picture.text(left, y + height + 18, "first tensor", size=11)
    picture.text(left + width, y + height + 18, "last tensor", size=11, anchor="end")
    x = left + 230
    for algorithm in model.steps:
        picture.line(
            [(x, y + height + 14), (x + 34, y + height + 14)], _COLOR[algorithm], width=2.5, dash=_DASH[algorithm]
        )
        picture.text(x + 40, y + height + 18, algorithm, size=12)
        x += 170

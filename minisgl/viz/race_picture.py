"""Draw a memory race: anonymous and file-backed memory against time, and the peaks, predicted and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from minisgl.viz.drawing import BLUE, FAINT, GREEN, GREY, INK, ORANGE, VERMILLION, Picture, mib, text_width

if TYPE_CHECKING:
    from minisgl.viz.race import RaceModel
    from minisgl.viz.race_lane import Lane

_WIDTH, _LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 900, 88, 64, 780, 250
_COLOR = {"everything": VERMILLION, "merge": ORANGE, "ours": BLUE, "student": GREEN}
_LETTER = {"everything": "A", "merge": "B", "ours": "C", "student": "D"}
_DASH = {"everything": "", "merge": "dashed", "ours": "", "student": "dashed"}
_MAX_POINTS = 240
_COLUMNS = ((8, "lane"), (190, "progress"), (308, "state"), (380, "predicted"), (462, "measured peak"), (608, "counted"),
            (688, "kernel's mark (predicted)"))  # fmt: skip


def draw_race(model: RaceModel) -> Picture:
    """Put the chart over the table of lanes."""
    lanes = list(model.lanes.values())
    picture = Picture(
        _WIDTH, _TOP + _PLOT_HEIGHT + 70 + 26 * max(len(lanes), 1) + 40, f"Memory race: {model.summary()}"
    )
    settings = model.settings
    picture.text(8, 20, f"{settings.checkpoint}, rank {settings.tp_rank} of {settings.tp_size}", size=16, bold=True)
    kept = "Parameters are kept" if settings.keep else "Parameters are dropped when handed out"
    picture.text(
        8,
        42,
        f"memory above the start. Thick: anonymous, must stay. Dotted: file-backed, can be dropped. {kept}.",
        size=12,
    )
    _draw_chart(picture, model, lanes)
    _draw_table(picture, lanes, _TOP + _PLOT_HEIGHT + 56)
    return picture


def _draw_chart(picture: Picture, model: RaceModel, lanes: list[Lane]) -> None:
    sizes = [lane.prediction.anonymous_bytes for lane in lanes if lane.status != "too large"]
    sizes += [lane.measured_bytes or 0 for lane in lanes]
    sizes += [sample[2] or 0 for lane in lanes for sample in lane.samples]
    size = model.stored.num_bytes if model.stored else 2**20
    top = 1.12 * max([size if size < 4 * max(sizes, default=size) else 1, *sizes])
    duration = max(model.duration_s, 0.1)
    bottom = _TOP + _PLOT_HEIGHT

    def place(seconds: float, num_bytes: float) -> tuple[float, float]:
        return _LEFT + _PLOT_WIDTH * seconds / duration, bottom - _PLOT_HEIGHT * max(0.0, num_bytes) / top

    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - _PLOT_HEIGHT * share
        picture.line([(_LEFT, y), (_LEFT + _PLOT_WIDTH, y)], FAINT, width=0.6)
        picture.text(_LEFT - 6, y + 4, mib(top * share), size=11, anchor="end")
        picture.text(_LEFT + _PLOT_WIDTH * share, bottom + 16, f"{duration * share:.2f} s", size=11, anchor="middle")
    if size <= top:
        picture.line([place(0, size), place(duration, size)], INK, width=1.2, dash="dashed")
        picture.text(_LEFT + 6, place(0, size)[1] - 5, f"checkpoint {mib(size)}", size=12)
    for lane in lanes:
        _draw_lane(picture, lane, place, model.replay_s)
    if model.replay_s is not None:
        x = place(min(model.replay_s, duration), 0)[0]
        picture.line([(x, _TOP), (x, bottom)], INK, width=1.5)


def _draw_lane(
    picture: Picture, lane: Lane, place: Callable[[float, float], tuple[float, float]], until_s: float | None
) -> None:
    samples = [sample for sample in lane.samples if until_s is None or sample[0] <= until_s]
    color = _COLOR[lane.strategy]
    mapped = [(sample[0], sample[2]) for sample in samples if sample[2] is not None]
    anonymous = [(sample[0], sample[1] if sample[1] is not None else sample[3]) for sample in samples]
    if mapped:
        picture.line([place(*point) for point in thin(mapped)], color, width=1.6, dash="dotted")
    if not anonymous:
        return
    picture.line([place(*point) for point in thin(anonymous)], color, width=2.6, dash=_DASH[lane.strategy])
    x, y = place(*max(anonymous, key=lambda point: point[1]))
    _draw_mark(picture, lane.strategy, x, y - 10)


def _draw_mark(picture: Picture, strategy: str, x: float, y: float) -> None:
    picture.rect(x - 8, y - 9, 16, 16, _COLOR[strategy], edge="none")
    picture.text(
        x,
        y + 4,
        _LETTER[strategy],
        size=12,
        anchor="middle",
        bold=True,
        color="#ffffff" if strategy != "merge" else "#000000",
    )


def thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep at most a few hundred points of a curve, with the highest and the lowest of every stretch."""
    if len(points) <= 2 * _MAX_POINTS:
        return list(points)
    step = -(-len(points) // _MAX_POINTS)
    kept: list[tuple[float, float]] = []
    for start in range(0, len(points), step):
        stretch = points[start : start + step]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return [*kept, points[-1]]


def _draw_table(picture: Picture, lanes: list[Lane], y: float) -> None:
    for x, head in _COLUMNS:
        picture.text(x, y, head, size=12, bold=True)
    for index, lane in enumerate(lanes):
        line = y + 26 * (index + 1)
        _draw_mark(picture, lane.strategy, 16, line - 4)
        picture.text(30, line, lane.label, size=12.5)
        done = min(1.0, lane.done_bytes / lane.total_bytes) if lane.total_bytes else 0.0
        picture.rect(190, line - 12, 78, 14, None)
        picture.rect(190, line - 12, 78 * done, 14, _COLOR[lane.strategy])
        picture.text(272, line, f"{done:.0%}", size=11)
        picture.text(308, line, lane.status, size=12)
        if lane.message:
            room = int(500 / text_width("x", 11))
            picture.text(
                380, line, lane.message if len(lane.message) <= room else lane.message[: room - 1] + "…", size=11
            )
            continue
        picture.text(380, line, mib(lane.prediction.anonymous_bytes), size=12.5)
        measured = lane.measured_bytes
        if measured is not None:
            off = f" ({measured / lane.prediction.anonymous_bytes - 1:+.1%})" if lane.status == "finished" else ""
            picture.text(462, line, mib(measured) + off, size=12.5)
        if lane.counted_bytes is not None:
            picture.text(608, line, mib(lane.counted_bytes), size=12.5)
        if lane.kernel_bytes is not None:
            picture.text(688, line, f"{mib(lane.kernel_bytes)} ({mib(lane.prediction.resident_bytes)})", size=12.5)
    if not lanes:
        picture.text(8, y + 26, "no race yet: press start", size=13, color=GREY)

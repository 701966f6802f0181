"""Draw a memory race: one bar and one line for each lane, all on one scale of memory, and no axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minisgl.viz.drawing import BLUE, FAINT, INK, VERMILLION, Picture, lines_of, mib, round_ticks

if TYPE_CHECKING:
    from minisgl.viz.race import RaceModel
    from minisgl.viz.race_lane import Lane

_WIDTH, _LEFT, _BAR, _LINE, _ROW = 720, 200, 290, 190, 62
_MAX_POINTS = 120


def draw_race(model: RaceModel) -> Picture:
    """Put a row for each lane under one scale; dashed outlines are predictions, which are there before the start."""
    lanes = list(model.lanes.values())
    picture = Picture(_WIDTH, 92 + _ROW * max(len(lanes), 1), f"Memory race: {model.summary()}")
    settings = model.settings
    size = f", {mib(model.stored.num_bytes)}" if model.stored else ""
    ranks = f", rank {settings.tp_rank} of {settings.tp_size}" if settings.tp_size > 1 else ""
    picture.text(8, 20, f"{settings.checkpoint}{size}{ranks}", size=16, bold=True)
    kept = "what is handed out stays in memory" if settings.keep else "what is handed out leaves memory at once"
    picture.text(8, 40, f"Own memory of each loader: dashed as predicted, filled as measured; {kept}.", size=12)
    top = _top(model, lanes)
    for tick in round_ticks(top, 3):
        x = _LEFT + _BAR * tick / top
        picture.line([(x, 66), (x, 74 + _ROW * len(lanes))], FAINT, width=0.6)
        picture.text(x, 62, mib(tick), size=12, anchor="middle")
    picture.text(_LEFT + _BAR + 20, 62, "from its first to its last moment", size=12)
    for index, lane in enumerate(lanes):
        _draw_lane(picture, lane, 76 + _ROW * index, top, model)
    if not lanes:
        picture.text(8, 90, "no race yet: press start", size=13)
    return picture


def _top(model: RaceModel, lanes: list[Lane]) -> float:
    """The end of the scale; a lane that is never started doesn't stretch it."""
    sizes = [lane.prediction.anonymous_bytes for lane in lanes if lane.status != "too large"]
    return 1.05 * max([2**20, *sizes, *(lane.measured_bytes or 0 for lane in lanes)])


def _draw_lane(picture: Picture, lane: Lane, y: float, top: float, model: RaceModel) -> None:
    scale, predicted, measured = _BAR / top, lane.prediction.anonymous_bytes, lane.measured_bytes
    own = [(at, anonymous if anonymous is not None else resident) for at, anonymous, _, resident, _ in lane.samples]
    if model.replay_s is not None:
        own = [point for point in own if point[0] <= model.replay_s]
    picture.text(_LEFT - 10, y + 17, lane.label, size=13, anchor="end", bold=True)
    if own:
        color = VERMILLION if holds_everything(lane, model) else BLUE
        picture.rect(_LEFT, y + 3, max(0, max(size for _, size in own)) * scale, 18, color, edge="none")
    width = min(predicted * scale, _BAR + 8)
    ghost = [(_LEFT, y), (_LEFT + width, y), (_LEFT + width, y + 24), (_LEFT, y + 24), (_LEFT, y)]
    picture.line(ghost, INK, width=1.2, dash="dashed")
    text = f"predicted {mib(predicted)}" + (f", measured {mib(measured)}" if measured is not None else "")
    if lane.message:
        text = lines_of(lane.message, _WIDTH - _LEFT - 10, 12)[0]
    elif holds_everything(lane, model):
        text += ": it holds every parameter at once"
    picture.text(_LEFT, y + 40, f"{lane.status}: {text}", size=12)
    _draw_course(picture, lane, own, y, top)


def _draw_course(picture: Picture, lane: Lane, own: list[tuple[float, int]], y: float, top: float) -> None:
    left, duration = _LEFT + _BAR + 20, lane.duration_s or 1.0
    picture.line([(left, y + 24), (left + _LINE, y + 24)], FAINT, width=0.8)
    level = y + 24 - 24 * min(1, lane.prediction.anonymous_bytes / top)
    picture.line([(left, level), (left + _LINE, level)], INK, width=1, dash="dashed")
    if own:
        points = [(left + _LINE * at / duration, y + 24 - 24 * max(0, size) / top) for at, size in own]
        picture.line(thin(points), BLUE, width=2)


def holds_everything(lane: Lane, model: RaceModel) -> bool:
    """Tell whether a loader that should hand on each parameter held nearly the whole model."""
    if lane.strategy != "student" or model.settings.keep or model.stored is None or lane.measured_bytes is None:
        return False
    return lane.measured_bytes > 0.7 * sum(model.stored.param_bytes().values())


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

"""One picture, two ways to show it: SVG that follows the notebook's theme, or a matplotlib figure to store.

The labs draw with rectangles, lines and text in pixels (y grows downwards). Colours are Okabe and Ito's, which stay
apart for colour-blind readers, and every coloured area also has a hatch or a label, so that colour is never the only sign.

Source: Okabe and Ito, Color Universal Design, https://jfly.uni-koeln.de/color/.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW, GREY, PALE = "#56B4E9", "#CC79A7", "#F0E442", "#8C8C8C", "#C8C8C8"
INK = "ink"  # the theme's own text colour
FAINT = "faint"  # the theme's own line colour

# What a tensor is -> its colour and hatch, the same in every lab.
STYLE_OF = {
    "q": (BLUE, ""),
    "k": (ORANGE, "/"),
    "v": (GREEN, "\\"),
    "o": (PURPLE, ""),
    "gate": (SKY, ""),
    "up": (YELLOW, "."),
    "down": (VERMILLION, "x"),
    "vocab": (GREY, ""),
    "norm": (PALE, ""),
    "router": (PALE, "x"),
}

_SVG_COLOR = {INK: "var(--jp-ui-font-color1, currentColor)", FAINT: "var(--jp-border-color1, #999)"}
_FIGURE_COLOR = {INK: "#1a1a1a", FAINT: "#8a8a8a"}
_HATCH_PATHS = {
    "/": "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4",
    "\\": "M-2,6 l4,4 M0,0 l8,8 M6,-2 l4,4",
    "x": "M0,8 l8,-8 M0,0 l8,8",
    "-": "M0,4 l8,0",
    "|": "M4,0 l0,8",
    ".": "M3,3 h2 v2 h-2 z",
}
_DASH = {"": "", "dashed": "7 4", "dotted": "2 3"}
_picture_ids = count()


@dataclass
class Picture:
    """Collect shapes, in drawing order, on a canvas of ``width`` × ``height`` pixels.

    ``title`` says in one sentence what there is to see; screen readers read it instead of the picture.
    """

    width: float
    height: float
    title: str
    shapes: list[dict[str, Any]] = field(default_factory=list)

    def rect(
        self, x: float, y: float, w: float, h: float, fill: str | None, *, hatch: str = "", edge: str = FAINT,
        edge_width: float = 1.0, tip: str = "",
    ) -> None:  # fmt: skip
        """Draw a rectangle; ``tip`` shows when the mouse rests on it."""
        self.shapes.append(
            dict(kind="rect", x=x, y=y, w=w, h=h, fill=fill, hatch=hatch, edge=edge, edge_width=edge_width, tip=tip)
        )

    def text(
        self, x: float, y: float, text: str, *, size: float = 13, anchor: str = "start", bold: bool = False,
        color: str = INK,
    ) -> None:  # fmt: skip
        """Write a line of text with its baseline at ``y``; ``anchor`` is start, middle or end."""
        self.shapes.append(dict(kind="text", x=x, y=y, text=text, size=size, anchor=anchor, bold=bold, color=color))

    def line(
        self, points: list[tuple[float, float]], color: str = INK, *, width: float = 1.5, dash: str = "", tip: str = ""
    ) -> None:
        """Draw a line through points; ``dash`` is "", dashed or dotted."""
        self.shapes.append(dict(kind="line", points=points, color=color, width=width, dash=dash, tip=tip))

    def box(
        self, x: float, y: float, w: float, h: float, role: str, label: str = "", *, strong: bool = False,
        faded: bool = False, tip: str = "",
    ) -> None:  # fmt: skip
        """Draw a rectangle in the style of ``STYLE_OF[role]`` with a label in its middle, where there is room for it."""
        fill, hatch = STYLE_OF[role]
        if faded:
            self.rect(x, y, w, h, None, tip=tip)
        else:
            edge, edge_width = (INK, 2.5) if strong else (FAINT, 1.0)
            self.rect(x, y, w, h, fill, hatch=hatch, edge=edge, edge_width=edge_width, tip=tip)
        size = min(13.0, h * 0.62, (w - 3) / text_width(label or "x", 1))
        if label and size >= (10 if faded else 8):
            color = INK if faded else ink_on(fill)
            if hatch and not faded:  # a plain ground under the letters
                ground = text_width(label, size) + 4
                self.rect(x + (w - ground) / 2, y + h / 2 - size * 0.62, ground, size * 1.24, fill, edge="none")
            self.text(x + w / 2, y + h / 2 + size * 0.36, label, size=size, anchor="middle", color=color)

    def legend(self, x: float, y: float, roles: dict[str, str]) -> None:
        """Draw a row of small boxes (role -> label)."""
        for role, label in roles.items():
            self.box(x, y - 11, 18, 13, role)
            self.text(x + 23, y, label, size=12)
            x += 36 + text_width(label, 12)

    def to_svg(self) -> str:
        """Give the picture as an SVG element that scales to the width of its place."""
        prefix = f"minisgl-{next(_picture_ids)}"
        hatches = sorted({(s["hatch"], s["fill"]) for s in self.shapes if s["kind"] == "rect" and s["hatch"]})
        ids = {key: f"{prefix}-{index}" for index, key in enumerate(hatches)}
        defs = "".join(_svg_pattern(ids[key], *key) for key in hatches)
        body = "".join(_svg_shape(shape, ids) for shape in self.shapes)
        return (
            f'<svg role="img" aria-label="{escape(self.title, quote=True)}" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'style="width:100%;max-width:{self.width:g}px;height:auto;display:block;'
            f'font-family:var(--jp-ui-font-family, sans-serif)" xmlns="http://www.w3.org/2000/svg">'
            f"<defs>{defs}</defs>{body}</svg>"
        )

    def to_figure(self) -> Figure:
        """Give the picture as a matplotlib figure, on white so that it reads in any theme.

        Raises:
            MissingWidgets: matplotlib isn't installed.
        """
        from minisgl.viz.static import draw_figure

        return draw_figure(self, _FIGURE_COLOR)


def text_width(text: str, size: float) -> float:
    """Estimate how many pixels a text of this font size takes."""
    return 0.62 * size * len(text)


def lines_of(text: str, width: float, size: float) -> list[str]:
    """Break a text at its spaces into lines of at most ``width`` pixels; a longer word is cut."""
    room, lines = max(1, int(width / text_width("x", size))), [""]
    for word in text.split(" "):
        while len(word) > room:
            lines.append(word[:room])
            word = word[room:]
        if lines[-1] and len(lines[-1]) + len(word) + 1 > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return [line for line in lines if line]


def ink_on(fill: str) -> str:
    """Choose black or white, whichever reads better on a colour."""
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else "#ffffff"


def round_ticks(top: float, count: int) -> list[float]:
    """List about ``count`` round values in MiB steps of 1, 2 or 5 times a power of ten, from 0 to ``top`` bytes."""
    wanted = top / 2**20 / count
    power = 10.0 ** math.floor(math.log10(wanted))
    step = 2**20 * next(power * times for times in (1, 2, 5, 10) if power * times >= wanted)
    return [step * index for index in range(int(top / step) + 1)]


def mib(num_bytes: float) -> str:
    """Write bytes for people: B, KiB, MiB or GiB with three digits."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(num_bytes) >= size:
            value = num_bytes / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{num_bytes:.0f} B"


def _svg_pattern(name: str, hatch: str, fill: str) -> str:
    return (
        f'<pattern id="{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" fill="{fill}"/>'
        f'<path d="{_HATCH_PATHS[hatch]}" stroke="{ink_on(fill)}" stroke-opacity="0.55" fill="none"/></pattern>'
    )


def _svg_shape(shape: dict[str, Any], ids: dict[tuple[str, str], str]) -> str:
    tip = f"<title>{escape(shape['tip'])}</title>" if shape.get("tip") else ""
    if shape["kind"] == "rect":
        fill = f"url(#{ids[shape['hatch'], shape['fill']]})" if shape["hatch"] else shape["fill"] or "transparent"
        edge = _SVG_COLOR.get(shape["edge"], shape["edge"])
        return (
            f'<rect x="{shape["x"]:.1f}" y="{shape["y"]:.1f}" width="{max(shape["w"], 0):.1f}" '
            f'height="{max(shape["h"], 0):.1f}" fill="{fill}" '
            f'style="stroke:{edge};stroke-width:{shape["edge_width"]}">{tip}</rect>'
        )
    color = _SVG_COLOR.get(shape["color"], shape["color"])
    if shape["kind"] == "line":
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape["points"])
        return (
            f'<polyline points="{points}" style="fill:none;stroke:{color};stroke-width:{shape["width"]};'
            f'stroke-dasharray:{_DASH[shape["dash"]]}">{tip}</polyline>'
        )
    weight = ";font-weight:600" if shape["bold"] else ""
    return (
        f'<text x="{shape["x"]:.1f}" y="{shape["y"]:.1f}" text-anchor="{shape["anchor"]}" '
        f'style="fill:{color};font-size:{shape["size"]:g}px{weight}">{escape(shape["text"])}</text>'
    )

"""Draw a picture with matplotlib, for notebooks that are read without a kernel."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from minisgl.viz.needs import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from minisgl.viz.drawing import Picture

_PIXELS_PER_INCH = 96
_POINTS_PER_PIXEL = 72 / _PIXELS_PER_INCH
_ALIGN = {"start": "left", "middle": "center", "end": "right"}
_LINE_STYLE = {"": "-", "dashed": "--", "dotted": ":"}
_HATCH = {"": None, "/": "////", "\\": "\\\\\\\\", "x": "xxx", "-": "---", "|": "|||", ".": "..."}


def draw_figure(picture: Picture, colors: dict[str, str]) -> Figure:
    """Draw a picture on a figure of its own; pyplot and its global state aren't touched.

    Args:
        picture: What to draw.
        colors: What stands for the theme's colours.
    """
    figure = _figure_class()(
        figsize=(picture.width / _PIXELS_PER_INCH, picture.height / _PIXELS_PER_INCH),
        dpi=_PIXELS_PER_INCH,
        facecolor="white",
    )
    figure.alternative = picture.title
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    for shape in picture.shapes:
        _draw_shape(axes, shape, colors)
    return figure


def _figure_class() -> Any:
    base: Any = need("matplotlib.figure", "the stored picture").Figure

    class StaticFigure(base):  # type: ignore[misc]
        """Show itself as a PNG with its sentence as the text alternative, whatever backend is set."""

        alternative = ""

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=1.5 * _PIXELS_PER_INCH)
            return {"image/png": buffer.getvalue(), "text/plain": self.alternative}

    return StaticFigure


def _draw_shape(axes: Any, shape: dict[str, Any], colors: dict[str, str]) -> None:
    patches, lines = need("matplotlib.patches", "the stored picture"), need("matplotlib.lines", "the stored picture")
    if shape["kind"] == "rect":
        fill = shape["fill"] or "none"
        style = {"facecolor": fill, "linewidth": shape["edge_width"] * _POINTS_PER_PIXEL}
        if shape["hatch"]:  # matplotlib draws a hatch in the edge's colour, so the edge is drawn again on top
            hatch = _HATCH[shape["hatch"]]
            axes.add_patch(
                patches.Rectangle(
                    (shape["x"], shape["y"]), shape["w"], shape["h"], hatch=hatch, edgecolor="#00000088", facecolor=fill,
                    linewidth=0,
                )
            )  # fmt: skip
            style["facecolor"] = "none"
        edge = colors.get(shape["edge"], shape["edge"])
        axes.add_patch(patches.Rectangle((shape["x"], shape["y"]), shape["w"], shape["h"], edgecolor=edge, **style))
    elif shape["kind"] == "line":
        xs, ys = zip(*shape["points"], strict=True) if shape["points"] else ((), ())
        color, width = colors.get(shape["color"], shape["color"]), shape["width"] * _POINTS_PER_PIXEL
        axes.add_line(lines.Line2D(xs, ys, color=color, linewidth=width, linestyle=_LINE_STYLE[shape["dash"]]))
    else:
        axes.text(
            shape["x"], shape["y"], shape["text"].replace("$", r"\$"), fontsize=shape["size"] * _POINTS_PER_PIXEL,
            ha=_ALIGN[shape["anchor"]], va="baseline", color=colors.get(shape["color"], shape["color"]),
            fontweight="bold" if shape["bold"] else "normal",
        )  # fmt: skip

"""The frame that all labs share: title, controls, picture, one line of result, and the same in words."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from minisgl.errors import MinisglError
from minisgl.viz.needs import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from minisgl.viz.drawing import Picture

_FONT = "font-family:var(--jp-ui-font-family, sans-serif);color:var(--jp-ui-font-color1, inherit)"
# For screen readers only: the picture shows it already.
_ONLY_READ_OUT = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap"
_outside_notebooks: dict[tuple[str, str], Any] = {}


class Model(Protocol):
    """What a panel needs of a lab's model class."""

    def picture(self) -> Picture:
        """Draw the current state."""

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""

    def describe(self) -> str:
        """Say in words what the picture shows."""

    def summary(self) -> str:
        """Say the state in one line."""


class Panel:
    """Show a model, and pass what the user does on to it.

    A panel that the same cell made before is closed first, so that nothing of it goes on running.

    Args:
        title: The lab's name.
        model: What is shown.

    Attributes:
        model: The lab's model class, free of widgets: what the panel shows can be read there.
        box: The ipywidgets container.
    """

    shows_summary = False

    def __init__(self, title: str, model: Any) -> None:
        self.model = model
        self.widgets = widgets = need("ipywidgets", "this lab")
        self._title = title
        self._place = (type(self).__name__, _cell_id())
        earlier = _open_panels().pop(self._place, None)
        if earlier is not None:
            earlier.close()
        _open_panels()[self._place] = self
        self._busy = False
        self._picture = widgets.HTML(layout={"width": "auto"})
        self._status = widgets.HTML(layout={"width": "auto"})
        self._words = widgets.HTML(layout={"width": "auto", "display": "none"})
        self._words_button = widgets.ToggleButton(
            description="In words", icon="align-left", tooltip="Say in words what the picture shows",
            layout={"width": "auto", "align_self": "flex-start"},
        )  # fmt: skip
        self._words_button.observe(lambda _: self._show_words(), "value")
        heading = widgets.HTML(f'<h3 style="{_FONT};margin:4px 0">{escape(title)}</h3>')
        self._beside: dict[Any, list[Any]] = {}
        rows = [[part for made in row for part in (made, *self._beside.get(made, ()))] for row in self.controls()]
        lines = [widgets.HBox(row, layout={"flex_flow": "row wrap", "align_items": "center"}) for row in rows]
        self.box = widgets.VBox(
            [heading, *lines, self._picture, self._status, self._words_button, self._words],
            layout={"width": "auto"},
        )
        self.box.add_class("minisgl-lab")
        self.refresh()

    def controls(self) -> list[list[Any]]:
        """Make the rows of controls, from top to bottom."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Draw the model's state."""
        self._picture.value = self.model.picture().to_svg()
        self.say(self.model.summary())
        if self._words_button.value:
            self._words.value = self._words_html()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Write the line of result; screen readers read it out when it changes."""
        hidden = "" if is_error or self.shows_summary else _ONLY_READ_OUT
        mark = '<b style="border-left:5px solid #D55E00;padding-left:6px">Not possible: </b>' if is_error else ""
        self._status.value = (
            f'<div role="status" aria-live="polite" style="{_FONT};line-height:1.4;{hidden}">{mark}{escape(text)}</div>'
        )

    def choice(self, label: str, options: Any, value: Any, act: Callable[[Any], None]) -> Any:
        """Make a choice among a few short options: a row of buttons."""
        made = self.widgets.ToggleButtons(
            description=label, options=options, value=value, style={"description_width": "initial", "button_width": "auto"},
            layout={"width": "auto", "margin": "2px 14px 2px 2px", "flex_flow": "row wrap", "align_items": "center"},
        )  # fmt: skip
        return self.on_change(made, act)

    def dropdown(self, label: str, options: Any, value: Any, act: Callable[[Any], None]) -> Any:
        """Make a choice among many options: a dropdown, and two buttons that go through it.

        In command mode JupyterLab takes the up and down keys of a dropdown for itself; the buttons work by keyboard too.
        """
        made = self.widgets.Dropdown(description=label, options=options, value=value, **_wide(label, 250))
        made.layout.margin = "2px"
        self._beside[made] = [
            self.widgets.Button(
                icon=icon, tooltip=f"{word} {label.lower()}", layout={"width": "32px", "margin": margin}
            )
            for icon, word, margin in (
                ("chevron-up", "previous", "2px 0"),
                ("chevron-down", "next", "2px 14px 2px 2px"),
            )
        ]
        for button, by in zip(self._beside[made], (-1, 1), strict=True):
            button.on_click(lambda _, by=by: _go_on(made, by))
        return self.on_change(made, act)

    def checkbox(self, label: str, value: bool, act: Callable[[bool], None]) -> Any:
        """Make a checkbox that acts on the model."""
        made = self.widgets.Checkbox(
            description=label, value=value, indent=False, layout={"width": "auto", "margin": "2px 12px"}
        )
        return self.on_change(made, act)

    def number(self, label: str, value: int, low: int, high: int, act: Callable[[int], None]) -> Any:
        """Make a slider for whole numbers, with a box to type into."""
        made = self.widgets.IntSlider(description=label, value=value, min=low, max=high, **_wide(label, 240))
        return self.on_change(made, act)

    def button(self, label: str, act: Callable[[], None], *, icon: str = "", hint: str = "") -> Any:
        """Make a button that acts on the model."""
        made = self.widgets.Button(description=label, icon=icon, tooltip=hint or label, layout={"width": "auto"})
        made.on_click(lambda _: self._do(act))
        return made

    def on_change(self, made: Any, act: Callable[[Any], None]) -> Any:
        """Let a control act on the model and draw it again; what isn't possible is said, not raised."""
        made.observe(lambda change: self._do(lambda: act(change["new"])), "value")
        return made

    def _do(self, act: Callable[[], None]) -> None:
        if self._busy:  # a control that is set by another one, not by the user
            return
        self._busy = True
        try:
            act()
            self.refresh()
        except MinisglError as error:
            self.say(str(error), is_error=True)
        finally:
            self._busy = False

    def _show_words(self) -> None:
        self._words.value = self._words_html() if self._words_button.value else ""
        self._words.layout.display = "" if self._words_button.value else "none"

    def _words_html(self) -> str:
        return (
            f'<pre style="{_FONT};white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;background:transparent;'
            f'margin:0;padding:6px;border:1px solid var(--jp-border-color1, #999)">{escape(self.model.describe())}</pre>'
        )

    def describe(self) -> str:
        """Say in words what the picture shows."""
        return self.model.describe()

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure, for the stored notebook."""
        return self.model.static()

    def close(self) -> None:
        """Take the lab off the page and end what it started."""
        if _open_panels().get(self._place) is self:
            del _open_panels()[self._place]
        self.box.close()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Show the live lab; a reader without a kernel gets the picture, one without pictures the words."""
        buffer = io.BytesIO()
        self.static().savefig(buffer, format="png", dpi=120)
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        return {
            "application/vnd.jupyter.widget-view+json": view,
            "image/png": buffer.getvalue(),
            "text/plain": self.describe(),
        }


def _go_on(dropdown: Any, by: int) -> None:
    """Choose the next option, or the previous one; after the last comes the first."""
    if dropdown.index is not None:
        dropdown.index = (dropdown.index + by) % len(dropdown.options)


def _wide(label: str, room: int) -> dict[str, Any]:
    return {
        "style": {"description_width": "initial"},
        "layout": {"width": f"{room + 7 * len(label)}px", "margin": "2px 14px 2px 2px"},
    }


def _shell() -> Any:
    """Give the running IPython shell, or None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def _open_panels() -> dict[tuple[str, str], Any]:
    """Give the labs that are open: (class, cell) -> lab.

    The list hangs on the shell, because the course reloads this package whenever a student writes a part of it.
    """
    shell = _shell()
    return _outside_notebooks if shell is None else shell.__dict__.setdefault("_minisgl_labs", {})


def _cell_id() -> str:
    """Name the notebook cell that is running; "" outside a notebook."""
    kernel = getattr(_shell(), "kernel", None)
    if kernel is None:
        return ""
    message = kernel.get_parent() or {}
    return str(message.get("metadata", {}).get("cellId", ""))

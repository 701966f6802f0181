"""The byte map: watch loaders move bytes from files through memory into parameters, live or recorded."""

from __future__ import annotations

import base64
import copy
import gzip
import itertools
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.viz.drawing import BLUE, Picture, mib
from minisgl.viz.layout import parameters_of, role_of
from minisgl.viz.needs import need
from minisgl.viz.recorder import Loader, Recorder, Step, record

_SCRIPT = Path(__file__).with_suffix(".js")
_SEND_EVERY = 8
_numbers = itertools.count(1)


class LoadMap:
    """Run loaders on a checkpoint, and play what each did to memory.

    Each loader is called with the folder, in this process. It hands out (name, tensor) pairs or gives back a model.

    Args:
        folder: A checkpoint that fits in memory several times.
        loaders: Title -> loader; a single function is taken for "your loader".
        title: What stands above the picture.
        keep: Whether what a loader hands out stays in memory, as a model on the CPU would keep it; else it is let go of at once,
            as if it went to a GPU.

    Attributes:
        trace: All that the picture shows, as plain data.
    """

    def __init__(
        self,
        folder: str | Path,
        loaders: Mapping[str, Loader] | Loader,
        *,
        title: str = "Watch it load",
        keep: bool = False,
    ) -> None:
        self.folder, self.keep = Path(folder), keep
        self.loaders: dict[str, Loader] = {"your loader": loaders} if callable(loaders) else dict(loaders)
        self.trace = _describe_files(self.folder) | {"title": title, "runs": []}
        after = (
            "stays in memory, as a model on the CPU keeps it"
            if keep
            else "leaves memory at once, as if it went to a GPU"
        )
        self.trace["note"] = f"Each loader really ran. What it hands out {after}."
        for name, loader in self.loaders.items():
            self.trace["runs"].append(self._run(name, loader))
        self.trace["words"] = self.describe()
        self._widget: Any = None

    def _run(self, title: str, loader: Loader, recorder: Recorder | None = None) -> dict[str, Any]:
        recorder = recorder or Recorder(self.trace["params"])
        error = record(loader, self.folder, recorder, keep=self.keep)
        steps = [
            {name: value for name, value in step.items() if name not in ("bytes", "count")} for step in recorder.steps
        ]
        return {"title": title, "peak": recorder.peak_bytes, "error": error, "steps": steps}

    def describe(self) -> str:
        """Say in words what the map shows."""
        size, num_files = mib(self.trace["model_bytes"]), len(self.trace["files"])
        lines = [f"{self.trace['title']}: a model of {size} in {num_files} files."]
        for run in self.trace["runs"]:
            ratio = run["peak"] / self.trace["model_bytes"]
            merges = sum(step["kind"] == "merge" for step in run["steps"])
            line = f"{run['title']}: at most {mib(run['peak'])} of own memory, {ratio:.2f} times the model; "
            lines.append(
                f"{line}{merges} groups joined by copying." + (f" It stopped: {run['error']}" if run["error"] else "")
            )
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw the loaders' peaks as bars on one scale, for readers without scripts."""
        runs, size = self.trace["runs"], self.trace["model_bytes"]
        picture = Picture(720, 74 + 34 * len(runs), self.describe())
        picture.text(8, 22, f"Own memory at its peak; the model takes {mib(size)}", size=15, bold=True)
        scale = 330 / max(run["peak"] for run in runs)
        for index, run in enumerate(runs):
            y = 44 + 34 * index
            picture.text(180, y + 16, run["title"], size=13, anchor="end")
            picture.rect(190, y, run["peak"] * scale, 22, BLUE)
            ratio = f"{mib(run['peak'])}, {run['peak'] / size:.2f} × the model"
            picture.text(196 + run["peak"] * scale, y + 16, ratio, size=13)
        return picture

    def page(self) -> str:
        """Write the map as a piece of a page that plays without a kernel; without scripts it says what it shows in words."""
        packed = base64.b64encode(gzip.compress(json.dumps(self.trace).encode(), mtime=0)).decode()
        place = f"byte-map-{self.trace['id']}"
        script = (
            _SCRIPT.read_text(encoding="utf-8")
            .replace("export default { render };", "")
            .replace("export function", "function")
        )
        return (
            f'<div id="{place}"><p>{escape(self.describe()).replace(chr(10), "<br>")}</p></div><script type="module">{script}\n'
            f'const packed = Uint8Array.from(atob("{packed}"), (letter) => letter.charCodeAt(0));\n'
            'const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));\n'
            f'mount(document.getElementById("{place}"), JSON.parse(await new Response(stream).text()));</script>'
        )

    def widget(self) -> Any:
        """Give the live widget, which can also run a loader again and show each step as it happens."""
        if self._widget is None:
            anywidget, traitlets = need("anywidget", "this lab"), need("traitlets", "this lab")

            class Widget(anywidget.AnyWidget):  # type: ignore[misc, name-defined]
                _esm = _SCRIPT
                trace = traitlets.Dict().tag(sync=True)

            self._widget = Widget(trace=copy.deepcopy(self.trace))
            self._widget.on_msg(lambda _, message, __: self.run_again(message["run"]))
        return self._widget

    def run_again(self, index: int) -> None:
        """Run one loader again, and send its steps to the page as they come."""
        waiting: list[Step] = []

        def send(step: Step | None = None) -> None:
            waiting.extend([step] if step else [])
            if waiting and (step is None or len(waiting) >= _SEND_EVERY):
                self.widget().send({"steps": waiting[:], "peak": recorder.peak_bytes})
                waiting.clear()

        recorder = Recorder(self.trace["params"], send)
        name = list(self.loaders)[index]
        self.widget().send({"start": index})
        run = self._run(name, self.loaders[name], recorder)
        send(run["steps"][-1] if run["steps"] else None)
        send()
        self.widget().send({"done": True, "error": run["error"]})
        self.trace["runs"][index] = run

    def close(self) -> None:
        """Take the map off the page."""
        if self._widget is not None:
            self._widget.close()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Show the live map; a reader without a kernel gets one that plays, one without scripts the words."""
        live = self.widget()._repr_mimebundle_()
        bundle = live[0] if isinstance(live, tuple) else live
        return {**bundle, "text/html": self.page(), "text/plain": self.describe()}


def _describe_files(folder: Path) -> dict[str, Any]:
    """Say what lies in which file, in the order of its bytes, and which parameter it becomes a part of."""
    stored = standard_tensors(open_checkpoint(folder))
    ordered = sorted(stored, key=lambda key: (str(stored[key].file), stored[key].offset))
    sizes = {key: stored[key].num_bytes for key in ordered}
    params = parameters_of(stored)
    files: dict[Path, list[str]] = {}
    for key in ordered:
        files.setdefault(stored[key].file, []).append(key)
    rows: dict[str, list[str]] = {}
    for name in params:
        layer = next((word for word in name.split(".") if word.isdecimal()), None)
        rows.setdefault("outside" if layer is None else f"layer {layer}", []).append(name)
    order = ["embed_tokens", "qkv_proj", "o_proj", "gate_up_proj", "experts", "down_proj"]
    return {
        "id": next(_numbers),
        "files": [
            {"name": f"file {index}", "bytes": sum(sizes[key] for key in keys), "keys": keys}
            for index, keys in enumerate(files.values(), 1)
        ],
        "rows": [
            {
                "name": name,
                "params": sorted(names, key=lambda param: _place(param, order)),
                "bytes": sum(sizes[key] for param in names for key in params[param]),
            }
            for name, names in sorted(rows.items(), key=lambda row: int(row[0].split()[-1]) if " " in row[0] else -1)
        ],
        "params": params,
        "param_of": {key: name for name, keys in params.items() for key in keys},
        "role_of": {key: role_of(key) for key in ordered},
        "bytes_of": sizes,
        "model_bytes": sum(sizes.values()),
    }


def _place(name: str, order: list[str]) -> int:
    """Say where a parameter stands in its row: alike in all layers."""
    return next((place for place, word in enumerate(order) if word in name), len(order))

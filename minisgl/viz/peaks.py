"""Run loaders, each in a process of its own, and draw what memory they held: one curve a loader, all in one picture."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minisgl.errors import MinisglError
from minisgl.viz.drawing import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, VERMILLION, Picture, mib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = (VERMILLION, BLUE, GREEN, ORANGE, PURPLE)
_CHILD = """
import json, sys, time, torch
from pathlib import Path
from minisgl.checkpoint.progress import tqdm
from minisgl.utils import cached_load_hf_config
from minisgl.utils.memory import MemoryMeter
text, name, arguments = json.loads(sys.argv[1])
torch.set_num_threads(1)
scope = {"__name__": "loader"}
exec(compile(text, "<loader>", "exec"), scope)
for folder in arguments:  # what a first use imports is no loader's doing
    if Path(str(folder), "config.json").is_file():
        cached_load_hf_config(folder)
torch.cat([torch.empty(4), torch.zeros(4)]).clone()
bytes_read = lambda: int(open("/proc/self/io").read().split("rchar:")[1].split()[0]) if sys.platform == "linux" else 0
with MemoryMeter(interval_s=0.002) as meter:
    begin, before = time.perf_counter(), bytes_read()
    result = scope[name](*arguments)
    seconds, read = time.perf_counter() - begin, bytes_read() - before
    tensors = result if isinstance(result, dict) else result.state_dict() if hasattr(result, "state_dict") else {}
    for tensor in tensors.values():  # a model's first step looks at all of it; what was only mapped comes in now
        tensor.contiguous().flatten().view(torch.uint8).numpy()[::4096].max()
samples = [[s.time_s, s.anonymous_bytes or s.resident_bytes, s.file_backed_bytes or 0] for s in meter.samples]
print("\\n" + json.dumps({"seconds": seconds, "bytes_read": read, "samples": samples}))
"""


@dataclass(frozen=True)
class Load:
    """What one loader took; sizes in bytes, beyond what its process had before.

    Attributes:
        title: Its name in the picture.
        seconds: How long it ran.
        bytes_read: What read calls returned (Linux; copies out of mapped files aren't counted).
        curve: Seconds, own (anonymous) memory, and mapped pages of files, sample by sample.
    """

    title: str
    seconds: float
    bytes_read: int
    curve: list[tuple[float, int, int]] = field(repr=False)

    @property
    def own_peak_bytes(self) -> int:
        """The most own memory at once: what nothing but the loader's end gives back."""
        return max(own for _, own, _ in self.curve)

    @property
    def mapped_peak_bytes(self) -> int:
        """The most pages of files at once, which the system may drop and read again."""
        return max(mapped for _, _, mapped in self.curve)


class Peaks:
    """Measure loaders beside each other.

    Args:
        model_bytes: Size of the model, drawn as a line.

    Attributes:
        loads: What was measured, in order; a title that comes again takes the earlier one's place.
    """

    def __init__(self, model_bytes: int) -> None:
        self.model_bytes = model_bytes
        self.loads: dict[str, Load] = {}

    def run(self, title: str, loader: Callable[..., object], *arguments: str | Path | int) -> Load:
        """Call a function in a fresh process, look at every page of what it returns, and note the memory every 2 ms.

        Args:
            title: Name of the curve.
            loader: A function of a notebook or a module that returns a model, a dict of tensors, or None; what it uses of
                a notebook goes along (see ``source_of``).
            *arguments: What it is called with.

        Raises:
            MinisglError: The function failed; the message ends with what it said.
        """
        import minisgl

        plain = [str(value) if isinstance(value, Path) else value for value in arguments]
        told = json.dumps([source_of(loader), loader.__name__, plain])
        home = str(Path(minisgl.__file__).resolve().parent.parent)
        # A fixed threshold makes the allocator give freed tensors back to the system at once.
        changes = {"PYTHONPATH": home, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, told], env={**os.environ, **changes}, capture_output=True, text=True
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["nothing"]
            raise MinisglError(f"{title} ended with {done.returncode}; expected it to run. It said: {said[-1]}")
        facts = json.loads(done.stdout.splitlines()[-1])
        start = facts["samples"][0]
        curve = [(at - start[0], max(0, own - start[1]), max(0, far - start[2])) for at, own, far in facts["samples"]]
        self.loads[title] = Load(title, facts["seconds"], facts["bytes_read"], curve)
        return self.loads[title]

    def picture(self) -> Picture:
        """Draw own memory over the course of each load, with its peak; mapped pages on top of it are dashed."""
        width, height, left, top = 640, 320, 70, 20
        most = max([self.model_bytes, *(own + mapped for load in self.loads.values() for _, own, mapped in load.curve)])
        peaks = "; ".join(f"{load.title} {mib(load.own_peak_bytes)}" for load in self.loads.values())
        picture = Picture(width + 220, height + 60, f"Own memory of each load over its course, peaks: {peaks}")

        def place(share: float, num_bytes: float) -> tuple[float, float]:
            return left + share * (width - left), top + height - num_bytes / most * height

        picture.line([place(0, 0), place(1, 0)], INK)
        picture.line([place(0, self.model_bytes), place(1, self.model_bytes)], FAINT, dash="dashed")
        picture.text(8, place(0, self.model_bytes)[1] + 4, "the model", size=11)
        picture.text(left, top + height + 24, "each load from its first to its last moment →", size=11)
        for number, load in enumerate(self.loads.values()):
            color, end = _COLORS[number % len(_COLORS)], load.curve[-1][0] or 1.0
            total = [place(at / end, own + mapped) for at, own, mapped in load.curve]
            picture.line(total, color, dash="dotted", width=1)
            picture.line([place(at / end, own) for at, own, _ in load.curve], color, width=2.5)
            ratio = load.own_peak_bytes / self.model_bytes
            picture.text(width + 10, top + 16 + 40 * number, load.title, size=12, color=color, bold=True)
            label = f"peak {mib(load.own_peak_bytes)}, {ratio:.2f} × the model"
            picture.text(width + 10, top + 32 + 40 * number, label, size=11)
        picture.text(width + 10, top + 40 + 40 * len(self.loads), "dotted: with mapped pages of files", size=10)
        return picture

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()


def source_of(function: Callable[..., object]) -> str:
    """Write a program that defines a notebook's function elsewhere: its text, after what it uses of the notebook.

    Modules and what comes from modules are imported, functions are defined in the same way, and plain
    data is written out.

    Raises:
        MinisglError: It uses something of the notebook that is none of these.
    """
    lines: dict[str, str] = {}

    def add(used: Any) -> None:
        if used.__name__ in lines:
            return
        lines[used.__name__] = ""  # a function may call itself
        for name in _names_in(used.__code__):
            if name in used.__globals__ and name not in lines:
                value = used.__globals__[name]
                home = _home_of(name, value)
                if isinstance(value, types.ModuleType):
                    lines[name] = f"import {value.__name__} as {name}"
                elif isinstance(value, types.FunctionType) and home in ("__main__", function.__module__):
                    add(value)
                elif home not in (None, "__main__") and hasattr(value, "__qualname__"):
                    lines[name] = f"from {home} import {value.__qualname__} as {name}"
                elif _is_plain(value):
                    lines[name] = f"{name} = {value!r}"
                else:
                    raise MinisglError(
                        f"{name} is a {type(value).__name__}; expected a function, a module or plain data"
                    )
        lines.pop(used.__name__)
        lines[used.__name__] = inspect.getsource(used)

    add(function)
    return "\n".join(["from __future__ import annotations", *lines.values()])


def _home_of(name: str, value: Any) -> str | None:
    """Name the module that something comes from; compiled modules often don't say it of what they hold."""
    home = getattr(value, "__module__", None)
    if home != "builtins":
        return home
    found = [key for key, module in list(sys.modules.items()) if vars(module).get(name) is value]
    return min((key for key in found if not key.startswith("__")), key=len, default=None)


def _is_plain(value: Any) -> bool:
    """Tell whether a value's text stands for the value."""
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return False


def _names_in(code: types.CodeType) -> list[str]:
    """List the names that a function's code and the code inside it look up."""
    inner = [
        name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names_in(constant)
    ]
    return [*code.co_names, *inner]

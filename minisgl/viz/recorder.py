"""Record what a loader does to memory, tensor by tensor: a trace that the byte map plays.

The loader runs in this process as it is. Every new tensor and every release is counted where PyTorch makes it
(``LiveTensors``), reads are seen because ``safe_open`` and ``open_reader`` are exchanged for the time of the run, and
what a tensor was made from says what it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from minisgl.utils.memory import LiveTensors
from minisgl.viz.drawing import mib
from minisgl.viz.layout import param_of

Step = dict[str, Any]
Loader = Callable[[Path], object]


class Recorder(LiveTensors):
    """Turn what happens into steps: plain data with ``kind``, ``say``, and the pieces of memory that come and go.

    A step's ``add`` holds [number, label, bytes, whether it is only mapped] for each new piece, its ``drop`` the numbers
    of pieces that are gone.

    Args:
        params: Parameter -> the stored keys of its parts.
        listen: Called after each finished step.
    """

    def __init__(self, params: dict[str, list[str]], listen: Callable[[Step], None] = lambda step: None) -> None:
        super().__init__()
        self.params, self._listen = params, listen
        self.steps: list[Step] = []
        self._numbers: dict[int, int] = {}
        self._labels: dict[int, str] = {}
        self._read_at: list[tuple[int, int, str]] = []
        self._made_from: list[str] = []
        self._planned = ""
        self._mapped: list[list[Any]] = []
        self._count_of_pieces = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [part for value in args for part in (value if isinstance(value, list | tuple) else [value])]
        self._made_from = [
            label for value in given if isinstance(value, torch.Tensor) and (label := self.label_of(value))
        ]
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if func is torch.ops.aten.copy_.default and self._made_from and (label := self.label_of(args[1])):
            name = label if label in self.params else param_of(label)[0]
            self.note("copy", f"Copies {label} into {_of(name)}, where a tensor was waiting for it.", name=name)
        return result

    def label_of(self, tensor: torch.Tensor) -> str:
        """Say which stored tensor or parameter a tensor's memory holds; "" where nobody knows."""
        if tensor.device.type == "meta":
            return ""
        address = tensor.data_ptr()
        mapped = (label for start, end, label in reversed(self._read_at) if start <= address < end)
        return self._labels.get(tensor.untyped_storage()._cdata) or next(mapped, "")

    def note(self, kind: str, say: str, **facts: Any) -> Step:
        """Add a step; the one before it is finished then."""
        if self.steps:
            self._listen(self.steps[-1])
        self.steps.append({"kind": kind, "say": say, **facts})
        return self.steps[-1]

    def read(self, key: str, tensor: torch.Tensor) -> None:
        """Note that a file's tensor, or a slice of it, was asked for."""
        start = tensor.data_ptr()
        self._read_at.append((start, start + tensor.nbytes, key))
        self.note("read", f"Reads {key}, {mib(tensor.nbytes)}.", key=key, name=param_of(key)[0], add=self._mapped)
        self._mapped = []

    def _count(self, storage: torch.UntypedStorage, is_foreign: bool) -> None:
        is_new = storage._cdata not in self._seen and storage.nbytes() > 0
        super()._count(storage, is_foreign)
        if is_new:
            self._add_piece(storage._cdata, storage.nbytes(), is_foreign)

    def _add_piece(self, storage: int, num_bytes: int, is_mapped: bool) -> None:
        made_from = list(dict.fromkeys(self._made_from))
        last: Step = self.steps[-1] if self.steps else {"kind": ""}
        names = {label if label in self.params else param_of(label)[0] for label in made_from}
        label = made_from[0] if len(made_from) == 1 else next(iter(names)) if len(names) == 1 else self._planned
        self._labels[storage] = "" if is_mapped else label
        self._numbers[storage] = self._count_of_pieces
        piece = [self._count_of_pieces, label, num_bytes, int(is_mapped)]
        self._count_of_pieces += 1
        if is_mapped and not self._planned:  # what follows says which tensor of the file it is
            self._mapped.append(piece)
            return
        if len(made_from) > 1:
            what = f"Joins {len(made_from)} parts to {_of(label)}: now the parts and their copy are held at once."
            last = self.note("merge", what, name=label)
        elif last["kind"] != "allocate" and not (last["kind"] == "read" and label == last["key"]):
            what = f"Makes room for {_of(self._planned)}." if self._planned else "Makes room for the model."
            if is_mapped:
                what = f"Finds {_of(self._planned)} in a file as the model wants it: its pages are mapped, not copied."
            last = self.note("allocate", what, name=self._planned)
        last.setdefault("add", []).append(piece)

    def _release(self, key: int, size: int) -> None:
        is_mapped = self._seen.get(key, False)
        super()._release(key, size)
        self._labels.pop(key, None)
        number = self._numbers.pop(key)
        last = self.steps[-1] if self.steps else self.note("allocate", "Starts.")
        if not is_mapped:
            if last["kind"] != "free":
                last = self.note("free", "", bytes=0, count=0)
            last["bytes"], last["count"] = last["bytes"] + size, last["count"] + 1
            many = f"{last['count']} tensors" if last["count"] > 1 else "a tensor"
            last["say"] = f"Lets go of {many}, {mib(last['bytes'])} of own memory."
        last.setdefault("drop", []).append(number)

    def placed(self, name: str, pieces: list[Any], tensor: torch.Tensor) -> None:
        """Note that a planned parameter was filled: its parts went straight to their rows."""
        self._labels[tensor.untyped_storage()._cdata] = name
        for piece in pieces:
            key = piece.source.key
            self.note("place", f"Reads {key} straight into its rows of {_of(name)}.", key=key, name=name)

    def handed_out(self, name: str, tensor: torch.Tensor) -> None:
        """Note that the loader gave a parameter away."""
        self._labels[tensor.untyped_storage()._cdata] = name
        self.note("yield", f"Hands out {_of(name)}, {mib(tensor.nbytes)}, complete.", name=name)


def record(loader: Loader, folder: Path, recorder: Recorder, *, keep: bool = False) -> str:
    """Run a loader and record it; what a generator hands out is kept, or let go of at once as if it went to a GPU.

    Returns:
        "", or how the loader failed.
    """
    kept = {}
    try:
        with _watched(recorder, loader), recorder:
            result = loader(folder)
            if isinstance(result, Iterator):
                for name, tensor in result:
                    recorder.handed_out(name, tensor)
                    if keep:
                        kept[name] = tensor
                    del tensor  # or it would live on while the next one is built
            else:
                recorder.note("done", "The model is loaded; what the loader still holds besides ends with it.")
            del result
    except Exception as error:  # whatever a learner's loader raises is the result of this run
        return f"{type(error).__name__}: {error}"
    return ""


@contextmanager
def _watched(recorder: Recorder, loader: Loader) -> Iterator[None]:
    """Let everything that is opened meanwhile report to the recorder."""
    import safetensors

    from minisgl import checkpoint

    safe_open, open_reader = safetensors.safe_open, checkpoint.open_reader

    def open_watched(*args: Any, **kwargs: Any) -> _Watched:
        return _Watched(safe_open(*args, **kwargs), recorder)

    def open_watched_reader(device: Any) -> Any:
        reader = open_reader(device)
        # The reader is given a whole plan, or (as ``fill``) a parameter's rows and the pieces that go there.
        method = "start" if hasattr(reader, "start") else "fill"
        read = getattr(reader, method)

        def read_and_note(*given: Any) -> Any:
            pieces = list(given[0].pieces if method == "start" else given[1])
            name = param_of(pieces[0].source.key)[0]
            recorder._planned = name
            made = read(given[0]) if method == "start" else read(given[0], pieces)
            recorder._planned = ""
            recorder.placed(name, pieces, made[0] if method == "start" else given[0])
            return made

        setattr(reader, method, read_and_note)
        return reader

    with ExitStack() as stack:
        for original, exchanged in ((safe_open, open_watched), (open_reader, open_watched_reader)):
            for scope in _scopes(loader):
                for name in [name for name, value in scope.items() if value is original]:
                    scope[name] = exchanged
                    stack.callback(scope.__setitem__, name, original)
        yield


def _scopes(loader: Loader) -> list[dict[str, Any]]:
    """List the name spaces that a loader may find its tools in: this package, safetensors, the notebook."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.split(".")[0] in ("minisgl", "safetensors", "__main__") and module is not None
    ]
    scopes = [vars(module) for module in modules if vars(module) is not globals()]
    own = getattr(loader, "__globals__", None)
    return scopes if own is None or any(scope is own for scope in scopes) else [*scopes, own]


class _Watched:
    """An open file of ``safe_open`` that reports what is read from it."""

    def __init__(self, opened: Any, recorder: Recorder) -> None:
        self._opened, self._recorder = opened, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def __enter__(self) -> _Watched:
        self._opened.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._opened.__exit__(*exception)

    def get_tensor(self, key: str) -> torch.Tensor:
        tensor = self._opened.get_tensor(key)
        self._recorder.read(key, tensor)
        return tensor

    def get_slice(self, key: str) -> _WatchedSlice:
        return _WatchedSlice(self._opened.get_slice(key), key, self._recorder)


class _WatchedSlice:
    """A slice of ``get_slice`` that reports when it is read."""

    def __init__(self, part: Any, key: str, recorder: Recorder) -> None:
        self._part, self._key, self._recorder = part, key, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def __getitem__(self, index: Any) -> torch.Tensor:
        tensor = self._part[index]
        self._recorder.read(self._key, tensor)
        return tensor


def _of(name: str) -> str:
    """Name a parameter as people do."""
    words = name.removesuffix(".weight").split(".")
    layer = next((word for word in words if word.isdecimal()), None)
    return words[-1] + (f" of layer {layer}" if layer is not None else "")

"""One lane of a memory race: a process that loads one checkpoint in one way and reports on itself.

Started by ``race.RaceModel`` with the source tree to import as its PYTHONPATH and a JSON object as its argument. It writes
JSON lines to its standard output: samples and events, then ``done`` with the peaks, or ``failed``. It ends when its
standard input is closed, that is, with the notebook's kernel, however that ends.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.utils import cached_load_hf_config
from minisgl.utils.memory import Event, LiveTensors, MemoryMeter, Sample, read_memory, reset_peak
from minisgl.viz.layout import Sharding, kind_of_group, parameters_of


class Reporter:
    """Write JSON lines to where standard output led; what the raced code prints goes to standard error instead."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def say(self, line: str, **fields: Any) -> None:
        """Write one line."""
        with self._lock:
            self._out.write(json.dumps({"line": line, **fields}) + "\n")

    def record(self, row: Sample | Event) -> None:
        """Write a sample or an event of the meter."""
        self.say("event" if isinstance(row, Event) else "sample", **asdict(row))


def obey_parent() -> threading.Event:
    """Give an event that is set when the parent writes to standard input; when that is closed, end this process."""
    turn = threading.Event()

    def listen() -> None:
        while os.read(0, 1):
            turn.set()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupting a cell doesn't end the race; its stop button does
    return turn


def read_everything(folder: Path, meter: MemoryMeter) -> dict[str, torch.Tensor]:
    """Copy every tensor of every file into memory, as ``torch.load`` does; the files are mapped while they are read."""
    from safetensors import safe_open

    state = {}
    for file in open_checkpoint(folder).files:
        with safe_open(file, framework="pt") as opened:
            for key in list(opened.keys()):
                state[key] = opened.get_tensor(key).clone()
                meter.event("read", key, state[key].nbytes)
    return state


def everything(folder: Path, meter: MemoryMeter, sharding: Sharding, keep: bool) -> int:
    """Read everything, then hand out each tensor's slice as a view: all of it stays, whatever the rank needs."""
    state = read_everything(folder, meter)
    held = {}
    for key, tensor in state.items():
        held[key] = _slice(key, tensor, sharding)
        use(held[key])
        meter.event("yield", key, held[key].nbytes)
    return len(held)


def merge(folder: Path, meter: MemoryMeter, sharding: Sharding, keep: bool) -> int:
    """Read everything, then build each parameter from its parts while the parts are still there."""
    state = read_everything(folder, meter)
    held, num_params = {}, 0
    for name, keys in parameters_of(state).items():
        param = _merged(name, keys, state, sharding, meter)
        num_params += 1
        use(param)
        meter.event("yield", name, param.nbytes)
        if keep:
            held[name] = param
        del param  # or it would live on while the next one is built
    return num_params


def build(folder: Path, meter: MemoryMeter, sharding: Sharding, keep: bool) -> int:
    """Read everything, merge everything, then copy it into a model that has tensors of its own."""
    state = read_everything(folder, meter)
    merged = {name: _merged(name, keys, state, sharding, meter) for name, keys in parameters_of(state).items()}
    model = {name: torch.empty_like(param, memory_format=torch.contiguous_format) for name, param in merged.items()}
    for name, param in model.items():
        use(param.copy_(merged[name]))
        meter.event("yield", name, param.nbytes)
    return len(model)


def _merged(
    name: str, keys: list[str], state: dict[str, torch.Tensor], sharding: Sharding, meter: MemoryMeter
) -> torch.Tensor:
    """Build one parameter from whole stored tensors: joined, cut, or the stored tensor itself."""
    parts = [_slice(key, state[key], sharding) for key in keys]
    if len(parts) > 1:
        param = torch.cat(parts)
        meter.event(kind_of_group(name, keys), name, param.nbytes)
    elif parts[0].shape != state[keys[0]].shape:
        param = parts[0].clone(memory_format=torch.contiguous_format)
        meter.event("slice", name, param.nbytes)
    else:
        param = parts[0]
    return param


def _slice(key: str, tensor: torch.Tensor, sharding: Sharding) -> torch.Tensor:
    share = sharding.share(key, tuple(tensor.shape))
    if share.dim is None:
        return tensor
    part = tensor.narrow(share.dim, share.start, share.size)
    return torch.nn.functional.pad(part, (0, 0, 0, share.padding)) if share.padding else part


def use(tensor: torch.Tensor) -> None:
    """Look at every page of a parameter, as the model's first step does; pages that stayed in a file come in now."""
    if tensor.is_contiguous():
        tensor.flatten().view(torch.uint8).numpy()[::4096].max()


def stream(folder: Path, meter: MemoryMeter, sharding: Sharding, keep: bool) -> int:
    """Drain ``load_weight`` of the tree that this process imports."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    set_tp_info(sharding.tp_rank, sharding.tp_size)
    quiet = {"progress": False} if "progress" in inspect.signature(load_weight).parameters else {}
    held, num_params = {}, 0
    for name, tensor in load_weight(folder, torch.device("cpu"), **quiet):
        num_params += 1
        use(tensor)
        meter.event("yield", name, tensor.nbytes)
        if keep:
            held[name] = tensor
        num_bytes = tensor.nbytes
        del tensor  # or it would live on while the next one is built
        if not keep:
            meter.event("release", name, num_bytes)
    return num_params


def report_reads(meter: MemoryMeter) -> None:
    """Let every reader that the loader opens report what it read, one event a parameter."""
    from minisgl import checkpoint

    open_reader = checkpoint.open_reader

    def open_reporting(device: Any) -> Any:
        reader = open_reader(device)
        start = reader.start

        def start_and_report(plan: Any) -> Any:
            started = start(plan)
            meter.event("read", plan.name, plan.num_bytes)
            return started

        reader.start = start_and_report  # type: ignore[method-assign]
        return reader

    checkpoint.open_reader = open_reporting


def warm_up(folder: Path, strategy: str) -> None:
    """Import and start all that loading needs, so that only the load itself is measured."""
    torch.set_num_threads(1)
    with LiveTensors():
        torch.cat([torch.empty(4), torch.zeros(4)]).clone()
        with torch.device("meta"):
            torch.empty(4)
    standard_tensors(open_checkpoint(folder))
    if strategy == "stream":
        hf_config = cached_load_hf_config(folder)
        from minisgl.models import ModelConfig, create_model

        with torch.device("meta"):
            create_model(ModelConfig.from_hf(hf_config)).state_dict()
    gc.collect()


def race(arguments: dict[str, Any], reporter: Reporter, turn: threading.Event) -> None:
    """Load as the arguments say, and report."""
    folder, strategy = Path(arguments["folder"]), arguments["strategy"]
    sharding = Sharding(json.loads((folder / "config.json").read_text()), arguments["tp_size"], arguments["tp_rank"])
    warm_up(folder, strategy)
    turn.wait()
    run = {"build": build, "everything": everything, "merge": merge, "stream": stream}[strategy]
    live = LiveTensors()
    can_reset = reset_peak()
    before = read_memory()
    reporter.say("start", baseline=asdict(before))
    with MemoryMeter(live=live, listener=reporter.record) as meter:
        if strategy == "stream":
            report_reads(meter)
        with live:
            num_params = run(folder, meter, sharding, arguments["keep"])
    after = read_memory()
    peak = after.peak_resident_bytes if can_reset else None
    reporter.say(
        "done",
        num_params=num_params,
        counted_bytes=live.peak_bytes,
        resident_bytes=peak - before.resident_bytes if peak is not None else None,
    )


def main() -> int:
    """Run one lane."""
    reporter = Reporter()
    turn = obey_parent()
    try:
        race(json.loads(sys.argv[1]), reporter, turn)
    except Exception as error:  # whatever the raced code raises is this lane's result
        reporter.say("failed", message=f"{type(error).__name__}: {error}", details=traceback.format_exc(limit=-4))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a load may cost: memory beyond what it hands out, and bytes read from the files."""

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from minisgl.checkpoint import _read
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.reader import CpuReader
from minisgl.distributed import set_tp_info
from minisgl.models import load_weight
from tests.checkpoint.live_bytes import LiveBytes
from tests.checkpoint.tiny import CONFIGS

# Large enough beside the Python objects of a load.
WIDE = {"hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 256, "vocab_size": 1031}
# Lists of slices, headers, and the addresses of rows: Python's and numpy's own memory.
OBJECT_BYTES = 400_000

Stream = Iterable[tuple[str, torch.Tensor]]


def wide(model: str) -> dict[str, object]:
    return {**CONFIGS[model], **WIDE}


def peak_beyond_handed_out(stream: Stream) -> tuple[int, int]:
    """Consume a load and keep its tensors; return its peak beyond them, and the largest of them, in bytes."""
    kept = []
    tracemalloc.start()
    with LiveBytes() as live:
        for _, tensor in stream:
            kept.append(tensor)
            live.handed_out += tensor.nbytes
    _, objects = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return live.peak + max(0, objects - OBJECT_BYTES), max(tensor.nbytes for tensor in kept)


def stacking(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Load as a control: read tensors whole, collect a layer's experts, and stack copies of them."""
    experts: dict[str, list[torch.Tensor]] = {}
    with safe_open(folder / "model.safetensors", "pt") as opened:
        for key in opened.keys():  # noqa: SIM118 - not a dict
            tensor = opened.get_tensor(key).clone()
            path, is_expert, _ = key.partition(".experts.")
            if is_expert:
                experts.setdefault(path, []).append(tensor)
            else:
                yield key, tensor
    for path, tensors in experts.items():
        yield path, torch.stack([tensor.flatten() for tensor in tensors])


def listed(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Load as a control: hand nothing out before all is there."""
    return iter(list(load_weight(folder, "cpu", progress=False)))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("layout", ["natural", "torn", "shuffled"])
@pytest.mark.parametrize("model", ["llama with biases", "qwen3 moe"])
def test_beyond_what_is_handed_out_one_parameter_is_held(tmp_path: Path, model: str, layout: str, size: int) -> None:
    folder = make_checkpoint(tmp_path / "made", wide(model), files=4, layout=layout)
    set_tp_info(size - 1, size)
    try:
        peak_beyond_handed_out(load_weight(folder, "cpu", progress=False))  # what stays for good: modules, caches
        peak, largest = peak_beyond_handed_out(load_weight(folder, "cpu", progress=False))
    finally:
        set_tp_info(0, 1)
    assert peak <= largest + 1024


@pytest.mark.parametrize("control", [stacking, lambda folder: listed(folder)], ids=["stacking", "list"])
def test_the_memory_budget_trips_on_a_loader_that_collects(tmp_path: Path, control: Callable[[Path], Stream]) -> None:
    folder = make_checkpoint(tmp_path / "made", wide("qwen3 moe"))

    def delayed() -> Iterator[tuple[str, torch.Tensor]]:
        yield from control(folder)

    peak, largest = peak_beyond_handed_out(delayed())
    assert peak > 1.5 * largest


def characters_read() -> int:
    """Bytes that this process has got from read calls, as the kernel counts them."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


@pytest.mark.parametrize("model", CONFIGS)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_rank_reads_its_share_and_no_more(
    tmp_path: Path, model: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[CpuReader] = []
    monkeypatch.setattr("minisgl.models.weight.open_reader", lambda device: readers.append(CpuReader()) or readers[-1])
    monkeypatch.setattr(_read, "_MAPPED_ROW_BYTES", range(0))  # what is copied out of mappings no kernel counts
    config = {**wide(model), "vocab_size": 1024}  # no padding rows, which are never read
    folder = make_checkpoint(tmp_path / "made", config, files=2)
    header_bytes = 100_000
    set_tp_info(size - 1, size)
    try:
        dict(load_weight(folder, "cpu", progress=False))  # what is read once: modules, the config
        before = characters_read()
        share = sum(tensor.nbytes for _, tensor in load_weight(folder, "cpu", progress=False))
        read = characters_read() - before
    finally:
        set_tp_info(0, 1)
    assert readers[-1].bytes_read == share
    assert share <= read <= 1.05 * share + header_bytes

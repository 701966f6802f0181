"""Load checkpoints on the CPU with ours and the peers, on the same files in one run, and print every target's figure.

    python benchmarks/load.py                        # all sections, about ten minutes, 6 GB of disk
    python benchmarks/load.py --only whole --rounds 3

Each load runs in a fresh process that has loaded something tiny before, the ways in turn, with the files in the page
cache. The tensors lie in them in the order in which transformers saves. Memory is read from the kernel by the parent,
beyond what the process had before the load: anonymous and mapped pages apart, and the kernel's own peak of both. Every
result is compared, by checksums of all tensors, with transformers'.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.loading.process import Load, measure, reference_digests
from benchmarks.loading.report import MIB, Report, table, typical
from minisgl.checkpoint import open_checkpoint
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.presets import PRESETS

PEERS = ("transformers", "safetensors, then merge", "mini-sglang's way")
SLICERS = ("mini-sglang's way", "safetensors' slices, mmap", "safetensors' slices, pread")
GROUPED = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
CHUNK_BYTES = 16 * MIB
# Page tables, Python's objects and the like, which a process has beside any data.
SLACK_BYTES = 4 * MIB


def compare(folder: Path, ways: tuple[str, ...], rounds: int, rank: int = 0, size: int = 1) -> dict[str, list[Load]]:
    """Measure the ways in turn, and stop if one gives other values than transformers."""
    read_all(folder)
    expected = reference_digests(folder, rank, size)
    loads: dict[str, list[Load]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            load = measure(way, folder, rank, size)
            if load.digests != expected:
                wrong = sorted(name for name in expected if load.digests.get(name) != expected[name])
                raise SystemExit(f"{way} gives other values than transformers: {wrong[:5]}")
            loads[way].append(load)
    table(loads)
    return loads


def read_all(folder: Path) -> None:
    """Bring the files into the page cache."""
    for file in folder.glob("*.safetensors"):
        with open(file, "rb", buffering=0) as opened:
            while opened.read(CHUNK_BYTES):
                pass


def largest_tensor_of(folder: Path, part: str) -> int:
    """Return the size in bytes of the largest stored tensor with a part in its name."""
    return max(tensor.num_bytes for key, tensor in open_checkpoint(folder).tensors.items() if part in key)


def whole(folder: Path, rounds: int, report: Report) -> None:
    """Qwen3-0.6B, one rank."""
    report.section("Qwen3-0.6B (1.19 GB), one rank")
    make_checkpoint(folder, PRESETS["Qwen3-0.6B"], layout="sorted")
    loads = compare(folder, ("ours", *PEERS), rounds)
    ours, peers = loads["ours"], {way: loads[way] for way in PEERS}
    wall = typical(ours, "wall_s")
    report.at_most("whole: wall / transformers'", wall / typical(peers["transformers"], "wall_s"), 1.25)
    report.at_least("whole: mini-sglang's way / wall", typical(peers["mini-sglang's way"], "wall_s") / wall, 2)
    tensors = open_checkpoint(folder).tensors
    merged = sum(tensor.num_bytes for key, tensor in tensors.items() if key.split(".")[-2] in GROUPED)
    limit = merged + largest_tensor_of(folder, ".mlp.") + SLACK_BYTES
    report.at_most(
        "whole: anonymous peak (merged tensors + a slice)", typical(ours, "anon_peak") / MIB, limit / MIB, " MiB"
    )


def one_rank(folder: Path, rounds: int, report: Report) -> None:
    """Qwen3-0.6B, rank 3 of 8."""
    report.section("Qwen3-0.6B, rank 3 of 8")
    make_checkpoint(folder, PRESETS["Qwen3-0.6B"], layout="sorted")
    loads = compare(folder, ("ours", *SLICERS), rounds, rank=3, size=8)
    ours = loads["ours"]
    share = typical(ours, "held")
    # Each page of o_proj and down_proj holds rows' parts of all ranks: by pages no way of reading touches less than all.
    report.at_most("rank 3 of 8: file bytes touched / share", typical(ours, "touched") / share, 1.05)
    for way in SLICERS:
        report.at_least(f"rank 3 of 8: {way} / wall", typical(loads[way], "wall_s") / typical(ours, "wall_s"), 1)
    limit = share + largest_tensor_of(folder, ".mlp.") / 8 + SLACK_BYTES
    report.at_most("rank 3 of 8: peak (share + a slice)", typical(ours, "peak") / MIB, limit / MIB, " MiB")


def experts(folder: Path, rounds: int, report: Report) -> None:
    """Two layers of 128 experts."""
    report.section("Qwen3-30B-A3B's sizes, two layers of 128 experts (3.7 GB)")
    make_checkpoint(folder, {**PRESETS["Qwen3-30B-A3B"], "num_hidden_layers": 2}, layout="sorted")
    loads = compare(folder, ("ours", *PEERS), rounds)
    ours, stacking = loads["ours"], loads["mini-sglang's way"]
    beyond = max(0.0, typical(ours, "peak") - typical(ours, "held"))
    a_slice = largest_tensor_of(folder, ".experts.") + SLACK_BYTES
    report.at_most("experts: peak beyond the result (a slice)", beyond / MIB, a_slice / MIB, " MiB")
    report.at_least("experts: stacking / wall", typical(stacking, "wall_s") / typical(ours, "wall_s"), 1.5)


def streamed(folder: Path, report: Report, name: str, ways: tuple[str, ...]) -> None:
    """Stream an empty checkpoint and print its peak and its speed."""
    for way in ways:
        load = measure(way, folder, rank=3, size=8)
        if load.wrong:
            raise SystemExit(f"{way} gives values that aren't zero: {load.wrong[:5]}")
        speed = load.streamed / load.wall_s / 1e9
        cpu = f"{load.cpu_s:.1f} s of CPU, the look at the values included where it is streamed"
        print(f"   {way:18}{load.streamed / 1e9:8.1f} GB in {load.wall_s:6.1f} s: {speed:.1f} GB/s ({cpu})")
        report.at_most(f"{name}, {way}: resident peak, all pages", load.peak / 1e9, 1.5, " GB")


def sparse(folder: Path, rounds: int, report: Report) -> None:
    """The 141 GB and 470 GB shapes, out of holes; and two real layers of the former for the speed of reading."""
    report.section("Llama-3-70B's shape (141 GB of holes), 8 ranks")
    make_checkpoint(folder / "70B", PRESETS["Llama-3-70B"], data="sparse", files=30, layout="sorted")
    print(f"   writing to memory once: {speed_of(zero_fill):.1f} GB/s")
    streamed(folder / "70B", report, "70B", ("ours, streamed", "ours, all ranks"))
    report.section("Qwen3-235B-A22B's shape (470 GB of holes), rank 3 of 8")
    make_checkpoint(folder / "235B", PRESETS["Qwen3-235B-A22B"], data="sparse", files=118, layout="sorted")
    streamed(folder / "235B", report, "235B", ("ours, streamed",))
    report.section("Llama-3-70B's sizes, two layers of real data (3.6 GB), rank 3 of 8")
    real = folder / "two layers"
    make_checkpoint(real, {**PRESETS["Llama-3-70B"], "num_hidden_layers": 2, "vocab_size": 8192}, layout="sorted")
    loads = compare(real, ("ours", "mini-sglang's way"), rounds, rank=3, size=8)["ours"]
    share = int(typical(loads, "held"))
    plain = min(plain_read(real / "model.safetensors", share) for _ in range(rounds))
    wall = typical(loads, "wall_s")
    print(f"   a plain read of as many bytes in one run into one small buffer: {plain:.2f} s")
    report.at_most("70B layers, real data: wall / plain read", wall / plain, 3)


def speed_of(write: Callable[[int], None], num_bytes: int = 4 * 2**30) -> float:
    """Return how fast something is written, in GB/s."""
    started = time.perf_counter()
    write(num_bytes)
    return num_bytes / (time.perf_counter() - started) / 1e9


def zero_fill(num_bytes: int) -> None:
    """Write zeros to one reused buffer."""
    buffer = torch.ones(64 * MIB, dtype=torch.uint8)
    for _ in range(num_bytes // buffer.numel()):
        buffer.zero_()


def plain_read(file: Path, num_bytes: int) -> float:
    """Read the first bytes of a file into one reused buffer; return the seconds."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with open(file, "rb", buffering=0) as opened:
        started = time.perf_counter()
        while num_bytes > 0:
            num_bytes -= opened.readinto(buffer[: min(len(buffer), num_bytes)])
    return time.perf_counter() - started


SECTIONS: dict[str, Callable[[Path, int, Report], None]] = {
    "whole": whole,
    "one_rank": one_rank,
    "experts": experts,
    "sparse": sparse,
}


def main() -> int:
    """Run the sections; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each way loads")
    parser.add_argument("--only", choices=tuple(SECTIONS), nargs="+", default=tuple(SECTIONS))
    parser.add_argument("--folder", type=Path, help="where to make the checkpoints; they are removed at the end")
    options = parser.parse_args()
    report = Report()
    for name in options.only:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            SECTIONS[name](Path(folder), options.rounds, report)
    return 0 if report.summary() else 1


if __name__ == "__main__":
    raise SystemExit(main())

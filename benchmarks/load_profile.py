"""Say where the time of a load onto one GPU goes, beside what the bus and the page cache allow alone.

    python benchmarks/load_profile.py                        # Qwen3-8B's shape (16.4 GB), random data
    python benchmarks/load_profile.py --preset Qwen3-0.6B    # also on a CPU, with copies in memory instead of a bus

It prints what the bus and the page cache give alone; for the whole checkpoint and for one rank of 2, 4 and 8 (whose
columns are cut) the steps from the call to the last byte, and how the reader threads spend that time; and loads of large
sparse shapes, without timing inside. The files are in the page cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.load_gpu import fill_with_random_values, pinned_bandwidth
from minisgl.checkpoint import open_checkpoint, reader_cuda, standard_tensors
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.presets import PRESETS
from minisgl.checkpoint.reader_cuda import Copies, CudaCopies, CudaReader
from minisgl.distributed import use_tp_info
from minisgl.models import ModelConfig, load_weight
from minisgl.models.weight import plan_load
from minisgl.utils import cached_load_hf_config

SPARSE = (("Llama-3-70B", 1), ("Llama-3-70B", 2), ("Qwen3-235B-A22B", 2), ("Qwen3-235B-A22B", 8))


class Clock:
    """Add up the seconds that the reader threads spend in each step."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the block's time, in whichever thread."""
        started = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds[name] += time.perf_counter() - started


class CpuCopies:
    """Copy within the CPU's memory, to try this script where there is no GPU."""

    def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
        """Return plain memory."""
        return torch.empty(num_bytes, dtype=torch.uint8), lambda: None

    def ready(self) -> None:
        """Mark nothing."""

    def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
        """Copy at once."""
        target.copy_(source)
        return lambda: None


class TimedCopies:
    """Time what the reader threads ask of the device."""

    def __init__(self, copies: Copies, clock: Clock) -> None:
        self._copies, self._clock = copies, clock

    def pinned_buffer(self, num_bytes: int) -> tuple[torch.Tensor, Callable[[], None]]:
        """Page-lock a buffer."""
        with self._clock.step("page-locking"):
            return self._copies.pinned_buffer(num_bytes)

    def ready(self) -> object:
        """Mark the caller's work."""
        return self._copies.ready()

    def start(self, source: torch.Tensor, target: torch.Tensor, after: object) -> Callable[[], None]:
        """Launch a copy."""
        with self._clock.step("launching copies"):
            wait = self._copies.start(source, target, after)

        def timed_wait() -> None:
            with self._clock.step("waiting for copies"):
                wait()

        return timed_wait


def load(
    folder: Path, device: torch.device, rank: int = 0, size: int = 1
) -> tuple[int, dict[str, float], Counter[str]]:
    """Load one rank's share once.

    Returns:
        Bytes, seconds of each step of the caller's thread, and seconds that all reader threads together spent in each step.
    """
    clock, read_box = Clock(), reader_cuda.read_box

    def timed_read(*arguments: object) -> None:
        with clock.step("reading the page cache"):
            read_box(*arguments)

    steps, started = {}, time.perf_counter()
    config = ModelConfig.from_hf(cached_load_hf_config(folder))
    plans = plan_load(standard_tensors(open_checkpoint(folder)), config, rank, size)
    steps["headers and plan"] = time.perf_counter() - started
    copies = TimedCopies(CudaCopies(device) if device.type == "cuda" else CpuCopies(), clock)
    reader_cuda.read_box = timed_read
    try:
        began = time.perf_counter()
        with CudaReader(device, copies) as reader:
            num_threads = len(reader._threads)
            start = reader.start

            def timed_start(*arguments: object) -> object:
                starting = time.perf_counter()
                result = start(*arguments)
                steps["device memory and parts"] = (
                    steps.get("device memory and parts", 0) + time.perf_counter() - starting
                )
                return result

            reader.start = timed_start
            tensors = dict(reader.read(plans))
            steps["until the last byte"] = time.perf_counter() - began
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        steps["whole load"] = time.perf_counter() - started
    finally:
        reader_cuda.read_box = read_box
    total = num_threads * steps["until the last byte"]
    clock.seconds["Python, its lock, no work yet or no more"] = total - sum(clock.seconds.values())
    num_bytes = sum(tensor.nbytes for tensor in tensors.values())
    return num_bytes, steps, Counter({name: seconds / total for name, seconds in clock.seconds.items()})


def page_cache_speed(folder: Path, num_threads: int, part_bytes: int) -> float:
    """Read all files into one buffer a thread: bytes per second."""
    local = threading.local()

    def read(job: tuple[Path, int]) -> int:
        if not hasattr(local, "buffer"):
            local.buffer = bytearray(part_bytes)
        descriptor = os.open(job[0], os.O_RDONLY)
        num_read = os.preadv(descriptor, [local.buffer], job[1])
        os.close(descriptor)
        return num_read

    files = sorted(folder.glob("*.safetensors"))
    jobs = [(file, begin) for file in files for begin in range(0, file.stat().st_size, part_bytes)]
    with ThreadPoolExecutor(num_threads) as pool:
        started = time.perf_counter()
        return sum(pool.map(read, jobs)) / (time.perf_counter() - started)


def report(folder: Path, device: torch.device, rounds: int, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> None:
    """Print the tables."""
    bus = 0.0
    if device.type == "cuda":
        bus = pinned_bandwidth(device)
        print(f"bus alone (pinned): {bus / 1e9:.1f} GB/s")
    for num_threads in (1, 8, 12, 16):
        print(
            f"page cache alone, {num_threads} threads: {page_cache_speed(folder, num_threads, 12 * 2**20) / 1e9:.1f} GB/s"
        )
    for size in sizes:
        runs = []
        for _ in range(rounds):
            if device.type == "cuda":
                torch.cuda.empty_cache()
            runs.append(load(folder, device, 0, size))
        rates = [num_bytes / steps["whole load"] for num_bytes, steps, _ in runs]
        share = f", {median(rates) / bus:.0%} of the bus" if bus else ""
        each = " ".join(f"{rate / 1e9:.1f}" for rate in rates)
        print(f"\nrank 0 of {size}: {runs[0][0] / 1e9:.2f} GB at {each} GB/s{share}", flush=True)
        for name in runs[0][1]:
            print(f"  {name:42} {median(steps[name] for _, steps, _ in runs) * 1000:8.1f} ms")
        print("  reader threads:")
        for name in sorted({name for _, _, shares in runs for name in shares}):
            print(f"    {name:40} {median(shares[name] for _, _, shares in runs):8.1%}")


def stream(name: str, size: int, device: torch.device) -> None:
    """Load one rank's share of a sparse checkpoint, letting each tensor go as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        make_checkpoint(folder, PRESETS[name], data="sparse", files=30, layout="sorted")
        num_bytes, started = 0, time.perf_counter()
        with use_tp_info(0, size):
            for _, tensor in load_weight(folder, device, progress=False):
                num_bytes += tensor.nbytes
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - started
    print(
        f"{name}, sparse, rank 0 of {size}: {num_bytes / 1e9:.1f} GB in {seconds:.2f} s: {num_bytes / seconds / 1e9:.1f} GB/s"
    )


def main() -> None:
    """Make the checkpoint and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="Qwen3-8B", choices=sorted(PRESETS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="a checkpoint that exists; default: one made in a temporary folder")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not arguments.folder:
            make_checkpoint(folder, PRESETS[arguments.preset], data="sparse", files=5, layout="sorted")
            fill_with_random_values(folder)
        report(folder, device, arguments.rounds)
    for name, size in SPARSE if device.type == "cuda" else ():
        stream(name, size, device)


if __name__ == "__main__":
    main()

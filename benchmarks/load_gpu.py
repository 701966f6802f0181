"""Load a checkpoint onto GPUs with ours and the peers, on the same files in one run, and print ratios.

    python benchmarks/load_gpu.py                      # one GPU, Qwen3-8B's shape (16.4 GB)
    python benchmarks/load_gpu.py --preset Qwen3-0.6B --rounds 1

Each load runs in a fresh process, the ways in turn, with the files in the page cache. Times count from the call to
the moment when the GPU holds every tensor; imports and the CUDA context come before. Our tensors are compared, bit
for bit, with what safetensors reads and torch merges. Needs a CUDA device.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.loading.ways import merge
from minisgl.checkpoint import StoredTensor, open_checkpoint
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.presets import PRESETS

GIB = 2**30


def fill_with_random_values(folder: Path) -> None:
    """Write seeded random values into the holes of a sparse checkpoint, with all cores."""

    def fill(numbered: tuple[int, StoredTensor]) -> None:
        seed, tensor = numbered
        values = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed)).to(tensor.dtype)
        descriptor = os.open(tensor.file, os.O_WRONLY)
        try:
            data = memoryview(values.view(torch.uint8).reshape(-1).numpy())
            position = tensor.offset
            while data:
                written = os.pwrite(descriptor, data, position)
                data, position = data[written:], position + written
        finally:
            os.close(descriptor)

    torch.set_num_threads(1)
    with ThreadPoolExecutor(min(32, os.cpu_count() or 1)) as pool:
        list(pool.map(fill, enumerate(open_checkpoint(folder).tensors.values())))


def pinned_bandwidth(device: torch.device) -> float:
    """Measure copies from pinned memory to the device, in bytes per second; the median of ten."""
    host = torch.empty(GIB, dtype=torch.uint8).pin_memory()
    target = torch.empty_like(host, device=device)
    times = []
    for _ in range(12):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(host, non_blocking=True)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return GIB / median(times[2:])


def load_ours(folder: Path, device: torch.device) -> dict[str, torch.Tensor]:
    """Load by this package's loader: name -> tensor."""
    from minisgl.models import load_weight

    return dict(load_weight(folder, device, progress=False))


def load_transformers(folder: Path, device: torch.device) -> dict[str, torch.Tensor]:
    """Load with from_pretrained, which merges nothing."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, device_map={"": device})
    return dict(model.state_dict())


def load_safetensors(folder: Path, device: torch.device) -> dict[str, torch.Tensor]:
    """Load every file with the library, then merge."""
    from safetensors.torch import load_file

    stored: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        stored |= load_file(file, device=str(device))
    return merged(stored)


def merged(stored: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Concatenate q, k, v and gate, up of a whole state dict, freeing the parts as it goes."""
    return dict(merge((key, stored.pop(key)) for key in list(stored)))


def load_stream_and_concatenate(folder: Path, device: torch.device) -> dict[str, torch.Tensor]:
    """Stream as upstream mini-sglang does: whole tensors, a buffer per group, concatenated when it is complete."""
    from safetensors import safe_open

    def tensors() -> Iterator[tuple[str, torch.Tensor]]:
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="pt", device=str(device)) as opened:
                for key in opened.keys():  # noqa: SIM118 (safe_open is no dict)
                    yield key, opened.get_tensor(key)

    return dict(merge(tensors()))


def load_fastsafetensors(folder: Path, device: torch.device) -> dict[str, torch.Tensor]:
    """Load with fastsafetensors (no GPUDirect), then merge."""
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    loader = SafeTensorsFileLoader(SingleGroup(), device, nogds=True)
    loader.add_filenames({0: [str(file) for file in sorted(folder.glob("*.safetensors"))]})
    buffer = loader.copy_files_to_device()
    result = merged({key: buffer.get_tensor(key).clone() for key in buffer.key_to_rank_lidx})
    buffer.close()
    loader.close()
    return result


WAYS = {
    "ours": load_ours,
    "transformers": load_transformers,
    "safetensors + merge": load_safetensors,
    "stream + concatenate": load_stream_and_concatenate,
    "fastsafetensors + merge": load_fastsafetensors,
}


def measure_one(way: str, folder: Path, check: bool) -> dict[str, float | str]:
    """Run one load in this process: seconds, device peak and (for ours, if asked) whether the values are right."""
    import safetensors.torch  # noqa: F401
    from transformers import AutoModelForCausalLM

    import minisgl.checkpoint.reader_cuda  # noqa: F401
    from minisgl.models import load_weight  # noqa: F401
    from minisgl.utils import cached_load_hf_config

    with torch.device("meta"):  # all that any way imports is imported before the clock starts
        AutoModelForCausalLM.from_config(cached_load_hf_config(folder))
    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    loaded = WAYS[way](folder, device)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    result: dict[str, float | str] = {"seconds": seconds, "peak": torch.cuda.max_memory_allocated() - before}
    result["bytes"] = sum(tensor.nbytes for tensor in loaded.values())
    if check:
        expected = load_safetensors(folder, device)
        assert loaded.keys() == expected.keys(), sorted(loaded.keys() ^ expected.keys())[:10]
        assert all(torch.equal(loaded[key], expected[key]) for key in expected), "values differ"
        result["checked"] = len(expected)
    return result


def run_one(way: str, folder: Path, *extra: str) -> dict[str, float] | str:
    """Measure one way in a fresh process; what it printed last, if it failed."""
    command = [sys.executable, __file__, "--one", way, "--folder", str(folder), *extra]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def drop_from_page_cache(folder: Path) -> None:
    """Ask the kernel to forget the files' pages; they must be on disk first."""
    for file in folder.glob("*.safetensors"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def disk_speed(folder: Path) -> float:
    """Read all files, with as many threads as ours, without keeping a byte: bytes per second."""

    def read(job: tuple[Path, int]) -> int:
        file, begin = job
        buffer = bytearray(8 * 2**20)
        descriptor = os.open(file, os.O_RDONLY)
        num_read = os.preadv(descriptor, [buffer], begin)
        os.close(descriptor)
        return num_read

    files = sorted(folder.glob("*.safetensors"))
    jobs = [(file, begin) for file in files for begin in range(0, file.stat().st_size, 8 * 2**20)]
    start = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        total = sum(pool.map(read, jobs))
    return total / (time.perf_counter() - start)


def report(folder: Path, rounds: int) -> None:
    """Run all ways in turn and print the table with each target beside its figure."""
    bandwidth = pinned_bandwidth(torch.device("cuda", 0))
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, {os.cpu_count()} cores")
    print(f"pinned host-to-device bandwidth: {bandwidth / 1e9:.1f} GB/s", flush=True)
    results: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            outcome = run_one(way, folder, *(["--check"] if way == "ours" and number == 0 else []))
            if isinstance(outcome, str):
                print(f"  {way}: failed: {outcome}", flush=True)
            else:
                results[way].append(outcome)
    seconds = {way: median(run["seconds"] for run in runs) for way, runs in results.items() if runs}
    print(f"\n{'way':26} {'seconds':>8} {'spread':>15} {'GB/s':>6} {'ours is':>8} {'device peak / tensors':>22}")
    for way, middle in seconds.items():
        runs = results[way]
        spread = f"{min(run['seconds'] for run in runs):.2f} … {max(run['seconds'] for run in runs):.2f}"
        peak = max(run["peak"] for run in runs) / runs[0]["bytes"]
        rate, times = runs[0]["bytes"] / middle / 1e9, middle / seconds["ours"]
        print(f"{way:26} {middle:8.2f} {spread:>15} {rate:6.1f} {times:7.1f}x {peak:22.4f}")
    ours = results["ours"]
    share = ours[0]["bytes"] / seconds["ours"] / bandwidth
    print(f"\nours checked against safetensors + merge: {ours[0]['checked']:.0f} tensors equal")
    print(f"share of pinned bandwidth: {share:.0%} (target: at least 50%)")
    if "transformers" in seconds:
        print(f"times transformers: {seconds['transformers'] / seconds['ours']:.1f} (target: at least 4)")
    print(
        f"device peak over the tensors: {max(r['peak'] for r in ours) / ours[0]['bytes'] - 1:.2%} (target: at most 1%)"
    )
    drop_from_page_cache(folder)
    disk = disk_speed(folder)
    drop_from_page_cache(folder)
    cold = run_one("ours", folder)
    if isinstance(cold, dict):
        rate = cold["bytes"] / cold["seconds"]
        print(
            f"cold: {rate / 1e9:.2f} GB/s, the disk alone {disk / 1e9:.2f} GB/s ({rate / disk:.0%}; target: the disk's)"
        )


def main() -> None:
    """Parse the command line; without a GPU say so and stop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="Qwen3-8B", choices=sorted(PRESETS))
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="a checkpoint that exists; default: one made in a temporary folder")
    parser.add_argument("--one", choices=sorted(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device and found none; benchmarks/load.py measures the CPU")
    if arguments.one:
        print(json.dumps(measure_one(arguments.one, arguments.folder, arguments.check)))
        return
    if arguments.folder:
        report(arguments.folder, arguments.rounds)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        start = time.perf_counter()
        make_checkpoint(folder, PRESETS[arguments.preset], data="sparse", files=arguments.files, layout="sorted")
        fill_with_random_values(folder)
        print(f"made {arguments.preset}'s shape in {time.perf_counter() - start:.0f} s", flush=True)
        report(folder, arguments.rounds)


if __name__ == "__main__":
    main()

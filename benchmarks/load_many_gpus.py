"""Load one checkpoint on many GPUs, a rank each, every rank reading only its slice.

    torchrun --nproc-per-node 2 benchmarks/load_many_gpus.py

Three parts, for any number of ranks (NCCL with a GPU for each rank, else gloo on the CPU):

1. A sparse checkpoint of Qwen3-235B-A22B's shape (470 GB, no data on disk), streamed by all ranks at once: bytes,
   seconds and GB/s of each rank, against pinned copies to all GPUs at once, measured in the same run.
2. Random data of Qwen3-8B's shape in the page cache: the same, and every parameter's checksum, added up over the
   ranks, against that of the whole tensors in the files.
3. Logits of small models of all four architectures over all ranks, against one rank's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.load_gpu import fill_with_random_values
from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.presets import PRESETS
from minisgl.distributed import close_tensor_parallel, get_tp_info, init_tensor_parallel, use_tp_info
from minisgl.engine import Engine
from minisgl.models import ModelConfig, load_weight
from minisgl.models.weight import SPLIT_DIM, model_shapes, parts_of
from minisgl.utils import cached_load_hf_config
from minisgl.utils.memory import read_memory, reset_peak

MIB = 2**20
SHRUNKEN = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 101,
    "num_experts": 12,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 48,
}


@dataclass
class RankLoad:
    """What one rank measured of its own load."""

    rank: int
    num_tensors: int
    num_bytes: int
    seconds: float
    host_peak_mib: float
    device_peak_mib: float


def synchronize(device: torch.device) -> None:
    """Wait for the device, then for the other ranks."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


def copy_bandwidth(device: torch.device, num_bytes: int = 512 * MIB) -> float:
    """Measure copies from pinned memory to this rank's device while all ranks copy: bytes per second."""
    host = torch.empty(num_bytes, dtype=torch.uint8, pin_memory=device.type == "cuda")
    target = torch.empty(num_bytes, dtype=torch.uint8, device=device)
    times = []
    for _ in range(8):
        synchronize(device)
        start = time.perf_counter()
        target.copy_(host, non_blocking=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return num_bytes / median(times[2:])


def stream(folder: Path, device: torch.device) -> RankLoad:
    """Load this rank's share and let go of each tensor as the next one comes."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    reset_peak()
    synchronize(device)
    num_tensors = num_bytes = 0
    start = time.perf_counter()
    for _name, tensor in load_weight(folder, device, progress=False):
        num_tensors, num_bytes = num_tensors + 1, num_bytes + tensor.nbytes
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start
    device_peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    host_peak = read_memory().peak_resident_bytes or 0
    return RankLoad(get_tp_info().rank, num_tensors, num_bytes, seconds, host_peak / MIB, device_peak / MIB)


def report(title: str, mine: RankLoad, bandwidth: float) -> None:
    """Gather what all ranks measured and print it on the primary one."""
    gathered: list[tuple[dict[str, float], float]] = [({}, 0.0)] * get_tp_info().size
    dist.all_gather_object(gathered, (asdict(mine), bandwidth))
    if not get_tp_info().is_primary():
        return
    print(
        f"\n{title}\n{'rank':>4} {'tensors':>8} {'GB':>7} {'seconds':>8} {'GB/s':>6} {'pinned':>7} {'share':>6}"
        f" {'host peak MiB':>14} {'device peak MiB':>16}"
    )
    for load, pinned in gathered:
        rate = load["num_bytes"] / load["seconds"]
        print(
            f"{load['rank']:4} {load['num_tensors']:8} {load['num_bytes'] / 1e9:7.2f} {load['seconds']:8.2f} "
            f"{rate / 1e9:6.1f} {pinned / 1e9:7.1f} {rate / pinned:6.0%} {load['host_peak_mib']:14.0f} "
            f"{load['device_peak_mib']:16.0f}"
        )
    total = sum(load["num_bytes"] for load, _ in gathered) / max(load["seconds"] for load, _ in gathered)
    pinned = sum(bandwidth for _, bandwidth in gathered)
    print(f" all: {total / 1e9:.1f} GB/s of {pinned / 1e9:.1f} GB/s pinned to all at once ({total / pinned:.0%})")


def checksum(tensor: torch.Tensor) -> int:
    """Add up a tensor's bits, taken as integers; adding over the shards of a tensor gives the whole one's."""
    integers = {2: torch.int16, 4: torch.int32}[tensor.dtype.itemsize]
    return int(tensor.contiguous().view(integers).sum(dtype=torch.int64))


def compare_checksums(folder: Path, device: torch.device) -> int:
    """Compare every parameter's checksum over the ranks with its parts' in the files; return how many were equal."""
    from safetensors import safe_open

    tp = get_tp_info()
    sums = {name: checksum(tensor) for name, tensor in load_weight(folder, device, progress=False)}
    config = ModelConfig.from_hf(cached_load_hf_config(folder))
    stored, whole_shapes = standard_tensors(open_checkpoint(folder)), model_shapes(config, 0, 1)
    for index, (name, total) in enumerate(sums.items()):
        shards_total = torch.tensor(total, device=device)
        dist.all_reduce(shards_total)
        if index % tp.size != tp.rank:  # the whole tensors are read by one rank each
            continue
        expected = 0
        for key in parts_of(name, whole_shapes[name], config):
            with safe_open(stored[key].file, framework="pt", device=str(device)) as opened:
                tensor = opened.get_tensor(stored[key].key)
            projection = key.split(".")[-2]
            num_copies = 1 if SPLIT_DIM.get(projection, 9) < tensor.dim() else tp.size
            if projection in ("k_proj", "v_proj"):
                num_copies = max(tp.size // config.num_kv_heads, 1)
            expected += num_copies * checksum(tensor)
        assert int(shards_total) == expected, (
            f"{name}: checksum {int(shards_total)} over the ranks, {expected} in the file"
        )
    return len(sums)


def compare_logits(folder: Path, device: torch.device) -> float:
    """Return the largest difference of logits over all ranks from one rank's, relative to their scale."""
    prompts = [[1, 2, 3, 4, 5], [7, 8], [9, 10, 11, 12, 13, 14, 15]]
    with use_tp_info(0, 1):
        alone = Engine(folder, dtype="float32", device=device, progress=False).logits(prompts)
    together = Engine(folder, dtype="float32", device=device, progress=False).logits(prompts)
    return float((together - alone).abs().max() / alone.abs().max())


def main() -> None:
    """Run the three parts on every rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shrunken", action="store_true", help="small shapes for all parts, to try it on a CPU")
    parser.add_argument("--folder", type=Path, help="where to make the checkpoints; default: a temporary folder")
    arguments = parser.parse_args()
    device = init_tensor_parallel()
    tp = get_tp_info()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        shared = [temporary]
        dist.broadcast_object_list(shared)  # all ranks use the primary one's folder
        root = Path(shared[0])
        parts = {"sparse": "Qwen3-235B-A22B", "random": "Qwen3-8B"}
        small = {name: PRESETS[name] | SHRUNKEN for name in ("Llama-3-8B", "Qwen3-8B", "Qwen3-30B-A3B")}
        small["Qwen2"] = small["Llama-3-8B"] | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
        if tp.is_primary():
            for data, preset in parts.items():
                config = PRESETS[preset] | (SHRUNKEN if arguments.shrunken else {})
                make_checkpoint(root / data, config, data="sparse", files=8)
            fill_with_random_values(root / "random")
            for name, config in small.items():
                make_checkpoint(root / name, config, data="random", files=2)
        synchronize(device)
        bandwidth = copy_bandwidth(device, 512 * MIB if device.type == "cuda" else 16 * MIB)
        for data, preset in parts.items():
            report(f"{preset}'s shape, {data} data, {tp.size} ranks", stream(root / data, device), bandwidth)
        num_equal = compare_checksums(root / "random", device)
        differences = {name: compare_logits(root / name, device) for name in small}
        if tp.is_primary():
            print(f"\nchecksums over {tp.size} ranks equal the files': {num_equal} parameters")
            for name, difference in differences.items():
                print(
                    f"logits of a small {name} over {tp.size} ranks differ from one rank's by {difference:.1e} of their scale"
                )
            assert max(differences.values()) < 1e-4, "logits differ between rank counts"
        synchronize(device)
    close_tensor_parallel()


if __name__ == "__main__":
    main()

"""Run one load in this process; the parent measures it from outside. Talks in lines: see ``process.measure``."""

import gc
import json
import os
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from benchmarks.loading.ways import WAYS, Result, merge, reference
from minisgl.checkpoint.maker import make_checkpoint


def counters() -> dict[str, float]:
    """Return what the kernel says about this process: bytes from read calls, seconds of CPU, memory in bytes."""
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    memory = {name: int(status[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS", "RssAnon", "RssFile")}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"rchar": int(io["rchar"]), "cpu_s": usage.ru_utime + usage.ru_stime, **memory}


def digests(weights: Iterable[tuple[str, torch.Tensor]]) -> dict[str, int]:
    """Return a checksum of every tensor's bytes, shape and dtype."""
    return {name: zlib.crc32(f"{tuple(t.shape)} {t.dtype}".encode(), checksum(t)) for name, t in weights}


def checksum(tensor: torch.Tensor) -> int:
    """Return a checksum of a tensor's bytes."""
    return zlib.crc32(tensor.contiguous().flatten().view(torch.uint8).numpy())


def merged(way: str, weights: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Bring transformers' own tensors into the merged form, for the comparison only."""
    if way != "transformers":
        yield from weights.items()
        return
    head, embedding = weights.get("lm_head.weight"), weights["model.embed_tokens.weight"]
    if head is not None and head.data_ptr() == embedding.data_ptr():
        weights = {key: tensor for key, tensor in weights.items() if key != "lm_head.weight"}
    packed = {key: tensor for key, tensor in weights.items() if ".experts." in key and not key.endswith(".weight")}
    yield from merge((key, tensor) for key, tensor in weights.items() if key not in packed)
    yield from packed.items()


def tell(**message: object) -> None:
    """Write a line to the parent and wait until it answers."""
    print(json.dumps(message), flush=True)
    sys.stdin.readline()


def warm_up(way: str, folder: Path) -> None:
    """Load something tiny of the same architecture the same way: no measured load pays for imports or code pages."""
    config = json.loads((folder / "config.json").read_text())
    tiny = {
        "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 1024,
    }  # fmt: skip
    if "num_experts" in config:
        tiny |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
    with tempfile.TemporaryDirectory() as place:
        make_checkpoint(place, {**config, **tiny}, data="sparse", files=2)
        WAYS[way](Path(place), 0, 1)
        WAYS[way](Path(place), 3, 8)


def main() -> None:
    """Load as the arguments say: way, folder, rank, size."""
    way, folder, rank, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if way == "reference":
        tell(digests=digests(reference(folder, rank, size)))
        return
    warm_up(way, folder)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the kernel's peak starts from here
    before = counters()
    tell(before=before)
    started = time.perf_counter()
    result: Result = WAYS[way](folder, rank, size)
    wall_s = time.perf_counter() - started - result.checking_s
    after = counters()
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in result.weights.values()}
    held = sum(storages.values())
    tell(after=after, wall_s=wall_s, held=held, touched=result.touched, streamed=result.streamed, wrong=result.wrong)
    tell(digests=digests(merged(way, result.weights)))


if __name__ == "__main__":
    main()

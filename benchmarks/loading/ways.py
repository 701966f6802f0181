"""Ways to load a checkpoint: ours and the ones it is measured against. Each gives the model's tensors by name.

Only ``ours`` imports minisgl; the peers are written from the descriptions of their algorithms.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

Weights = dict[str, torch.Tensor]


@dataclass
class Result:
    """What a way gives.

    Attributes:
        weights: The tensors, if it keeps them.
        touched: Bytes of the files that our reader has delivered; 0 for the peers, who can't be asked.
        streamed: Bytes of the tensors that it handed out and let go.
        wrong: Names of those that had wrong values.
        checking_s: Seconds spent on looking at values, which don't count.
    """

    weights: Weights = field(default_factory=dict)
    touched: int = 0
    streamed: int = 0
    wrong: list[str] = field(default_factory=list)
    checking_s: float = 0.0


GROUPS = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
SPLIT_ROWS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "embed_tokens", "lm_head")
SPLIT_COLUMNS = ("o_proj", "down_proj")


def ours(folder: Path, rank: int, size: int) -> Result:
    """Build the meta model and load it, as the engine does."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import ModelConfig, create_model, load_weight
    from minisgl.utils import cached_load_hf_config, torch_dtype

    set_tp_info(rank, size)
    config = ModelConfig.from_hf(cached_load_hf_config(folder))
    with torch.device("meta"), torch_dtype(torch.bfloat16):
        model = create_model(config)
    with counted_reader() as reader:
        weights = dict(load_weight(folder, "cpu", progress=False))
    model.load_state_dict(dict(weights))
    return Result(weights, touched=reader.bytes_read)


@contextmanager
def counted_reader() -> Iterator[Any]:
    """Have the next load use a reader that can be asked how many bytes it has delivered."""
    from minisgl.checkpoint.reader import CpuReader
    from minisgl.models import weight

    reader, before = CpuReader(), weight.open_reader
    weight.open_reader = lambda device: reader
    try:
        yield reader
    finally:
        weight.open_reader = before


def ours_streamed(folder: Path, rank: int, size: int) -> Result:
    """Stream one rank's share of an empty checkpoint, let each tensor go, and check that it is zeros."""
    return stream(folder, range(rank, rank + 1), size, check=True)


def ours_all_ranks(folder: Path, rank: int, size: int) -> Result:
    """Stream the shares of all ranks, one after another, and let each tensor go."""
    return stream(folder, range(size), size, check=False)


def stream(folder: Path, ranks: range, size: int, check: bool) -> Result:
    """Stream ranks' shares of an empty checkpoint."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    result = Result()
    for rank in ranks:
        set_tp_info(rank, size)
        for name, tensor in load_weight(folder, "cpu", progress=False):
            result.streamed += tensor.nbytes
            started = time.perf_counter()
            if check and tensor.view(torch.int16).count_nonzero():
                result.wrong.append(name)
            result.checking_s += time.perf_counter() - started
            del tensor
    return result


def transformers(folder: Path, rank: int, size: int) -> Result:
    """Call ``from_pretrained``, which merges no projections and shards nothing; its tensors stay mapped files."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    return Result(dict(model.state_dict()))


def safetensors_then_merge(folder: Path, rank: int, size: int) -> Result:
    """Load every file whole with safetensors' ``load_file``, then concatenate and stack."""
    from safetensors.torch import load_file

    stored: Weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        stored |= load_file(file)
    return Result(dict(merge(iter(stored.items()))))


def mini_sglang(folder: Path, rank: int, size: int) -> Result:
    """Do what upstream mini-sglang's loader is described to do.

    File by file, read each tensor whole, clone this rank's slice of it, keep the slices of a group until it is complete,
    concatenate them, and stack the experts of a layer once all are there.
    """
    from safetensors import safe_open

    def slices() -> Iterator[tuple[str, torch.Tensor]]:
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="pt", device="cpu") as opened:
                for key in opened.keys():  # noqa: SIM118 - not a dict
                    yield key, share(key, opened.get_tensor(key), rank, size).clone()

    return Result(dict(merge(slices())))


def slices_mapped(folder: Path, rank: int, size: int) -> Result:
    """Ask safetensors for this rank's slices of mapped files, and merge them."""
    return Result(dict(merge(slices_of(folder, rank, size))))


def slices_read(folder: Path, rank: int, size: int) -> Result:
    """Ask safetensors for this rank's slices with read calls (since safetensors 0.8), and merge them."""
    return Result(dict(merge(slices_of(folder, rank, size, backend="pread"))))


def slices_of(folder: Path, rank: int, size: int, **options: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield one rank's slice of each tensor, without the rest of it where the library can do that."""
    from safetensors import safe_open

    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt", device="cpu", **options) as opened:
            for key in opened.keys():  # noqa: SIM118 - not a dict
                part = opened.get_slice(key)
                held = share(key, torch.empty(part.get_shape(), device="meta"), rank, size)
                offset = held.storage_offset()
                starts = [offset // held.stride(0), offset % held.stride(0)] if held.dim() == 2 else [offset]
                cut = [slice(start, start + length) for start, length in zip(starts, held.shape, strict=True)]
                yield key, part[tuple(cut)]


def share(key: str, tensor: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    """Return one rank's part of a stored tensor (a view), for sizes that divide evenly."""
    projection = key.split(".")[-2]
    if projection in SPLIT_ROWS:
        return tensor.chunk(size, dim=0)[rank]
    if projection in SPLIT_COLUMNS and tensor.dim() == 2:
        return tensor.chunk(size, dim=1)[rank]
    return tensor


def merge(stored: Iterator[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Concatenate the parts of groups, and stack the experts of each layer, as soon as all are there."""
    waiting: dict[str, Weights] = {}
    for key, tensor in stored:
        name, slot, parts = group_of(key)
        if not parts:
            yield from stack(waiting, key, tensor)
            continue
        slots = waiting.setdefault(name, {})
        slots[slot] = tensor
        if len(slots) == len(parts):
            del waiting[name]
            yield from stack(waiting, name, torch.cat([slots[part] for part in parts]))
    # A layer's experts are complete only at the end, because nothing says before how many there are.
    for name, experts in waiting.items():
        yield name, torch.stack([experts[number] for number in sorted(experts, key=int)])


def group_of(key: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the merged name, the slot and all slots of a stored tensor; no slots for one that stays alone."""
    for merged, parts in GROUPS.items():
        for part in parts:
            if f".{part}." in key:
                return key.replace(part, merged), part, parts
    return key, "", ()


def stack(waiting: dict[str, Weights], name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Keep an expert's tensor until the layer is complete; give any other as it is."""
    path, is_expert, rest = name.partition(".experts.")
    if not is_expert:
        yield name, tensor
        return
    number, projection, _ = rest.split(".")
    waiting.setdefault(f"{path}.experts.{projection}", {})[number] = tensor


WAYS: dict[str, Callable[[Path, int, int], Result]] = {
    "ours": ours,
    "ours, streamed": ours_streamed,
    "ours, all ranks": ours_all_ranks,
    "transformers": transformers,
    "safetensors, then merge": safetensors_then_merge,
    "mini-sglang's way": mini_sglang,
    "safetensors' slices, mmap": slices_mapped,
    "safetensors' slices, pread": slices_read,
}


def reference(folder: Path, rank: int, size: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield what each way must give, from transformers' own model: its tensors sharded, then merged."""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    tied = model.config.tie_word_embeddings

    def shares() -> Iterator[tuple[str, torch.Tensor]]:
        for key, tensor in model.state_dict().items():
            if not (tied and key == "lm_head.weight"):
                yield key, packed_share(key, tensor, rank, size)

    single = ((key, tensor) for key, tensor in shares() if ".experts." not in key or key.endswith(".weight"))
    packed = ((key, tensor) for key, tensor in shares() if ".experts." in key and not key.endswith(".weight"))
    yield from merge(single)
    yield from packed


def packed_share(key: str, tensor: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    """Return one rank's part, also of experts that transformers holds packed: [experts, rows, columns]."""
    if key.endswith("experts.gate_up_proj"):
        return torch.cat([half.chunk(size, dim=1)[rank] for half in tensor.chunk(2, dim=1)], dim=1)
    if key.endswith("experts.down_proj"):
        return tensor.chunk(size, dim=2)[rank]
    return share(key, tensor, rank, size)

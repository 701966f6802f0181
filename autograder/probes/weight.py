"""Questions about ``models/weight.py``. ``config`` is the content of a config.json, ``folder`` a checkpoint's path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from autograder.probes.config import read_hf_config


def model_config(config: dict[str, Any]) -> Any:
    """Build the ModelConfig that the student's functions get."""
    from minisgl.models import ModelConfig

    return ModelConfig.from_hf(read_hf_config(config))


def shard_slice(config: dict[str, Any], shapes: dict[str, list[int]], tp_size: int) -> dict[str, list[list[list[int]]]]:
    """Ask which part of each stored tensor each rank holds: key -> for each rank [start, stop] of each dimension.

    They are given as they come, also where they lie outside the tensor.
    """
    from minisgl.models import weight

    made = model_config(config)
    return {
        key: [_bounds(weight.shard_slice(key, tuple(shape), made, rank, tp_size), shape) for rank in range(tp_size)]
        for key, shape in shapes.items()
    }


def _bounds(cut: Any, shape: list[int]) -> list[list[int]]:
    cut = (*cut, *[slice(None)] * (len(shape) - len(cut)))
    steps = [piece.indices(size)[2] for piece, size in zip(cut, shape, strict=True)]
    if steps != [1] * len(shape):
        raise ValueError(f"slices of steps {steps} were given for shape {shape}; each step was expected to be 1")
    return [
        [piece.start if piece.start is not None else 0, piece.stop if piece.stop is not None else size]
        for piece, size in zip(cut, shape, strict=True)
    ]


def parts_of(config: dict[str, Any], shapes: dict[str, list[int]]) -> dict[str, Any]:
    """Ask which stored tensors make up parameters of these shapes: name -> [key, shape] each."""
    from minisgl.models import weight

    made = model_config(config)
    return {
        name: [[key, list(part)] for key, part in weight.parts_of(name, tuple(shape), made).items()]
        for name, shape in shapes.items()
    }


def merged(config: dict[str, Any], tensors: str, order: list[str]) -> dict[str, Any]:
    """Send a file's tensors through merge_stream in this order (a key may come twice): the names and tensors that come."""
    from safetensors.torch import load_file

    from minisgl.models import weight

    _dirty_memory()
    stored = load_file(tensors)
    pairs = list(weight.merge_stream(((key, stored[key]) for key in order), model_config(config)))
    return {"names": [name for name, _ in pairs], "tensors": dict(pairs)}


def merged_in_time(config: dict[str, Any], tensors: str, order: list[str]) -> dict[str, Any]:
    """Send a file's tensors through merge_stream and let go what comes: the names, and when they come.

    ``came_after`` has for each yield how many tensors had been asked for; ``alive`` how many of them were still in
    memory when the next one was asked for.
    """
    import weakref

    from safetensors import safe_open

    from minisgl.models import weight

    sent: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []

    def stream() -> Any:
        with safe_open(tensors, "pt") as opened:
            for key in order:
                alive.append(sum(reference() is not None for reference in sent))
                tensor = opened.get_tensor(key).clone()
                sent.append(weakref.ref(tensor))
                yield key, tensor
                del tensor

    names, came_after = [], []
    for name, tensor in weight.merge_stream(stream(), model_config(config)):
        names.append(name)
        came_after.append(len(sent))
        del tensor
    return {"names": names, "came_after": came_after, "alive": alive}


def check_complete(stored: dict[str, list[Any]], wanted: dict[str, list[list[Any]]]) -> None:
    """Ask whether stored tensors (key -> [dtype, shape, file]) are what is wanted: an exception, or None."""
    from minisgl.checkpoint import StoredTensor
    from minisgl.models import weight

    found = {
        key: StoredTensor(key, Path(file), dtype, tuple(shape), offset=0, num_bytes=0)
        for key, (dtype, shape, file) in stored.items()
    }
    parts = {name: {key: tuple(shape) for key, shape in rows} for name, rows in wanted.items()}
    weight.check_complete(found, parts)


def plan(folder: str, tp_rank: int = 0, tp_size: int = 1) -> list[dict[str, Any]]:
    """Ask for one rank's plan of a checkpoint: of each parameter the name, shape and pieces."""
    return [
        {
            "name": made.name,
            "shape": list(made.shape),
            "pieces": [
                {
                    "file": piece.source.file.name,
                    "offset": piece.source.offset,
                    "stored_shape": list(piece.source.shape),
                    "source": _bounds(piece.source_slice, list(piece.source.shape)),
                }
                for piece in made.pieces
            ],
        }
        for made in _plans(folder, tp_rank, tp_size)
    ]


def _plans(folder: str, tp_rank: int, tp_size: int) -> list[Any]:
    from minisgl.checkpoint import open_checkpoint, standard_tensors
    from minisgl.models import ModelConfig, weight
    from minisgl.utils import cached_load_hf_config

    made = ModelConfig.from_hf(cached_load_hf_config(folder))
    return list(weight.plan_load(standard_tensors(open_checkpoint(folder)), made, tp_rank, tp_size))


def _dirty_memory() -> None:
    """Have torch.empty give NaN, so that what nobody fills can be seen.

    This is what torch.use_deterministic_algorithms(True) does, without the second that its import of a compiler takes.
    """
    torch._C._set_deterministic_algorithms(True)


def loaded(
    folder: str, tp_rank: int = 0, tp_size: int = 1, only: list[str] | None = None, device: str = "cpu"
) -> dict[str, Any]:
    """Drain load_weight as one rank: the names in their order and the tensors, or only some of them."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    _dirty_memory()
    set_tp_info(tp_rank, tp_size)
    names, tensors = [], {}
    for name, tensor in load_weight(folder, torch.device(device), progress=False):
        names.append(name)
        if only is None or name in only:
            tensors[name] = tensor
    homes = {tensor.untyped_storage().data_ptr() for tensor in tensors.values() if tensor.numel()}
    return {
        "names": names,
        "tensors": tensors,
        "share_memory": len(homes) < sum(tensor.numel() > 0 for tensor in tensors.values()),
    }


def broken(folder: str, tp_rank: int = 0, tp_size: int = 1) -> dict[str, Any]:
    """Drain load_weight of a bad checkpoint: the exception's kinds and message, and what came out before it."""
    from minisgl.distributed import set_tp_info
    from minisgl.models import load_weight

    set_tp_info(tp_rank, tp_size)
    names: list[str] = []
    try:
        for name, _ in load_weight(folder, torch.device("cpu"), progress=False):
            names.append(name)
    except Exception as error:  # whatever it is, the check judges its kind
        message = str(error).replace(folder, "the folder")  # the same words wherever the folder lies
        return {"kinds": [kind.__name__ for kind in type(error).__mro__], "message": message, "came_before": names}
    return {"kinds": [], "message": "", "came_before": names}


def answer(folder: str, prompts: list[list[int]]) -> torch.Tensor:
    """Build the model that a checkpoint describes, load it in three lines, and ask for the prompts' logits."""
    from minisgl.core import Batch, forward_context
    from minisgl.models import ModelConfig, create_model, load_weight
    from minisgl.utils import cached_load_hf_config

    with torch.device("meta"):
        model = create_model(ModelConfig.from_hf(cached_load_hf_config(folder)))
    model.load_state_dict(dict(load_weight(folder, torch.device("cpu"), progress=False)))
    with torch.no_grad(), forward_context(Batch.prefill(prompts)):
        return model.forward()

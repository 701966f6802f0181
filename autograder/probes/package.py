"""Questions about the whole package: does it load a model, and does the model speak?"""

from __future__ import annotations

from typing import Any

import torch


def logits(folder: str, prompts: list[list[int]]) -> torch.Tensor:
    """Load a checkpoint with the provided engine, which calls the student's modules, and score the next tokens."""
    return _engine(folder).logits(prompts)


def generated(folder: str, prompts: list[list[int]], max_new_tokens: int) -> list[list[int]]:
    """Continue prompts greedily: the new tokens of each."""
    return _engine(folder).generate(prompts, max_new_tokens)


def _engine(folder: str) -> Any:
    from minisgl.engine import Engine

    return Engine(folder, dtype="float32", device="cpu", progress=False)


def keys_of(folder: str) -> dict[str, Any]:
    """Load a checkpoint and compare: is every parameter of the model the very tensor that the loader handed out?"""
    from minisgl.models import ModelConfig, create_model, load_weight
    from minisgl.utils import cached_load_hf_config, torch_dtype

    weights = dict(load_weight(folder, torch.device("cpu"), progress=False))
    dtype = next(iter(weights.values())).dtype
    with torch.device("meta"), torch_dtype(dtype):
        model = create_model(ModelConfig.from_hf(cached_load_hf_config(folder)))
    model.load_state_dict(weights)
    parameters = model.state_dict()
    return {
        "keys": sorted(parameters),
        "on_meta": sorted(name for name, tensor in parameters.items() if tensor.is_meta),
        "copied": sorted(name for name, tensor in parameters.items() if tensor is not weights[name]),
    }

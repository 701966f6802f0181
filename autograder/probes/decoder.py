"""Questions about ``models/base.py``, ``utils.py``, ``decoder.py`` and ``register.py``.

``config`` is always the content of a config.json, ``part`` a class of these files or ``create_model``, and ``weights``
the path of a safetensors file whose keys are the part's own.
"""

from __future__ import annotations

from typing import Any

import torch

from autograder.probes.config import read_hf_config

_HOMES = {
    "RopeAttn": "utils",
    "GatedMLP": "utils",
    "MoEMLP": "utils",
    "DecoderLayer": "decoder",
    "DecoderModel": "decoder",
    "CausalLM": "decoder",
    "LlamaForCausalLM": "decoder",
    "Qwen2ForCausalLM": "decoder",
    "Qwen3ForCausalLM": "decoder",
    "Qwen3MoeForCausalLM": "decoder",
    "create_model": "register",
}


def build(part: str, config: dict[str, Any], layer_id: int = 0) -> Any:
    """Build an object of one of the student's classes."""
    from importlib import import_module

    from minisgl.models import ModelConfig

    made = ModelConfig.from_hf(read_hf_config(config))
    maker = getattr(import_module(f"minisgl.models.{_HOMES[part]}"), part)
    return maker(made, layer_id) if part in ("RopeAttn", "DecoderLayer") else maker(made)


def parameters(
    part: str, config: dict[str, Any], layer_id: int = 0, tp_rank: int = 0, tp_size: int = 1, dtype: str = "float32"
) -> Any:
    """Ask for the parameters of a part: key -> shape and dtype, built on the meta device as one rank."""
    from minisgl.distributed import use_tp_info
    from minisgl.utils import torch_dtype

    with use_tp_info(tp_rank, tp_size), torch.device("meta"), torch_dtype(getattr(torch, dtype)):
        return dict(build(part, config, layer_id).state_dict())


def output(
    part: str, config: dict[str, Any], weights: str, prompts: list[list[int]], layer_id: int = 0
) -> torch.Tensor:
    """Ask what a part computes for a prefill of these prompts.

    The file's ``hidden_states`` go in; without them the token ids do, and a whole model gets nothing.
    """
    return _prefill(part, config, weights, prompts, layer_id)[0]


def input_afterwards(part: str, config: dict[str, Any], weights: str, prompts: list[list[int]]) -> torch.Tensor:
    """Ask what the file's ``hidden_states`` hold after they went through a part."""
    return _prefill(part, config, weights, prompts, 0)[1]


def _prefill(part: str, config: dict[str, Any], weights: str, prompts: list[list[int]], layer_id: int) -> Any:
    """Return what a part makes of a prefill, and the tensor that went in."""
    from safetensors.torch import load_file

    from minisgl.core import Batch, forward_context

    stored = load_file(weights)
    hidden_states = stored.pop("hidden_states", None)
    op = build(part, config, layer_id)
    op.load_state_dict(stored)
    batch = Batch.prefill(prompts)
    inputs = [batch.input_ids] if part == "DecoderModel" else []
    inputs = inputs if hidden_states is None else [hidden_states]
    with torch.no_grad(), forward_context(batch):
        return op.forward(*inputs), hidden_states


def continuation(
    part: str, config: dict[str, Any], weights: str, prompts: list[list[int]], following: list[list[int]]
) -> list[torch.Tensor]:
    """Ask for the logits after the prompts and after each of the following tokens, with a KV cache in use."""
    from safetensors.torch import load_file

    from minisgl.attention import KVCache
    from minisgl.core import Batch, forward_context
    from minisgl.models import ModelConfig

    model = build(part, config)
    model.load_state_dict(load_file(weights))
    made = ModelConfig.from_hf(read_hf_config(config))
    lengths = [len(prompt) for prompt in prompts]
    capacity = max(lengths) + len(following)
    cache = KVCache(made.num_layers, len(prompts), made.num_kv_heads, capacity, made.head_dim, torch.float32)
    logits = []
    with torch.no_grad():
        with forward_context(Batch.prefill(prompts), cache):
            logits.append(model.forward())
        for step, tokens in enumerate(following):
            batch = Batch.decode(torch.tensor(tokens), [length + step for length in lengths])
            with forward_context(batch, cache):
                logits.append(model.forward())
    return logits


def base_class() -> dict[str, Any]:
    """Ask what BaseLLMModel is and allows."""
    import abc
    import inspect

    from minisgl.layers import BaseOP
    from minisgl.models.base import BaseLLMModel

    class Forgetful(BaseLLMModel):
        pass

    class Complete(BaseLLMModel):
        def __init__(self) -> None:
            self.weight = torch.ones(2)

        def forward(self) -> int:
            return 7

    def can_be_created(kind: type) -> bool:
        try:
            kind()
        except TypeError:
            return False
        return True

    complete = Complete()
    forward = vars(BaseLLMModel).get("forward")
    keys = list(complete.state_dict()) if isinstance(complete, BaseOP) else []
    return {
        "is_a_layer": issubclass(BaseLLMModel, BaseOP),
        "heeds_abstract_methods": isinstance(BaseLLMModel, abc.ABCMeta),
        "forward_is_abstract": bool(getattr(forward, "__isabstractmethod__", False)),
        "arguments_of_forward": list(inspect.signature(BaseLLMModel.forward).parameters),
        "created": can_be_created(BaseLLMModel),
        "created_without_forward": can_be_created(Forgetful),
        "result_of_forward": complete.forward(),
        "keys": keys,
    }


def family(config: dict[str, Any]) -> dict[str, Any]:
    """Ask which class create_model chooses, and what its objects are."""
    from minisgl.models.base import BaseLLMModel
    from minisgl.models.decoder import CausalLM

    with torch.device("meta"):
        model = build("create_model", config)
    kinds = [kind.__name__ for kind in type(model).__mro__]
    return {
        "class": type(model).__name__,
        "classes": kinds,
        "is_a_causal_lm": isinstance(model, CausalLM),
        "is_a_base_model": isinstance(model, BaseLLMModel),
    }


def classes() -> dict[str, Any]:
    """Ask which classes the four architectures are, and whether they are of one another's kind."""
    from minisgl.models import decoder

    names = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM")
    found = [getattr(decoder, name) for name in names]
    return {
        "names": [kind.__name__ for kind in found],
        "are_causal_lms": [issubclass(kind, decoder.CausalLM) for kind in found],
        "different": len(set(found)),
    }


def refused_architecture(config: dict[str, Any], architectures: list[str]) -> None:
    """Ask create_model for a model of another architecture: an exception, or None."""
    from dataclasses import replace

    from minisgl.models import ModelConfig, create_model

    made = ModelConfig.from_hf(read_hf_config(config))
    with torch.device("meta"):
        create_model(replace(made, architectures=tuple(architectures)))


def paths(config: dict[str, Any], paths: list[str]) -> dict[str, bool]:
    """Ask whether each path of attributes (``op_list[0]`` for the first layer) leads to the parameter of that key."""
    with torch.device("meta"):
        model = build("create_model", config)
    parameters = model.state_dict()
    answer = {}
    for path in paths:
        place: Any = model
        for word in path.split("."):
            name, _, index = word.partition("[")
            place = getattr(place, name)
            place = place[int(index.rstrip("]"))] if index else place
        key = path.replace(".op_list[", ".").replace("]", "")
        answer[path] = place is parameters.get(key)
    return answer


def written_layers(part: str, config: dict[str, Any], num_layers: int, layer_ids: list[int]) -> list[list[int]]:
    """Ask which layers of a KV cache each object writes to, when built with these layer ids."""
    from minisgl.attention import KVCache
    from minisgl.core import Batch, forward_context
    from minisgl.models import ModelConfig

    made = ModelConfig.from_hf(read_hf_config(config))
    answer = []
    for layer_id in layer_ids:
        op = build(part, config, layer_id)
        op.load_state_dict({key: torch.full_like(value, 0.01) for key, value in op.state_dict().items()})
        cache = KVCache(num_layers, 1, made.num_kv_heads, 2, made.head_dim, torch.float32)
        batch = Batch.prefill([[1, 2]])
        inputs = batch.input_ids if part == "DecoderModel" else torch.ones(2, made.hidden_size)
        with torch.no_grad(), forward_context(batch, cache):
            op.forward(inputs)
        answer.append([layer for layer in range(num_layers) if bool(cache.values[layer].any())])
    return answer

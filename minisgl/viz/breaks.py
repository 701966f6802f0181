"""Ways to break a loaded model that keep every shape right, so that nothing but its words gives it away."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from minisgl.errors import MinisglError
from minisgl.viz.needs import need_written

State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Break:
    """One mistake.

    Attributes:
        label: What was done, in a few words.
        why: Why it happens and why no shape check sees it.
        change: Gives another config and state from the healthy ones.
        applies: Whether a model of this config can be broken this way.
    """

    label: str
    why: str
    change: Callable[[Any, State], tuple[Any, State]]
    applies: Callable[[Any], bool] = lambda config: True


def _swap_qkv(config: Any, state: State) -> tuple[Any, State]:
    q, kv = config.num_qo_heads * config.head_dim, config.num_kv_heads * config.head_dim

    def swapped(tensor: torch.Tensor) -> torch.Tensor:
        query, key, value = tensor.split([q, kv, kv])
        return torch.cat([key, query, value])

    return config, {name: swapped(tensor) if ".qkv_proj." in name else tensor for name, tensor in state.items()}


def _swap_gate_up(config: Any, state: State) -> tuple[Any, State]:
    def swapped(tensor: torch.Tensor) -> torch.Tensor:
        dim = 1 if tensor.dim() == 3 else 0
        return torch.cat(tensor.chunk(2, dim)[::-1], dim)

    return config, {name: swapped(tensor) if "gate_up_proj" in name else tensor for name, tensor in state.items()}


def _drop_qk_norm(config: Any, state: State) -> tuple[Any, State]:
    # A class that differs in nothing but the norms; for experts there is none, so the norms' weights become ones.
    if config.is_moe:
        return config, {
            name: torch.ones_like(tensor) if _is_qk_norm(name) else tensor for name, tensor in state.items()
        }
    config = replace(config, architectures=("LlamaForCausalLM",))
    return config, {name: tensor for name, tensor in state.items() if not _is_qk_norm(name)}


def _halve_head_dim(config: Any, state: State) -> tuple[Any, State]:
    head_dim = config.head_dim // 2
    rotary = replace(config.rotary_config, head_dim=head_dim, rotary_dim=head_dim)
    heads = {"num_qo_heads": 2 * config.num_qo_heads, "num_kv_heads": 2 * config.num_kv_heads}
    config = replace(config, head_dim=head_dim, rotary_config=rotary, **heads)
    return config, {name: tensor[:head_dim].clone() if _is_qk_norm(name) else tensor for name, tensor in state.items()}


def wrong_base(base: float) -> float:
    """Give the base that a careless reader takes: the default, or a common one where the default is right."""
    return 10_000.0 if base != 10_000.0 else 1_000_000.0


def _wrong_base(config: Any, state: State) -> tuple[Any, State]:
    base = wrong_base(config.rotary_config.base)
    return replace(config, rotary_config=replace(config.rotary_config, base=base)), state


def _is_qk_norm(name: str) -> bool:
    return name.endswith(("q_norm.weight", "k_norm.weight"))


BREAKS: dict[str, Break] = {
    "swap_qkv": Break(
        "rows of qkv_proj in the order k, q, v",
        "Merged in file order or alphabetically, k comes before q. The merged shape is the same.",
        _swap_qkv,
    ),
    "swap_gate_up": Break(
        "gate and up swapped",
        "SiLU then acts on the wrong half. Both halves have one shape, so any order fits.",
        _swap_gate_up,
    ),
    "drop_qk_norm": Break(
        "QK-norm left out",
        "No field of config.json says that Qwen3 normalizes q and k; a loader that drops unknown keys hides it.",
        _drop_qk_norm,
        lambda config: config.has_qk_norm,
    ),
    "head_dim": Break(
        "head_dim half as large",
        "Twice as many heads of half the size fill the same matrices: what counts is where one head ends.",
        _halve_head_dim,
        lambda config: config.head_dim % 4 == 0,
    ),
    "rope_base": Break(
        "wrong RoPE base",
        "The class default in the place of the config's value. Short prompts hardly show it; long ones do.",
        _wrong_base,
    ),
}


def broken_copy(engine: Any, kind: str) -> Any:
    """Give a second engine that has one mistake; weights that the mistake doesn't touch are shared, not copied.

    Raises:
        MinisglError: The model can't be broken that way.
        NotWrittenYet: The model classes aren't ready.
    """
    broken = BREAKS[kind]
    if not broken.applies(engine.config):
        architecture = engine.config.architectures[0]
        raise MinisglError(
            f"{broken.label}: {architecture} has none. Expected a model with it. Choose another mistake or model."
        )
    create_model, torch_dtype = (
        need_written("models.register", "create_model"),
        need_written("utils.dtype", "torch_dtype"),
    )
    config, state = broken.change(engine.config, dict(engine.model.state_dict()))
    copied = copy.copy(engine)
    copied.config = config
    copied._local_num_kv_heads = config.num_kv_heads
    with torch.device("meta"), torch_dtype(engine.dtype):
        copied.model = create_model(config)
    copied.model.load_state_dict(state)
    return copied

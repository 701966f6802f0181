"""The frequencies of each RoPE type, as transformers computes them.

All start from base ** (-2i / dim) for i in 0 … dim/2 - 1: low i turn fast and tell neighbours apart, high i turn slowly
and tell far from near. The types differ in how they stretch the slow ones to contexts longer than those of training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from minisgl.errors import ConfigError


class RopeSizes(Protocol):
    """What is read of a ``RotaryConfig`` here. Layers import no models, so they say themselves what they need."""

    @property
    def head_dim(self) -> int:
        """Numbers of one head."""

    @property
    def rotary_dim(self) -> int:
        """How many of them are rotated."""

    @property
    def max_position(self) -> int:
        """Positions that the model was trained for."""

    @property
    def base(self) -> float:
        """The base of the frequencies, rope_theta."""

    @property
    def scaling(self) -> Mapping[str, Any] | None:
        """How they are stretched, or None."""


def inverse_frequencies(config: RopeSizes) -> tuple[torch.Tensor, float]:
    """Return the angle per position of each pair, and the factor on cos and sin.

    Returns:
        float32 [rotary_dim / 2] on the CPU, and a float.

    Raises:
        ConfigError: the scaling's rope_type is unknown, or a value that it needs is missing or not a number.
    """
    if config.scaling is None:
        return _unscaled(config), 1.0
    rope_type = config.scaling.get("rope_type")
    if rope_type not in _COMPUTE:
        raise ConfigError(
            f"rope_type is {rope_type!r}; expected one of {', '.join(sorted(_COMPUTE))}, or no scaling. "
            "Use a checkpoint with one of these."
        )
    return _COMPUTE[rope_type](config, config.scaling)


def dynamic_inverse_frequencies(config: RopeSizes, seq_lens: torch.Tensor) -> torch.Tensor:
    """Return the frequencies of requests that are `seq_lens` tokens long: float32 [num_requests, rotary_dim / 2].

    Up to max_position nothing changes; beyond it the base grows with the length.

    Source: "NTK-aware scaled RoPE", as in transformers' `_compute_dynamic_ntk_parameters`.
    """
    assert config.scaling is not None
    factor, dim = _number(config.scaling, "factor"), config.rotary_dim
    if dim <= 2:
        raise ConfigError(f"head_dim is {dim} with rope_type 'dynamic'; expected more than 2.")
    lengths = seq_lens.clamp(min=config.max_position)
    growth = factor * lengths / config.max_position - (factor - 1)
    base = config.base * growth ** (dim / (dim - 2))
    return 1.0 / base.unsqueeze(-1) ** _exponents(dim)


def longest_sequence(config: RopeSizes) -> int | None:
    """Return how many tokens a sequence may have before positions come that the model never learned to tell apart.

    Returns:
        A number of tokens; None for the dynamic type, which adapts to every length.
    """
    scaling = config.scaling
    if scaling is None or scaling["rope_type"] == "llama3":
        return config.max_position
    if scaling["rope_type"] == "dynamic":
        return None
    # Many configs keep max_position at the length before the scaling.
    before: float = config.max_position
    if scaling["rope_type"] == "yarn":
        before = _number(scaling, "original_max_position_embeddings", default=config.max_position)
    factor = _number(scaling, "factor", default=config.max_position / before)
    return max(config.max_position, int(before * factor))


def _exponents(dim: int) -> torch.Tensor:
    return torch.arange(0, dim, 2, dtype=torch.float32, device="cpu") / dim


def _unscaled(config: RopeSizes) -> torch.Tensor:
    return 1.0 / config.base ** _exponents(config.rotary_dim)


def _linear(config: RopeSizes, scaling: Mapping[str, Any]) -> tuple[torch.Tensor, float]:
    """Slow every frequency down by the same factor."""
    return _unscaled(config) / _number(scaling, "factor"), 1.0


def _dynamic(config: RopeSizes, scaling: Mapping[str, Any]) -> tuple[torch.Tensor, float]:
    """Start with the frequencies of a request that fits into max_position."""
    return dynamic_inverse_frequencies(config, torch.tensor([config.max_position], device="cpu"))[0], 1.0


def _yarn(config: RopeSizes, scaling: Mapping[str, Any]) -> tuple[torch.Tensor, float]:
    """Keep fast frequencies, slow the slow ones down by `factor`, and blend in between.

    Source: Peng et al. 2023, "YaRN", sections 3.2 and 3.4.
    """
    dim = config.rotary_dim
    original = _number(scaling, "original_max_position_embeddings", default=config.max_position)
    factor = _number(scaling, "factor", default=config.max_position / original)

    def pair_that_turns(rotations: float) -> float:
        """Return the (fractional) pair that turns `rotations` times over the original context."""
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(config.base))

    low = pair_that_turns(_number(scaling, "beta_fast", default=32.0))
    high = pair_that_turns(_number(scaling, "beta_slow", default=1.0))
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    slowed = ((torch.arange(dim // 2, dtype=torch.float32, device="cpu") - low) / (high - low)).clamp(0, 1)
    positional = config.base ** _exponents(dim)
    # The share that keeps its frequency, written as transformers does, so that the last bits agree.
    kept = 1 - slowed
    inv_freq = 1.0 / (factor * positional) * (1 - kept) + 1.0 / positional * kept
    return inv_freq, _yarn_attention_scaling(scaling, factor)


def _yarn_attention_scaling(scaling: Mapping[str, Any], factor: float) -> float:
    """Return the factor on cos and sin; its square is the attention temperature that YaRN adds."""

    def temperature(mscale: float) -> float:
        return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if scaling.get("attention_factor") is not None:
        return _number(scaling, "attention_factor")
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return temperature(_number(scaling, "mscale")) / temperature(_number(scaling, "mscale_all_dim"))
    return temperature(1.0)


def _llama3(config: RopeSizes, scaling: Mapping[str, Any]) -> tuple[torch.Tensor, float]:
    """Keep short wavelengths, stretch long ones by `factor`, and blend in between.

    Source: Llama 3.1's reference code, as in transformers' `_compute_llama3_parameters`.
    """
    factor = _number(scaling, "factor")
    low_freq_factor = _number(scaling, "low_freq_factor")
    high_freq_factor = _number(scaling, "high_freq_factor")
    original = _number(scaling, "original_max_position_embeddings", default=config.max_position)
    inv_freq = _unscaled(config)
    wavelength = 2 * math.pi / inv_freq
    blend = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)
    blended = (1 - blend) * inv_freq / factor + blend * inv_freq
    is_long = wavelength > original / low_freq_factor
    is_short = wavelength < original / high_freq_factor
    return torch.where(is_long, inv_freq / factor, torch.where(is_short, inv_freq, blended)), 1.0


_COMPUTE: dict[str, Callable[[RopeSizes, Mapping[str, Any]], tuple[torch.Tensor, float]]] = {
    "dynamic": _dynamic,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
}


def _number(scaling: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """Read one number of the scaling; absent, null and 0 count as absent, as in transformers."""
    value = scaling.get(name) or default
    if isinstance(value, bool) or not isinstance(value, int | float):
        found = f"{name} is {scaling[name]!r}" if scaling.get(name) is not None else f"{name} is missing"
        raise ConfigError(
            f"{found} in the RoPE scaling of type {scaling['rope_type']!r}; expected a positive number. "
            "Correct rope_parameters (or rope_scaling) in config.json."
        )
    return value

"""Rotary position embedding: from positions to cos and sin.

No table of all positions is kept. A pass computes cos and sin of just its own positions, once for all layers; so
building a model costs nothing, and every position works, however long the context.
"""

from __future__ import annotations

import json

import torch

from minisgl.core import Context
from minisgl.errors import ConfigError
from minisgl.layers.rope_types import RopeSizes, dynamic_inverse_frequencies, inverse_frequencies


class RotaryEmbedding:
    """Compute cos and sin of the angles by which heads are rotated.

    Attributes:
        inv_freq: float32 [rotary_dim / 2] on the rope device, the angle per position of each pair.
        attention_scaling: factor on cos and sin; 1.0 except for yarn.
    """

    def __init__(self, config: RopeSizes, device: torch.device) -> None:
        """Compute the frequencies of `config` on the CPU and keep them on `device`.

        Raises:
            ConfigError: only a part of each head would be rotated, or the scaling is unknown or incomplete.
        """
        if config.rotary_dim != config.head_dim:
            raise ConfigError(
                f"rotary_dim is {config.rotary_dim} and head_dim {config.head_dim}: partial rotation isn't computed "
                "here; expected the two to be equal. Use a model without partial_rotary_factor."
            )
        # On the CPU always: a pow on another device may round the last bit differently from transformers.
        inv_freq, self.attention_scaling = inverse_frequencies(config)
        self.inv_freq = inv_freq.to(device)
        self._config = config
        self._is_dynamic = config.scaling is not None and config.scaling["rope_type"] == "dynamic"

    def tables(self, context: Context, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cos and sin for every token of the pass, computed by the first layer that asks.

        Args:
            context: the running forward pass.
            dtype: of the result; the angles themselves are always float32.

        Returns:
            Two tensors [num_tokens, head_dim]; the second half of the columns repeats the first.
        """
        key = (self, dtype)
        if key not in context.rotary_tables:
            cos, sin = self.cos_sin(context.batch.positions, self._frequencies(context))
            context.rotary_tables[key] = (cos.to(dtype), sin.to(dtype))
        return context.rotary_tables[key]

    def cos_sin(
        self, positions: torch.Tensor, inv_freq: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cos and sin, float32 [num_tokens, head_dim], of `positions` [num_tokens].

        Args:
            positions: each token's place in its request.
            inv_freq: [rotary_dim / 2] for all tokens, or [num_tokens, rotary_dim / 2]; None for this object's own.
        """
        inv_freq = self.inv_freq if inv_freq is None else inv_freq
        angles = positions.unsqueeze(-1).float() * inv_freq.to(positions.device)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling

    def _frequencies(self, context: Context) -> torch.Tensor:
        """Return the frequencies of this pass: [rotary_dim / 2], or one row a token for the dynamic type.

        The dynamic type's depend on how long a request is now. transformers takes the longest of the batch, and keeps
        what the longest batch so far needed until a short one comes; here each request has the frequencies that it
        would have alone in a fresh model, so its answer depends on nothing but itself.
        """
        if not self._is_dynamic:
            return self.inv_freq
        batch = context.batch
        per_request = dynamic_inverse_frequencies(self._config, torch.tensor(batch.seq_lens))
        per_token = per_request.repeat_interleave(torch.tensor(batch.query_lens), dim=0)
        return per_token.to(batch.positions.device)


_rope_device = torch.device("cpu")
_cache: dict[tuple[object, ...], RotaryEmbedding] = {}


def set_rope_device(device: torch.device | str) -> None:
    """Say where rotary tables live; models built from now on use it.

    A model that is built on the meta device has no data to compute with, but its frequencies aren't in the checkpoint:
    they have to be real from the start.

    Raises:
        ConfigError: `device` is the meta device.
    """
    global _rope_device
    device = torch.device(device)
    if device.type == "meta":
        raise ConfigError(
            "the rope device is meta, which holds no data; expected a real one. "
            "Call set_rope_device with the device that the weights go to, such as 'cpu' or 'cuda'."
        )
    _rope_device = device


def get_rope(rotary_config: RopeSizes) -> RotaryEmbedding:
    """Return the rotary embedding of `rotary_config` on the rope device; the same object for the same config.

    Raises:
        ConfigError: the config asks for something that isn't computed here, or lacks a value.
    """
    config = rotary_config
    scaling = json.dumps(config.scaling, sort_keys=True)
    key = (config.head_dim, config.rotary_dim, config.max_position, config.base, scaling, _rope_device)
    if key not in _cache:
        # The meta-device and default-dtype contexts around a model's building must not reach these tensors.
        with torch.device("cpu"):
            _cache[key] = RotaryEmbedding(config, _rope_device)
    return _cache[key]

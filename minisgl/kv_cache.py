"""Keys and values of the tokens that were seen, one contiguous slot a request."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class KVCache:
    """Keep keys and values of a batch of requests.

    Slot i belongs to the batch's request i. A slot is as long as the longest request may become: simple, and
    wasteful when lengths differ much, which is what paged caches solve.

    Attributes:
        keys: [num_layers, num_requests, num_kv_heads, capacity, head_dim]; kv heads are this rank's.
        values: as `keys`.
    """

    def __init__(
        self,
        num_layers: int,
        num_requests: int,
        num_kv_heads: int,
        capacity: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> None:
        """Take the memory for all slots at once, 2 * num_layers * num_requests * ... values.

        Args:
            num_layers: decoder layers.
            num_requests: slots.
            num_kv_heads: kv heads that this rank holds.
            capacity: tokens that a slot has room for.
            head_dim: values of one head.
            dtype: of keys and values.
            device: where they lie.
        """
        shape = (num_layers, num_requests, num_kv_heads, capacity, head_dim)
        # Zeros, not empty: room that isn't written yet is masked, and a NaN times the mask's 0 would still be NaN.
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)

    @property
    def capacity(self) -> int:
        """Count the tokens that a slot has room for."""
        return self.keys.shape[3]

    def write(self, layer_id: int, request: int, start: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store one request's new tokens of one layer.

        Args:
            layer_id: which layer.
            request: which slot.
            start: position of the first new token.
            keys: [num_new_tokens, num_kv_heads, head_dim].
            values: as `keys`.
        """
        place = slice(start, start + keys.shape[0])
        self.keys[layer_id, request, :, place] = keys.transpose(0, 1)
        self.values[layer_id, request, :, place] = values.transpose(0, 1)

    def write_each(self, layer_id: int, positions: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store one new token of every request of one layer.

        Args:
            layer_id: which layer.
            positions: int64 [num_requests], where each request's token goes.
            keys: [num_requests, num_kv_heads, head_dim].
            values: as `keys`.
        """
        slots = torch.arange(positions.numel(), device=positions.device)
        self.keys[layer_id][slots, :, positions] = keys
        self.values[layer_id][slots, :, positions] = values

    def read(self, layer_id: int, request: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return views of one request's first `length` tokens: keys and values [num_kv_heads, length, head_dim]."""
        return self.keys[layer_id, request, :, :length], self.values[layer_id, request, :, :length]

    def keep(self, requests: Sequence[int]) -> None:
        """Drop the slots of finished requests; slot i is then that of `requests[i]`. Copies what stays, once."""
        index = torch.tensor(list(requests), dtype=torch.int64, device=self.keys.device)
        self.keys = self.keys.index_select(1, index)
        self.values = self.values.index_select(1, index)

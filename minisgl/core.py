"""What one forward pass works on: the batch, and the context through which every layer reaches it.

Tokens of all requests lie behind one another in one flat dimension, without padding: three prompts of 5, 2 and 7
tokens make `input_ids` of shape [14]. Layers that don't care where a request ends (linear layers, norms, experts)
never need to know; attention and the LM head read the lengths from the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import torch

from minisgl.errors import MinisglError

if TYPE_CHECKING:
    from minisgl.kv_cache import KVCache


@dataclass
class Batch:
    """Hold the tokens of one forward pass, all requests behind one another.

    Attributes:
        input_ids: int64 [num_tokens], the new tokens of every request.
        positions: int64 [num_tokens], each token's place in its own request, from 0.
        query_lens: new tokens of each request in this pass, one entry a request.
        seq_lens: all tokens of each request after this pass (cached ones and new ones), one entry a request.
        is_prefill: True when prompts are read, False when each request adds exactly one token.
    """

    input_ids: torch.Tensor
    positions: torch.Tensor
    query_lens: list[int]
    seq_lens: list[int]
    is_prefill: bool

    def __post_init__(self) -> None:
        assert len(self.query_lens) == len(self.seq_lens)
        assert sum(self.query_lens) == self.input_ids.numel() == self.positions.numel()
        assert self.is_prefill or all(length == 1 for length in self.query_lens)

    @classmethod
    def prefill(cls, prompts: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Batch:
        """Build the batch that reads whole prompts, each from its position 0.

        Args:
            prompts: token ids of each request; none may be empty.
            device: where `input_ids` and `positions` are put.

        Raises:
            MinisglError: there is no prompt, or one is empty.
        """
        lengths = [len(prompt) for prompt in prompts]
        if not lengths or 0 in lengths:
            empty = [index for index, length in enumerate(lengths) if length == 0]
            what = f"prompt {empty[0]} is empty" if empty else "there is no prompt"
            raise MinisglError(f"can't build a batch: {what}; expected at least one token id in each prompt.")
        input_ids = torch.tensor([token for prompt in prompts for token in prompt], dtype=torch.int64, device=device)
        positions = torch.cat([torch.arange(length, device=device) for length in lengths])
        return cls(input_ids, positions, lengths, list(lengths), is_prefill=True)

    @classmethod
    def decode(cls, tokens: torch.Tensor, cached_lens: Sequence[int]) -> Batch:
        """Build the batch that adds one token to each request.

        Args:
            tokens: int64 [batch_size], the token to add to each request.
            cached_lens: how many tokens of each request the KV cache holds already.
        """
        positions = torch.tensor(list(cached_lens), dtype=torch.int64, device=tokens.device)
        return cls(tokens, positions, [1] * len(cached_lens), [length + 1 for length in cached_lens], is_prefill=False)

    @property
    def size(self) -> int:
        """Count the requests."""
        return len(self.query_lens)

    def last_token_indices(self) -> torch.Tensor:
        """Return where each request's last token lies in the flat dimension: int64 [batch_size]."""
        ends = [end - 1 for end in accumulate(self.query_lens)]
        return torch.tensor(ends, dtype=torch.int64, device=self.input_ids.device)


@dataclass
class Context:
    """Hold what the layers of one forward pass share.

    Attributes:
        batch: the tokens of this pass.
        kv_cache: where attention stores keys and values, or None for a prefill that nothing follows.
        rotary_tables: cos and sin of this pass's positions, computed by the first layer and used by all.
    """

    batch: Batch
    kv_cache: KVCache | None = None
    rotary_tables: dict[object, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)


# A context variable and not a plain global: two threads that run two models at once each see their own pass.
_current: ContextVar[Context | None] = ContextVar("minisgl_context", default=None)


def get_global_ctx() -> Context:
    """Return the context of the forward pass that is running.

    Raises:
        MinisglError: no forward pass is running.
    """
    context = _current.get()
    if context is None:
        raise MinisglError(
            "no forward pass is running, so there is no batch to read; expected the call to happen inside "
            "`with forward_context(batch):` (minisgl.core). Set the context around model.forward()."
        )
    return context


@contextmanager
def forward_context(batch: Batch, kv_cache: KVCache | None = None) -> Iterator[Context]:
    """Make `batch` and `kv_cache` the global context while the `with` block runs.

    On leaving the block, also by an exception, the context from before is back. A decode batch needs a cache.

    Raises:
        MinisglError: `batch` continues requests but no `kv_cache` holds their earlier tokens.
    """
    if kv_cache is None and batch.query_lens != batch.seq_lens:
        raise MinisglError(
            f"the batch continues requests (new tokens {batch.query_lens}, all tokens {batch.seq_lens}) without a KV "
            "cache; expected kv_cache=KVCache(...) with the earlier tokens. Pass the cache that the prefill filled."
        )
    context = Context(batch, kv_cache)
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)

"""Token embedding and LM head, cut over the ranks by vocabulary.

Each rank holds ceil(vocab_size / tp_size) rows; the last one's surplus rows are zeros and never reach the result.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.core import get_global_ctx
from minisgl.distributed import all_gather, all_reduce, get_tp_info
from minisgl.layers.base import BaseOP
from minisgl.utils.division import div_ceil


class VocabParallelEmbedding(BaseOP):
    """Look token ids up in a table that is cut by rows.

    Attributes:
        weight: [ceil(num_embeddings / tp_size), embedding_dim].
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        """Make room for this rank's rows."""
        info = get_tp_info()
        local_num_embeddings = div_ceil(num_embeddings, info.size)
        self.weight = torch.empty(local_num_embeddings, embedding_dim)
        self._first_id = info.rank * local_num_embeddings
        self._tp_size = info.size

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of `input_ids` [num_tokens], below num_embeddings, as [num_tokens, embedding_dim]."""
        if self._tp_size == 1:
            return F.embedding(input_ids, self.weight)
        local_ids = input_ids - self._first_id
        elsewhere = (local_ids < 0) | (local_ids >= self.weight.shape[0])
        rows = F.embedding(local_ids.masked_fill(elsewhere, 0), self.weight)
        # One rank has the row, the others give zeros: the sum is exact in every dtype.
        return all_reduce(rows.masked_fill(elsewhere.unsqueeze(-1), 0))


class ParallelLMHead(BaseOP):
    """Turn hidden states into logits over the vocabulary, one row a request.

    Attributes:
        weight: [ceil(num_embeddings / tp_size), embedding_dim]; absent when tied to an embedding.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, tied_embedding: VocabParallelEmbedding | None = None
    ) -> None:
        """Make room for this rank's rows, or borrow those of `tied_embedding`."""
        self._num_embeddings = num_embeddings
        self._tied_embedding = tied_embedding
        if tied_embedding is None:
            self.weight = torch.empty(div_ceil(num_embeddings, get_tp_info().size), embedding_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the logits of each request's last token.

        In prefill the other tokens are dropped first: their logits, num_tokens times vocab_size values, would be
        the largest tensor of the whole pass and nobody reads them.

        Args:
            x: [num_tokens, embedding_dim].

        Returns:
            A new tensor [batch_size, num_embeddings], the same on all ranks.
        """
        batch = get_global_ctx().batch
        if batch.is_prefill:
            x = x[batch.last_token_indices()]
        weight = self.weight if self._tied_embedding is None else self._tied_embedding.weight
        shards = all_gather(F.linear(x, weight))
        # [tp_size, batch_size, local rows] to [batch_size, tp_size * local rows], then cut the padding.
        logits = shards.transpose(0, 1).reshape(x.shape[0], -1)
        return logits[:, : self._num_embeddings]

    def _dropped_keys(self, prefix: str) -> set[str]:
        """Let a checkpoint store the head though it is tied: the embedding serves, the stored copy is dropped."""
        return set() if self._tied_embedding is None else {f"{prefix}.weight" if prefix else "weight"}

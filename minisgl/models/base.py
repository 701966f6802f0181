"""What every language model of this engine has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from minisgl.layers import BaseOP

if TYPE_CHECKING:
    import torch


class BaseLLMModel(ABC, BaseOP):
    """Promise the one thing that the engine asks of a model: logits for the current batch.

    A model takes no arguments. It reads the token ids, their positions and the KV cache from the global
    context, so that the engine can prepare them once for all layers.
    """

    @abstractmethod
    def forward(self) -> torch.Tensor:
        """Compute one row of logits for each request of the global context's batch.

        Returns:
            Logits [batch_size, vocab_size], in the model's dtype.
        """

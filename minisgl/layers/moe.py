"""The packed experts of a mixture-of-experts layer."""

from __future__ import annotations

import torch

from minisgl.distributed import all_reduce, local_size
from minisgl.kernel import moe_forward
from minisgl.layers.base import BaseOP


class MoELayer(BaseOP):
    """Hold all experts in two packed tensors; each rank has a share of every expert.

    Attributes:
        gate_up_proj: [num_experts, 2 * local_intermediate_size, hidden_size], gate rows before up rows.
        down_proj: [num_experts, hidden_size, local_intermediate_size].
    """

    def __init__(
        self, num_experts: int, top_k: int, hidden_size: int, intermediate_size: int, renormalize: bool
    ) -> None:
        """Make room for this rank's share of the experts.

        Args:
            num_experts: experts in the layer.
            top_k: experts that each token goes to.
            hidden_size: width of the residual stream.
            intermediate_size: width of one expert (`moe_intermediate_size`).
            renormalize: whether the chosen experts' weights are scaled to sum to 1.

        Raises:
            MinisglError: the number of ranks doesn't divide `intermediate_size`.
        """
        local_intermediate_size = local_size(intermediate_size, "moe_intermediate_size")
        self.gate_up_proj = torch.empty(num_experts, 2 * local_intermediate_size, hidden_size)
        self.down_proj = torch.empty(num_experts, hidden_size, local_intermediate_size)
        self._top_k = top_k
        self._renormalize = renormalize

    def forward(self, hidden_states: torch.Tensor, router_logits: torch.Tensor) -> torch.Tensor:
        """Mix the experts' answers.

        Args:
            hidden_states: [num_tokens, hidden_size].
            router_logits: [num_tokens, num_experts], before the softmax.

        Returns:
            A new tensor [num_tokens, hidden_size], the same on all ranks.
        """
        output = moe_forward(
            hidden_states, router_logits, self.gate_up_proj, self.down_proj, self._top_k, self._renormalize
        )
        return all_reduce(output)

"""Linear layers, whole or cut over the ranks.

A weight is [output, input]. Cut by rows (column parallel, after the textbook's transposed notation), a rank computes
some of the outputs; cut by columns (row parallel), it computes a part of the sum of every output.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from minisgl.distributed import all_reduce, local_num_kv_heads, local_num_qo_heads, local_size
from minisgl.layers.base import BaseOP


class _Linear(BaseOP):
    """Hold `weight` [output, input] and `bias` [output], or None, of this rank."""

    def __init__(self, local_input_size: int, local_output_size: int, bias_size: int | None) -> None:
        self.weight = torch.empty(local_output_size, local_input_size)
        self.bias = None if bias_size is None else torch.empty(bias_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [num_tokens, local_input_size] to a new tensor [num_tokens, local_output_size]."""
        return F.linear(x, self.weight, self.bias)


class LinearReplicated(_Linear):
    """Hold the whole weight on every rank; used for the MoE router gate."""

    def __init__(self, input_size: int, output_size: int, has_bias: bool) -> None:
        """Make room for weight [output_size, input_size]."""
        super().__init__(input_size, output_size, output_size if has_bias else None)


class LinearColParallelMerged(_Linear):
    """Hold several projections of one input as one weight, each cut by rows over the ranks.

    The rank's rows of the first projection come first, then its rows of the second, and so on.
    """

    def __init__(self, input_size: int, output_sizes: Sequence[int], has_bias: bool) -> None:
        """Make room for weight [sum(output_sizes) / tp_size, input_size].

        Raises:
            MinisglError: the number of ranks doesn't divide one of `output_sizes`.
        """
        local_output_size = sum(local_size(size, "the output size") for size in output_sizes)
        super().__init__(input_size, local_output_size, local_output_size if has_bias else None)


class LinearQKVMerged(_Linear):
    """Hold q_proj, k_proj and v_proj as one weight: rows of q, then k, then v, whole heads of this rank."""

    def __init__(self, hidden_size: int, head_dim: int, num_qo_heads: int, num_kv_heads: int, has_bias: bool) -> None:
        """Make room for weight [(local_num_qo_heads + 2 * local_num_kv_heads) * head_dim, hidden_size].

        Raises:
            MinisglError: the heads can't be dealt out to this number of ranks.
        """
        local_q = local_num_qo_heads(num_qo_heads, num_kv_heads)
        local_kv = local_num_kv_heads(num_qo_heads, num_kv_heads)
        local_output_size = (local_q + 2 * local_kv) * head_dim
        super().__init__(hidden_size, local_output_size, local_output_size if has_bias else None)


class LinearRowParallel(_Linear):
    """Hold a weight cut by columns over the ranks; the parts of the sum are added up over all ranks.

    The bias is whole on every rank and added once, after the sum: added before, it would count once a rank.
    """

    def __init__(self, input_size: int, output_size: int, has_bias: bool) -> None:
        """Make room for weight [output_size, input_size / tp_size].

        Raises:
            MinisglError: the number of ranks doesn't divide `input_size`.
        """
        super().__init__(local_size(input_size, "the input size"), output_size, output_size if has_bias else None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [num_tokens, local_input_size] to a new tensor [num_tokens, output_size], the same on all ranks."""
        output = all_reduce(F.linear(x, self.weight))
        return output if self.bias is None else output + self.bias

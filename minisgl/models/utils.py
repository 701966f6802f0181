"""The sub-layers of a decoder layer: attention, the dense MLP and the mixture of experts.

Shapes: T tokens of the whole batch, laid end to end; H hidden_size; local_ is this rank's share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minisgl.layers import (
    AttentionLayer,
    BaseOP,
    LinearColParallelMerged,
    LinearQKVMerged,
    LinearReplicated,
    LinearRowParallel,
    MoELayer,
    RMSNorm,
    silu_and_mul,
)

if TYPE_CHECKING:
    import torch

    from minisgl.models.config import ModelConfig


class RopeAttn(BaseOP):
    """Compute self-attention with rotary positions.

    q, k and v come from one matrix product, ``qkv_proj``. With QK-norm each head of q and of k is
    normalized over its ``head_dim`` numbers before the rotation (Qwen3).
    """

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        self.qkv_proj = LinearQKVMerged(
            config.hidden_size,
            config.head_dim,
            config.num_qo_heads,
            config.num_kv_heads,
            has_bias=config.attention_bias,
        )
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps) if config.has_qk_norm else None
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps) if config.has_qk_norm else None
        self.attention = AttentionLayer(
            layer_id,
            config.num_qo_heads,
            config.num_kv_heads,
            config.head_dim,
            config.rotary_config,
            q_norm=self.q_norm,
            k_norm=self.k_norm,
        )
        self.o_proj = LinearRowParallel(
            config.num_qo_heads * config.head_dim, config.hidden_size, has_bias=config.attention_out_bias
        )

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Attend from every token to its own request's tokens so far.

        Args:
            hidden_states: [T, H].

        Returns:
            [T, H], the same on every rank.
        """
        # [T, H] -> [T, local_q_dim + 2 * local_kv_dim] -> [T, local_q_dim] -> [T, H]
        qkv = self.qkv_proj.forward(hidden_states)
        return self.o_proj.forward(self.attention.forward(qkv))


class GatedMLP(BaseOP):
    """Compute SwiGLU: ``down(silu(gate(x)) * up(x))``, with gate and up in one matrix product.

    Source: Shazeer, GLU Variants Improve Transformer, https://arxiv.org/abs/2002.05202.
    """

    def __init__(self, config: ModelConfig) -> None:
        inner_sizes = [config.intermediate_size, config.intermediate_size]
        self.gate_up_proj = LinearColParallelMerged(config.hidden_size, inner_sizes, has_bias=config.mlp_bias)
        self.down_proj = LinearRowParallel(config.intermediate_size, config.hidden_size, has_bias=config.mlp_bias)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Map [T, H] to [T, H]."""
        gate_up = self.gate_up_proj.forward(hidden_states)
        return self.down_proj.forward(silu_and_mul(gate_up))


class MoEMLP(BaseOP):
    """Send each token to a few experts, each a small ``GatedMLP``, and add what they answer.

    The router ``gate`` scores all experts; the experts' weights are packed into two tensors.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.gate = LinearReplicated(config.hidden_size, config.num_experts, has_bias=False)
        self.experts = MoELayer(
            num_experts=config.num_experts,
            top_k=config.num_experts_per_tok,
            hidden_size=config.hidden_size,
            intermediate_size=config.moe_intermediate_size,
            renormalize=config.norm_topk_prob,
        )

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Map [T, H] to [T, H]."""
        router_logits = self.gate.forward(hidden_states)
        return self.experts.forward(hidden_states, router_logits)

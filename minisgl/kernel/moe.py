"""The experts of a mixture-of-experts layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from minisgl.kernel.activation import silu_and_mul


def moe_forward(
    hidden_states: torch.Tensor,
    router_logits: torch.Tensor,
    gate_up_proj: torch.Tensor,
    down_proj: torch.Tensor,
    top_k: int,
    renormalize: bool,
) -> torch.Tensor:
    """Send each token to its `top_k` experts and add their answers up, weighted by the router.

    Args:
        hidden_states: [num_tokens, hidden_size].
        router_logits: [num_tokens, num_experts], same dtype.
        gate_up_proj: [num_experts, 2 * intermediate_size, hidden_size].
        down_proj: [num_experts, hidden_size, intermediate_size].
        top_k: how many experts a token goes to.
        renormalize: whether the chosen experts' weights are scaled to sum to 1 (`norm_topk_prob`).

    Returns:
        A new tensor [num_tokens, hidden_size] of `hidden_states`' dtype.

    Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", with softmax before the choice as in Qwen3-MoE.
    """
    weights, experts = _route(router_logits, top_k, renormalize)
    # Sorting (token, expert) pairs by expert makes each expert's tokens one slice: one matrix product an expert.
    order = experts.flatten().argsort(stable=True)
    token_of_pair = order // top_k
    weight_of_pair = weights.flatten()[order].unsqueeze(-1)
    counts = torch.bincount(experts.flatten(), minlength=gate_up_proj.shape[0]).tolist()
    output = torch.zeros_like(hidden_states)
    start = 0
    for expert, count in enumerate(counts):
        if count == 0:
            continue
        pairs = slice(start, start + count)
        start += count
        tokens = token_of_pair[pairs]
        activated = silu_and_mul(F.linear(hidden_states[tokens], gate_up_proj[expert]))
        answer = F.linear(activated, down_proj[expert]) * weight_of_pair[pairs]
        output.index_add_(0, tokens, answer)
    return output


def _route(router_logits: torch.Tensor, top_k: int, renormalize: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose experts and weigh them: two tensors [num_tokens, top_k], the weights in the logits' dtype.

    The softmax runs over all experts in float32; in bfloat16 near-ties would pick other experts.
    """
    probabilities = torch.softmax(router_logits, dim=-1, dtype=torch.float32)
    weights, experts = torch.topk(probabilities, top_k, dim=-1)
    if renormalize:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights.to(router_logits.dtype), experts

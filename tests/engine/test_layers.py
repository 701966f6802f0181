"""Each layer computes its formula, and its shares over the ranks add up to the whole."""

import pytest
import torch
import torch.nn.functional as F

import minisgl.layers.embedding
import minisgl.layers.linear
from minisgl.core import Batch, forward_context
from minisgl.distributed import use_tp_info
from minisgl.errors import MinisglError
from minisgl.layers import (
    LinearColParallelMerged,
    LinearQKVMerged,
    LinearReplicated,
    LinearRowParallel,
    MoELayer,
    ParallelLMHead,
    RMSNorm,
    VocabParallelEmbedding,
    silu_and_mul,
)
from minisgl.utils import torch_dtype


def fill(op):
    op.load_state_dict({key: torch.randn_like(tensor) for key, tensor in op.state_dict().items()})
    return op


def test_rms_norm_scales_by_the_root_mean_square() -> None:
    norm = fill(RMSNorm(6, 0.1))
    x = torch.randn(3, 2, 6)
    expected = x / (x.square().mean(-1, keepdim=True) + 0.1).sqrt() * norm.weight
    torch.testing.assert_close(norm.forward(x), expected)


def test_rms_norm_rounds_before_it_scales() -> None:
    with torch_dtype(torch.bfloat16):
        norm = fill(RMSNorm(64, 1e-6))
    x = torch.randn(5, 64).bfloat16()
    wide = x.float()
    expected = norm.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).bfloat16()
    assert torch.equal(norm.forward(x), expected)


def test_silu_and_mul_activates_the_first_half() -> None:
    x = torch.randn(3, 8)
    torch.testing.assert_close(silu_and_mul(x), x[:, :4] * torch.sigmoid(x[:, :4]) * x[:, 4:])


@pytest.mark.parametrize(
    ("layer", "weight", "bias"),
    [
        (lambda: LinearReplicated(6, 5, True), (5, 6), (5,)),
        (lambda: LinearColParallelMerged(6, [8, 8], True), (8, 6), (8,)),
        (lambda: LinearQKVMerged(6, 4, 8, 2, True), (24, 6), (24,)),
        (lambda: LinearRowParallel(6, 5, True), (5, 3), (5,)),
        (lambda: VocabParallelEmbedding(7, 6), (4, 6), None),
        (lambda: ParallelLMHead(7, 6), (4, 6), None),
    ],
    ids=["replicated", "column", "qkv", "row", "embedding", "head"],
)
def test_a_rank_of_two_holds_its_share(layer, weight, bias) -> None:
    with use_tp_info(1, 2):
        state = layer().state_dict()
    assert tuple(state["weight"].shape) == weight
    assert ("bias" in state) == (bias is not None)
    if bias is not None:
        assert tuple(state["bias"].shape) == bias


def test_experts_are_cut_by_their_width() -> None:
    with use_tp_info(0, 2):
        experts = MoELayer(num_experts=3, top_k=1, hidden_size=6, intermediate_size=8, renormalize=True)
    shapes = {key: tuple(tensor.shape) for key, tensor in experts.state_dict().items()}
    assert shapes == {"gate_up_proj": (3, 8, 6), "down_proj": (3, 6, 4)}


@pytest.mark.parametrize(
    "build",
    [
        lambda: LinearColParallelMerged(4, [6, 7], False),
        lambda: LinearRowParallel(7, 4, False),
        lambda: LinearQKVMerged(4, 2, 3, 3, False),
        lambda: MoELayer(2, 1, 4, 7, True),
    ],
)
def test_shares_that_are_not_whole_are_refused(build) -> None:
    with use_tp_info(0, 2), pytest.raises(MinisglError, match="can't be divided over tp size 2; expected one of these"):
        build()


def test_a_layer_without_bias_has_no_bias_key() -> None:
    layer = LinearReplicated(3, 2, False)
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]


def test_linear_layers_compute_the_affine_map() -> None:
    x = torch.randn(4, 6)
    for layer in (
        LinearReplicated(6, 5, True),
        LinearRowParallel(6, 5, True),
        LinearColParallelMerged(6, [2, 3], True),
    ):
        fill(layer)
        torch.testing.assert_close(layer.forward(x), x @ layer.weight.T + layer.bias)


def test_the_row_parallel_bias_is_added_once_after_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, x = fill(LinearRowParallel(6, 5, True)), torch.randn(4, 6)
    partial_sums = []
    for rank in range(3):
        with use_tp_info(rank, 3):
            layer = LinearRowParallel(6, 5, True)
        columns = slice(2 * rank, 2 * rank + 2)
        layer.load_state_dict({"weight": whole.weight[:, columns], "bias": whole.bias})
        monkeypatch.setattr(minisgl.layers.linear, "all_reduce", lambda part: partial_sums.append(part) or part)
        layer.forward(x[:, columns])
    torch.testing.assert_close(sum(partial_sums) + whole.bias, x @ whole.weight.T + whole.bias)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_embedding_shards_add_up_to_the_whole_table(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minisgl.layers.embedding, "all_reduce", lambda rows: rows)
    whole, ids = fill(VocabParallelEmbedding(11, 4)), torch.tensor([0, 10, 3, 3, 7, 5])
    rows = -(-11 // size)
    padded = F.pad(whole.weight, (0, 0, 0, rows * size - 11))
    parts = []
    for rank in range(size):
        with use_tp_info(rank, size):
            shard = VocabParallelEmbedding(11, 4)
        shard.load_state_dict({"weight": padded[rank * rows : (rank + 1) * rows]})
        parts.append(shard.forward(ids))
    assert torch.equal(sum(parts), whole.weight[ids])


def test_the_head_keeps_only_last_tokens_in_prefill_and_all_in_decode() -> None:
    head = fill(ParallelLMHead(11, 4))
    x = torch.randn(5, 4)
    with forward_context(Batch.prefill([[1, 2, 3], [4, 5]])):
        torch.testing.assert_close(head.forward(x), x[[2, 4]] @ head.weight.T)
    decode = Batch(torch.arange(5), torch.zeros(5, dtype=torch.int64), [1] * 5, [1] * 5, is_prefill=False)
    with forward_context(decode):
        torch.testing.assert_close(head.forward(x), x @ head.weight.T)


def test_the_head_cuts_the_padding_of_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_tp_info(0, 2):
        head = fill(ParallelLMHead(7, 4))
    monkeypatch.setattr(minisgl.layers.embedding, "all_gather", lambda part: torch.stack([part, part + 100]))
    x = torch.randn(2, 4)
    with forward_context(Batch.prefill([[1], [2]])):
        logits = head.forward(x)
    local = x @ head.weight.T
    torch.testing.assert_close(logits, torch.cat([local, local + 100], dim=1)[:, :7])


def test_a_tied_head_has_no_key_uses_the_embedding_and_drops_a_stored_copy() -> None:
    embedding = fill(VocabParallelEmbedding(7, 4))
    head = ParallelLMHead(7, 4, tied_embedding=embedding)
    assert head.state_dict() == {}
    head.load_state_dict({"weight": torch.zeros(7, 4)})
    x = torch.randn(1, 4)
    with forward_context(Batch.prefill([[1]])):
        torch.testing.assert_close(head.forward(x), x @ embedding.weight.T)


@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_experts_equal_the_sum_over_every_token_and_choice(top_k: int, renormalize: bool) -> None:
    experts = fill(MoELayer(4, top_k, 6, 8, renormalize))
    x, router_logits = torch.randn(9, 6), torch.randn(9, 4)
    weights, chosen = torch.softmax(router_logits, -1).topk(top_k)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    expected = torch.zeros_like(x)
    for token in range(9):
        for weight, expert in zip(weights[token], chosen[token].tolist(), strict=True):
            gate, up = (experts.gate_up_proj[expert] @ x[token]).chunk(2)
            expected[token] += weight * (experts.down_proj[expert] @ (F.silu(gate) * up))
    torch.testing.assert_close(experts.forward(x, router_logits), expected)

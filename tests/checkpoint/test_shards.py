"""All ranks' shares put together are the whole model: values that tell every row from every other, not shapes."""

from pathlib import Path

import pytest
import torch

from minisgl.checkpoint.maker import make_checkpoint
from tests.checkpoint.tiny import CONFIGS, Weights, equal, load, merged

HEADS, KV_HEADS, VOCAB = 8, 2, 131


def rejoin(name: str, shares: list[torch.Tensor], head_dim: int) -> torch.Tensor:
    """Put one parameter's shares together."""
    size = len(shares)
    projection = name.split(".")[-2] if not name.endswith(("gate_up_proj", "down_proj")) else name.split(".")[-1]
    if projection == "qkv_proj":
        rows = [HEADS // size * head_dim] + [max(1, KV_HEADS // size) * head_dim] * 2
        q, k, v = (torch.cat(part) for part in zip(*(share.split(rows) for share in shares), strict=True))
        copies = max(1, size // KV_HEADS)  # ranks that share one kv head hold it each
        for part in (k, v):
            groups = part.view(-1, copies, head_dim, *part.shape[1:])
            assert all(equal(groups[:, copy], groups[:, 0]) for copy in range(copies))
        return torch.cat(
            [q, *(part.view(-1, copies, head_dim, *part.shape[1:])[:, 0].flatten(0, 1) for part in (k, v))]
        )
    if projection == "gate_up_proj":
        halves = [share.chunk(2, dim=share.dim() - (2 if share.dim() > 1 else 1)) for share in shares]
        dim = -2 if shares[0].dim() > 1 else 0
        return torch.cat([torch.cat(half, dim=dim) for half in zip(*halves, strict=True)], dim=dim)
    if projection in ("o_proj", "down_proj") and shares[0].dim() > 1:
        return torch.cat(shares, dim=-1)
    if projection in ("embed_tokens", "lm_head"):
        rows = torch.cat(shares)
        assert not rows[VOCAB:].any(), "the padding isn't zero"
        assert len({share.shape for share in shares}) == 1
        return rows[:VOCAB]
    assert all(equal(share, shares[0]) for share in shares), f"{name} isn't the same on all ranks"
    return shares[0]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("model, packed_experts", [*((model, False) for model in CONFIGS), ("qwen3 moe", True)])
def test_all_shares_make_up_the_whole_model(tmp_path: Path, model: str, size: int, packed_experts: bool) -> None:
    config = CONFIGS[model]
    folder = make_checkpoint(tmp_path / "made", config, data="tagged", files=2, packed_experts=packed_experts)
    shares = [load(folder, rank, size) for rank in range(size)]
    expected: Weights = merged(config, data="tagged")
    assert all(share.keys() == expected.keys() for share in shares)
    head_dim = int(config.get("head_dim", 8))
    for name, tensor in expected.items():
        assert equal(rejoin(name, [share[name] for share in shares], head_dim), tensor), name


def test_more_ranks_than_vocabulary_rows_leave_the_last_ranks_zeros(tmp_path: Path) -> None:
    config = {**CONFIGS["llama"], "vocab_size": 5}
    folder = make_checkpoint(tmp_path / "made", config, data="tagged")
    shares = [load(folder, rank, 4)["model.embed_tokens.weight"] for rank in range(4)]
    assert [tuple(share.shape) for share in shares] == [(2, 64)] * 4
    whole = merged(config, data="tagged")["model.embed_tokens.weight"]
    assert equal(torch.cat(shares)[:5], whole)
    assert not torch.cat(shares)[5:].any()

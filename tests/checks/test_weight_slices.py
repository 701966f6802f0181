"""What every right shard_slice does: one rank's share, worked out head by head."""

import random

import pytest

from autograder.judge.checking import cases, expect, expect_true
from autograder.judge.oracles import local_tensor, small, stored_tensors

GROUPED = small("llama", num_attention_heads=8, num_key_value_heads=2, attention_bias=True, mlp_bias=True)
QWEN2 = small("qwen2", num_attention_heads=4, num_key_value_heads=4, intermediate_size=32)
MIXTURE = small("qwen3_moe", vocab_size=101)
SMALL_VOCABULARY = small("llama", vocab_size=5)
SLICES = [
    {"id": "one-rank", "config": GROUPED, "tp_size": 1},
    {"id": "two-ranks", "config": GROUPED, "tp_size": 2},
    {"id": "more-ranks-than-kv-heads", "config": GROUPED, "tp_size": 4},
    {"id": "a-rank-for-each-head", "config": GROUPED, "tp_size": 8},
    {"id": "as-many-kv-heads", "config": QWEN2, "tp_size": 4},
    {"id": "experts-and-an-odd-vocabulary", "config": MIXTURE, "tp_size": 4},
    {"id": "ranks-without-a-word", "config": SMALL_VOCABULARY, "tp_size": 4},
]


def draw_slices(source: random.Random):
    tp_size = source.choice([2, 3, 4, 6])
    kv_heads = source.choice([count for count in (1, 2, 3, 4, 6, 12) if tp_size % count == 0 or count % tp_size == 0])
    heads = kv_heads * tp_size * source.choice([1, 2])
    sizes = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": source.choice([4, 6])}
    sizes |= {"intermediate_size": 12 * source.choice([2, 5]), "moe_intermediate_size": 12 * source.choice([1, 3])}
    sizes |= {"vocab_size": source.randint(7, 97), "hidden_size": source.choice([8, 24])}
    return {"config": small(source.choice(["llama", "qwen2", "qwen3_moe"]), **sizes), "tp_size": tp_size}


def kinds(config):
    """Choose one stored tensor of each kind: layer 0 (two experts of it) and what belongs to no layer."""
    wanted = (".layers.0.", "embed_tokens", "model.norm", "lm_head")
    stored = stored_tensors(config, data="tagged")
    keys = [key for key in stored if any(word in key for word in wanted)]
    keys = [key for key in keys if ".experts." not in key or ".experts.0." in key or ".experts.11." in key]
    return {key: stored[key] for key in keys}


@pytest.mark.part("weight.shard_slice", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("shard_slice", visible=SLICES, draw=draw_slices))
def test_a_slice_is_exactly_what_the_rank_holds(subject, case):
    """Each kind of tensor, on each rank: the rows or columns that this rank's layers want, and no others."""
    config, tp_size = case["config"], case["tp_size"]
    tensors = kinds(config)
    args = {
        "config": config,
        "shapes": {key: list(tensor.shape) for key, tensor in tensors.items()},
        "tp_size": tp_size,
    }
    found = subject.ask("weight.shard_slice", args)
    for key, tensor in tensors.items():
        for rank, bounds in enumerate(found[key]):
            inside = all(0 <= start <= stop <= size for (start, stop), size in zip(bounds, tensor.shape, strict=True))
            hint = "stop at the last row there is, and start no later: what is read is stop minus start"
            expect_true(inside, f"{key} on rank {rank} of {tp_size}: {bounds} of {list(tensor.shape)}", hint=hint)
            cut = tensor[tuple(slice(start, stop) for start, stop in bounds)]
            expected = local_tensor(key, tensor, config, rank, tp_size)
            num_rows = max(0, min(tensor.shape[0] - rank * expected.shape[0], expected.shape[0]))
            expected = expected[:num_rows] if "embed_tokens" in key or "lm_head" in key else expected
            check_cut(key, cut, expected, f"{key} on rank {rank} of {tp_size}: {bounds}")


def check_cut(key, cut, expected, what):
    """Compare one rank's cut, with the hint for its kind of tensor."""
    projection = key.split(".")[-2]
    if projection in ("k_proj", "v_proj"):
        hint = "a rank needs the kv heads that its query heads attend to; with too few heads, neighbours share one"
        expect(cut, expected, what=what, hint=hint)
    elif projection in ("embed_tokens", "lm_head"):
        hint = "ceil(rows / ranks) for each rank; the last ones get what is left, which may be nothing"
        expect(cut, expected, what=what, hint=hint)
    elif key.endswith("bias"):
        hint = "a bias is split like its weight's rows; that of o_proj and down_proj is whole, since it is added once"
        expect(cut, expected, what=what, hint=hint)
    else:
        hint = "look the projection (the key's last word but one) up in SPLIT_DIM; what isn't there stays whole"
        expect(cut, expected, what=what, hint=hint)

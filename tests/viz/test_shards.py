"""The shard explorer's model against shard_slice, rank by rank, and its picture."""

import pytest
import torch

from minisgl.errors import MinisglError
from minisgl.models import ModelConfig
from minisgl.models.weight import shard_slice
from minisgl.utils import cached_load_hf_config
from minisgl.viz.known import small
from minisgl.viz.layout import supported_tp_sizes
from minisgl.viz.shards import ShardModel
from tests.viz.test_stepper import TINY

UNEVEN = {**TINY, "vocab_size": 131}
BIASED = {**TINY, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
EXPERTS = small(
    "Qwen3-30B-A3B", num_hidden_layers=1, hidden_size=64, moe_intermediate_size=32, num_attention_heads=8,
    num_key_value_heads=2, head_dim=16, vocab_size=128, num_experts=4, num_experts_per_tok=2,
)  # fmt: skip


@pytest.mark.parametrize("config", [TINY, UNEVEN, BIASED, EXPERTS])
def test_every_ranks_shares_are_those_of_shard_slice(config, tmp_path):
    import json

    (tmp_path / "config.json").write_text(json.dumps(config))
    model_config = ModelConfig.from_hf(cached_load_hf_config(tmp_path))
    model = ShardModel(config)
    for tp_size in model.tp_sizes:
        total = 0
        for rank in range(tp_size):
            model.set_ranks(tp_size, rank)
            for key, shape in model.shapes.items():
                numbered = torch.arange(torch.Size(shape).numel(), dtype=torch.int32).view(shape) + 1
                expected = numbered[shard_slice(key, shape, model_config, rank, tp_size)]
                share = model.sharding.share(key, shape)
                part = numbered if share.dim is None else numbered.narrow(share.dim, share.start, share.size)
                assert torch.equal(expected, part)
                padded = (expected.shape[0] + share.padding, *expected.shape[1:])
                assert padded == model.sharding.local_shape(key, shape)
                total += torch.Size(padded).numel()
        assert total * 2 == sum(ShardModel(config, tp_size, rank).local_bytes for rank in range(tp_size))


def test_replicated_kv_heads_by_hand():
    model = ShardModel("Qwen3-0.6B", 16, 5)
    assert list(model.heads("q")) == [5]
    assert list(model.heads("k")) == [2], "rank 5 shares kv head 2 with rank 4"
    assert model.ranks_of_head("v", 2) == [4, 5]
    assert model.share("k").copies == 2
    assert "each on 2 ranks" in model.summary()


def test_padded_vocabulary_by_hand():
    model = ShardModel("Llama with 32,003 tokens", 4, 3)
    share = model.share("vocab")
    assert (share.start, share.size, share.padding) == (3 * 8001, 8000, 1)
    assert "1 row of zeros" in model.picture().to_svg()


@pytest.mark.parametrize("name", ShardModel.choices)
def test_supported_sizes_are_those_of_the_engine(name, tmp_path):
    import json

    from minisgl.distributed import supported_tp_sizes as engine_sizes

    config = ShardModel.choices[name]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert supported_tp_sizes(config) == engine_sizes(ModelConfig.from_hf(cached_load_hf_config(tmp_path)))


def test_a_number_of_ranks_that_does_not_work_is_refused_with_those_that_do():
    with pytest.raises(MinisglError, match=r"can't be cut for 3 ranks\. Expected one of 1, 2, 4, 8, 16"):
        ShardModel("Qwen3-0.6B", 3)
    with pytest.raises(MinisglError, match=r"rank is 4\. Expected 0 to 3"):
        ShardModel("Qwen3-0.6B", 4, 4)


def test_another_model_keeps_the_nearest_number_of_ranks():
    model = ShardModel("Qwen3-0.6B", 16, 15)
    model.choose("SmolLM2-135M")
    assert (model.tp_size, model.tp_rank) == (3, 2)


def test_words_and_picture_name_this_ranks_parts():
    model = ShardModel("Qwen3-30B-A3B", 8, 3)
    words, svg = model.describe(), model.picture().to_svg()
    assert "q heads 12–15" in words and "q heads 12–15" in svg
    assert "every one of the 128 experts" in words and "128 experts" in svg
    assert model.static().axes

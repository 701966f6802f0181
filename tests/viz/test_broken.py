"""Broken models: right shapes, wrong words; the healthy one stays healthy."""

import pytest
import torch

from minisgl.engine import Engine
from minisgl.errors import MinisglError
from minisgl.tiny_models import TINY_MODELS, tiny_model_path
from minisgl.viz.breaks import BREAKS, broken_copy, wrong_base
from minisgl.viz.broken import BreakItModel, default_model
from minisgl.viz.needs import NotWrittenYet


@pytest.mark.parametrize("name", TINY_MODELS)
def test_every_mistake_changes_the_logits_and_leaves_the_healthy_model_alone(name):
    engine = Engine(tiny_model_path(name), progress=False)
    prompt = [list(range(5, 25))]
    healthy = engine.logits(prompt)
    kinds = [kind for kind, broken in BREAKS.items() if broken.applies(engine.config)]
    assert {"swap_qkv", "swap_gate_up", "rope_base"} <= set(kinds)
    for kind in kinds:
        broken = broken_copy(engine, kind)
        logits = broken.logits(prompt)
        assert logits.shape == healthy.shape
        assert not torch.allclose(logits.float(), healthy.float(), atol=1e-3), kind
        assert len(broken.generate(prompt, 3)[0]) <= 3
    assert torch.equal(engine.logits(prompt), healthy)


def test_qk_norm_can_only_be_dropped_where_there_is_one():
    engine = Engine(tiny_model_path("tiny-llama"), progress=False)
    with pytest.raises(MinisglError, match="QK-norm left out: LlamaForCausalLM has none"):
        broken_copy(engine, "drop_qk_norm")


def test_the_wrong_base_is_never_the_right_one():
    assert wrong_base(1e6) == 1e4 and wrong_base(1e4) != 1e4


def test_texts_and_difference_stand_side_by_side():
    model = BreakItModel("tiny-qwen3", prompt="The", max_new_tokens=6)
    assert "Press Run" in model.summary()
    model.run()
    assert "drop_qk_norm" in model.choices
    difference = (model.healthy.logits - model.broken.logits).abs().max().item()
    assert model.largest_difference == difference > 0
    assert model.rank_in_broken >= 1
    words, svg = model.describe(), model.picture().to_svg()
    assert repr(model.healthy.text) in words and repr(model.broken.text) in words
    assert f"{model.healthy.top[0][1]:.2f}" in svg and f"{model.broken.top[0][1]:.2f}" in svg
    assert model.static().axes


def test_a_change_makes_old_words_go():
    model = BreakItModel("tiny-qwen3", prompt="The", max_new_tokens=2)
    model.run()
    healthy = model.healthy
    model.change(kind="rope_base")
    assert model.healthy is None and model.broken is None
    model.run()
    assert model.healthy is healthy, "the healthy answer is computed once"


def test_without_a_fetched_model_a_tiny_one_is_broken(monkeypatch, tmp_path):
    monkeypatch.setenv("MINISGL_CACHE", str(tmp_path))
    assert default_model() == "tiny-qwen3"
    (tmp_path / "SmolLM2-135M-Instruct").mkdir()
    (tmp_path / "SmolLM2-135M-Instruct/config.json").write_text("{}")
    assert default_model() == str(tmp_path / "SmolLM2-135M-Instruct")


def test_a_half_written_model_is_named_as_such(monkeypatch):
    def unfinished(config):
        raise NotImplementedError("write create_model")

    monkeypatch.setattr("minisgl.engine.create_model", unfinished)
    with pytest.raises(NotWrittenYet, match="loading tiny-llama stopped with NotImplementedError: write create_model"):
        BreakItModel("tiny-llama").run()


def test_an_unknown_mistake_is_refused():
    with pytest.raises(MinisglError, match=r"no mistake 'typo'\. Expected one of swap_qkv"):
        BreakItModel("tiny-llama", kind="typo")

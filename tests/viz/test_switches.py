"""The switches' model against the real model classes."""

import pytest

from minisgl.viz.needs import NotWrittenYet
from minisgl.viz.switches import ARCHITECTURES, SwitchesModel, model_shapes


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_keys_and_shapes_equal_those_of_the_model_classes(architecture):
    model = SwitchesModel()
    model.choose(architecture)
    assert model.architecture == architecture
    assert model.shapes() == model_shapes(architecture)
    assert model.compare_with_model() == f"your {architecture} has exactly these {len(model.shapes())} keys and shapes"


def test_the_difference_by_hand():
    model = SwitchesModel("LlamaForCausalLM", has_qk_norm=True)
    assert model.architecture == "Qwen3ForCausalLM"
    added = [row.key for row in model.rows() if row.change == "added"]
    assert added == ["model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.k_norm.weight"]
    assert model.num_params() - model.num_params(model.base_shapes) == 2 * 2 * 32
    assert "+128 against LlamaForCausalLM; 4 added, 0 removed" in model.summary()


def test_biases_add_one_key_a_layer():
    model = SwitchesModel("LlamaForCausalLM", attention_bias=True)
    assert [row.after for row in model.rows() if row.change] == [(8 * 32 + 2 * 2 * 32,)]


def test_a_combination_that_nobody_published_has_no_architecture():
    model = SwitchesModel("Qwen2ForCausalLM", is_moe=True)
    assert model.architecture is None
    assert "none of the four" in model.summary()
    assert "no class to compare with" in model.compare_with_model()


def test_a_missing_module_is_named_with_what_to_do(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "minisgl.models.register", None)
    with pytest.raises(
        NotWrittenYet, match=r"needs create_model of models/register\.py, which isn't ready.*Write that part"
    ):
        SwitchesModel().compare_with_model()


def test_a_model_that_differs_is_told_where(monkeypatch):
    from minisgl.viz import switches

    wrong = {**SwitchesModel().shapes(), "model.extra": (1,)}
    del wrong["lm_head.weight"]
    monkeypatch.setattr(switches, "model_shapes", lambda architecture: wrong)
    found = SwitchesModel().compare_with_model()
    assert "missing: lm_head.weight" in found and "unexpected: model.extra" in found


def test_words_and_picture_mark_the_changes():
    model = SwitchesModel()
    model.choose("Qwen3MoeForCausalLM")
    words, svg = model.describe(), model.picture().to_svg()
    assert words.count(" added") == 1 + svg.count(">added<") and svg.count(">removed<") == 2
    assert model.static().axes

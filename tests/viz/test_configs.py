"""The config explorer's model reads what ModelConfig reads, and names each trap."""

import json

import pytest
import torch

from minisgl.errors import MinisglError
from minisgl.models import ModelConfig
from minisgl.models.config import kv_bytes_per_token
from minisgl.utils import cached_load_hf_config
from minisgl.viz.configs import PASTED, ConfigModel
from minisgl.viz.known import KNOWN
from minisgl.viz.views.configs import ConfigExplorer


def with_changes(**changes):
    """A model on Qwen3-0.6B's config with fields changed; None removes one."""
    config = {**KNOWN["Qwen3-0.6B"], **changes}
    model = ConfigModel()
    model.paste(json.dumps({key: value for key, value in config.items() if value is not None}))
    return model


def row(model, name):
    return next(row for row in model.rows if row.name == name)


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_config_is_read_as_model_config_reads_it(name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(KNOWN[name]))
    expected = ModelConfig.from_hf(cached_load_hf_config(tmp_path))
    model = ConfigModel(name)
    values = model.values()
    shared = [field for field in values if hasattr(expected, field)]
    assert {field: values[field] for field in shared} == {field: getattr(expected, field) for field in shared}
    assert len(shared) >= 12
    assert values["rope_theta"] == expected.rotary_config.base
    assert values["rope_type"] == (expected.rotary_config.scaling or {}).get("rope_type", "default")
    assert model.sizes.kv_bytes_per_token == kv_bytes_per_token(expected, getattr(torch, model.sizes.dtype))
    assert not [row for row in model.rows if row.refused]


def test_qwen3_0_6b_by_hand():
    sizes = ConfigModel("Qwen3-0.6B").sizes
    attention = 1024 * 128 * (16 + 8 + 8 + 16) + 2 * 128
    layer = attention + 3 * 1024 * 3072 + 2 * 1024
    assert sizes.num_params == 151936 * 1024 + 28 * layer + 1024
    assert sizes.weight_bytes == 2 * sizes.num_params
    assert sizes.kv_bytes_per_token == 2 * 28 * 8 * 128 * 2 == 114_688


@pytest.mark.parametrize(
    ("changes", "name", "value", "source"),
    [
        ({}, "head_dim", 128, "head_dim"),
        ({"num_key_value_heads": None}, "num_kv_heads", 16, "num_attention_heads"),
        ({"rope_theta": None, "rope_parameters": {"rope_theta": 5e5}}, "rope_theta", 5e5, "rope_parameters.rope_theta"),
        ({"rope_theta": None}, "rope_theta", 10_000.0, "the default"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type", "linear", "rope_scaling.type"),
        ({"attention_bias": True}, "attention_out_bias", True, "attention_bias"),
        ({"architectures": None}, "architecture", "Qwen3ForCausalLM", "model_type"),
        ({"sliding_window": 4096, "use_sliding_window": False}, "sliding_window", "off", "use_sliding_window"),
        ({"architectures": ["Qwen2ForCausalLM"]}, "attention_bias", True, "the architecture"),
    ],
)
def test_a_trap_is_marked_with_where_the_value_comes_from(changes, name, value, source):
    found = row(with_changes(**changes), name)
    assert (found.value, found.source, found.trap) == (value, source, True)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"architectures": ["MixtralForCausalLM"]}, "architecture"),
        ({"sliding_window": 4096}, "sliding_window"),
        ({"quantization_config": {"bits": 4}}, "quantization"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type"),
        ({"rope_scaling": 4}, "rope"),
        ({"num_key_value_heads": 3}, "num_kv_heads"),
        ({"hidden_size": -1}, "hidden_size"),
    ],
)
def test_what_is_not_computed_is_marked_as_refused(changes, name):
    model = with_changes(**changes)
    assert row(model, name).refused
    assert "✕ refused" in model.picture().to_svg()


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null"])
def test_a_text_that_is_no_config_says_so_and_draws_no_table(text):
    model = ConfigModel()
    model.paste(text)
    assert "Expected" in model.error
    assert model.rows == []
    assert model.error[:20] in model.describe()
    model.picture().to_svg()


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(MinisglError, match=r"no known config 'GPT-2'; expected one of Qwen3-0\.6B"):
        ConfigModel("GPT-2")


def test_one_trap_is_one_trap_and_none_is_said_too():
    models = [ConfigModel(name) for name in KNOWN]
    said = {len(model.traps): model.summary().rsplit("; ", 1)[1] for model in models}
    assert (said[0], said[1], said[3]) == ("no traps", "1 trap", "3 traps")


def test_what_is_typed_is_called_pasted_and_stays_to_be_chosen_again():
    panel = ConfigExplorer("Qwen3-8B")
    assert PASTED not in panel._known.options
    typed = json.dumps({**KNOWN["Qwen3-8B"], "head_dim": 64})
    panel._text.value = typed
    assert panel._known.value == panel.model.name == PASTED
    panel._known.value = "Llama-3-70B"
    assert panel.model.config == KNOWN["Llama-3-70B"] == json.loads(panel._text.value)
    panel._known.value = PASTED
    assert panel._text.value == typed
    assert panel.model.values()["head_dim"] == 64
    panel.close()


def test_words_and_picture_say_every_row():
    model = ConfigModel("Qwen2.5-7B with YaRN")
    words, svg = model.describe(), model.picture().to_svg()
    for found in model.rows:
        assert f"{found.name} = {found.value!r}" in words
    assert svg.count("⚠ trap") == len(model.traps) == words.count("TRAP") > 0

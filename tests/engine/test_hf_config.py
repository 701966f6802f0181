"""config.json is read without transformers' class defaults passing for the file's values."""

import json
from pathlib import Path
from typing import Any

import pytest

from minisgl.errors import ConfigError
from minisgl.models import ModelConfig
from minisgl.utils import cached_load_hf_config
from tests.engine.oracle import make_oracle
from tests.engine.parity_cases import MODEL_TYPES, Case

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 131,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
}


def write(folder: Path, fields: dict[str, Any] | str | bytes) -> Path:
    content = json.dumps(fields) if isinstance(fields, dict) else fields
    (folder / "config.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in LLAMA.items() if name not in names}


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_saved_config_gives_the_class_of_its_model_type(model_type: str, tmp_path: Path) -> None:
    oracle = make_oracle(Case("saved", model_type), tmp_path)
    config = cached_load_hf_config(tmp_path)
    assert type(config) is type(oracle.config)
    assert config.hidden_size == 48


def test_a_changed_file_is_read_again_and_the_result_is_the_callers_own(tmp_path: Path) -> None:
    config = cached_load_hf_config(write(tmp_path, LLAMA))
    config.hidden_size = 1
    assert cached_load_hf_config(tmp_path).hidden_size == 48
    assert cached_load_hf_config(write(tmp_path, LLAMA | {"hidden_size": 480})).hidden_size == 480


@pytest.mark.parametrize("fields", [without("num_key_value_heads"), LLAMA | {"num_key_value_heads": None}])
@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3"])
def test_missing_kv_heads_mean_multi_head_attention(model_type: str, fields: dict[str, Any], tmp_path: Path) -> None:
    fields = fields | {"model_type": model_type, "architectures": None}
    assert ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, fields))).num_kv_heads == 4


@pytest.mark.parametrize(
    "name", ["hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size"]
)
def test_an_absent_size_is_not_that_of_some_other_model(name: str, tmp_path: Path) -> None:
    config = cached_load_hf_config(write(tmp_path, without(name, "num_key_value_heads")))
    assert getattr(config, name, None) is None
    with pytest.raises(ConfigError, match=f"{name} is None"):
        ModelConfig.from_hf(config)


def test_a_value_of_the_wrong_type_is_named_by_the_model_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hidden_size is 'wide'"):
        ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, LLAMA | {"hidden_size": "wide"})))


@pytest.mark.parametrize("architecture", ["LlamaForSequenceClassification", "GemmaForCausalLM"])
def test_another_architecture_keeps_its_fields_and_is_refused_by_name(architecture: str, tmp_path: Path) -> None:
    config = cached_load_hf_config(write(tmp_path, LLAMA | {"architectures": [architecture], "own_field": 7}))
    assert config.own_field == 7
    with pytest.raises(ConfigError, match=architecture):
        ModelConfig.from_hf(config)


def test_architectures_alone_are_enough(tmp_path: Path) -> None:
    config = ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, without("model_type"))))
    assert (config.architectures, config.model_type) == (("LlamaForCausalLM",), "llama")


@pytest.mark.parametrize(
    "layout",
    [
        {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_theta": 500.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}, "rope_theta": None},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}, "rope_theta": 500.0},
    ],
)
def test_both_homes_of_rope_give_the_same(layout: dict[str, Any], tmp_path: Path) -> None:
    rotary = ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, LLAMA | layout))).rotary_config
    assert (rotary.base, rotary.scaling) == (500.0, {"rope_type": "linear", "factor": 2.0})


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            {"rope_theta": 500.0, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
            "has rope_theta 10000.0 in rope_parameters and 500.0 in the top level; expected one value. "
            "Remove the wrong one.",
        ),
        (
            {"rope_scaling": {"factor": 2.0}, "rope_parameters": {"rope_type": "linear", "factor": 4.0}},
            "has factor 4.0 in rope_parameters and 2.0 in rope_scaling; expected one value. Remove the wrong one.",
        ),
        (
            {"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 4.0}},
            "has rope_type 'linear' in rope_scaling and 'yarn' in rope_scaling; expected one value. "
            "Remove the wrong one.",
        ),
        (
            {"rope_scaling": 1.0},
            "has rope_scaling 1.0; expected an object with a rope_type, or null. Correct rope_scaling.",
        ),
        (
            {"rope_parameters": 0},
            "has rope_parameters 0; expected an object with a rope_type, or null. Correct rope_parameters.",
        ),
    ],
)
def test_rope_fields_that_contradict_each_other_are_refused(
    layout: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(write(tmp_path, LLAMA | layout))
    assert str(caught.value) == f"{(tmp_path / 'config.json').resolve()} {message}"


def test_a_missing_config_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(tmp_path)
    assert str(caught.value) == (
        f"there is no config.json in {tmp_path.resolve()}; expected the config.json of a Hugging Face model. "
        "Download the folder again, or check the path."
    )


@pytest.mark.parametrize("content", ["{", "", b"\xff\xfe", "[" * 100_000], ids=["cut", "empty", "binary", "deep"])
def test_a_file_that_is_not_json_is_refused(content: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"config\.json isn't JSON \(.*\); expected the config\.json of a Hugging Face"
    ):
        cached_load_hf_config(write(tmp_path, content))


def test_a_config_that_is_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json holds a JSON list, not an object; expected"):
        cached_load_hf_config(write(tmp_path, "[1]"))


def test_a_config_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ConfigError, match=r"config\.json can't be read \(Is a directory\); expected"):
        cached_load_hf_config(tmp_path)


def test_reading_a_config_writes_nothing_to_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    cached_load_hf_config(write(tmp_path, LLAMA | {"rope_scaling": rope | {"original_max_position_embeddings": 64}}))
    assert capfd.readouterr() == ("", "")

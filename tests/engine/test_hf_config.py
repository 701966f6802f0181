"""config.json is read without transformers' class defaults passing for the file's values."""

import json
import os
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


@pytest.mark.parametrize("rope", [None, {"rope_type": "linear", "factor": 2.0}], ids=["plain", "linear"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_saved_config_and_transformers_own_object_give_the_same_description(
    model_type: str, rope: dict[str, Any] | None, tmp_path: Path
) -> None:
    oracle = make_oracle(Case("saved", model_type, rope=rope, theta=500.0), tmp_path)
    ours = ModelConfig.from_hf(cached_load_hf_config(tmp_path))
    assert ours == ModelConfig.from_hf(oracle.config)
    assert (ours.hidden_size, ours.rotary_config.base) == (48, 500.0)


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_read_anew(tmp_path: Path) -> None:
    config = cached_load_hf_config(write(tmp_path, LLAMA))
    config.hidden_size = 1
    assert cached_load_hf_config(tmp_path).hidden_size == 48
    before = (tmp_path / "config.json").stat()
    write(tmp_path, LLAMA | {"hidden_size": 64})
    os.utime(tmp_path / "config.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (tmp_path / "config.json").stat().st_size == before.st_size
    assert cached_load_hf_config(tmp_path).hidden_size == 64


def test_unknown_fields_and_another_model_type_are_named_in_one_line(tmp_path: Path) -> None:
    fields = LLAMA | {"model_type": "mistral", "zeta": 1, "alpha": 2, "rope_scaling": {"type": "default", "finetuned": True}}
    with pytest.warns(UserWarning) as caught:
        cached_load_hf_config(write(tmp_path, fields))
    assert [str(warning.message) for warning in caught] == [
        f"{tmp_path}/config.json: fields that are unknown and have no effect: 'alpha', 'rope_scaling.finetuned', 'zeta'; "
        "model_type is 'mistral', but LlamaForCausalLM decides: read as llama."
    ]


@pytest.mark.parametrize("rope", [{"type": "yarn", "factor": 4.0}, {"rope_type": "llama3", "factor": 8.0}], ids=str)
@pytest.mark.parametrize("home", ["rope_scaling", "rope_parameters"])
def test_an_original_length_at_the_top_level_counts(home: str, rope: dict[str, Any], tmp_path: Path) -> None:
    rope = rope | {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    fields = LLAMA | {"original_max_position_embeddings": 16, home: rope}
    config = ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, fields)))
    assert config.rotary_config.scaling["original_max_position_embeddings"] == 16


def test_experts_are_read_under_both_names(tmp_path: Path) -> None:
    moe = LLAMA | {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_local_experts": 8}
    moe |= {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
    assert ModelConfig.from_hf(cached_load_hf_config(write(tmp_path, moe))).num_experts == 8
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(write(tmp_path, moe | {"num_experts": 4}))
    assert str(caught.value) == (
        f"{tmp_path}/config.json: num_experts 4 and num_local_experts 8. Expected: one number of experts. "
        "What to do: remove the wrong one."
    )


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
    assert config.architectures == ("LlamaForCausalLM",)


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
            "rope_theta is 10000.0 in rope_parameters and 500.0 in the top level",
        ),
        (
            {"rope_scaling": {"factor": 2.0}, "rope_parameters": {"rope_type": "linear", "factor": 4.0}},
            "factor is 4.0 in rope_parameters and 2.0 in rope_scaling",
        ),
        (
            {"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 4.0}},
            "rope_type is 'linear' in rope_scaling and 'yarn' in rope_scaling",
        ),
        (
            {
                "original_max_position_embeddings": 16,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
            },
            "original_max_position_embeddings is 32 in rope_scaling and 16 in the top level",
        ),
    ],
)
def test_rope_fields_that_contradict_each_other_are_refused(
    layout: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(write(tmp_path, LLAMA | layout))
    end = "Expected: one value. What to do: remove the wrong one."
    assert str(caught.value) == f"{tmp_path}/config.json: {message}. {end}"


@pytest.mark.parametrize("name", ["rope_scaling", "rope_parameters"])
def test_a_rope_field_that_is_no_object_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(write(tmp_path, LLAMA | {name: 0}))
    assert str(caught.value) == (
        f"{tmp_path}/config.json: {name} is 0. Expected: an object with a rope_type, or null. What to do: correct {name}."
    )


EXPECTED = "Expected: the config.json of a Hugging Face model"
AGAIN = "What to do: download the file again, or check the path."


def test_a_missing_config_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: no config.json. {EXPECTED}. What to do: download the folder again, or check the path."
    )


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 700\n"
BAD_CONTENTS = {
    "cut": (b"{", "the file is not valid JSON ('Expecting property name enclosed in double quotes: line 1 column 2 (char 1)')"),
    "empty": (b"", "the file is not valid JSON ('Expecting value: line 1 column 1 (char 0)')"),
    "binary": (b"\xff\xfe", "the file is not valid JSON (\"'utf-8' codec can't decode byte 0xff in position 0: "),
    "deep": (b'{"a":' + b"[" * 100_000, "the file is nested too deeply"),
    "a key twice": (b'{"hidden_size": 1, "hidden_size": 2}', "the file holds the key 'hidden_size' twice"),
    "a key twice inside": (b'{"rope_scaling": {"factor": 1, "factor": 2}}', "the file holds the key 'factor' twice"),
    "a pointer": (POINTER, "a git-lfs pointer, not the file it stands for"),
    "a list": (b"[1]", "a JSON list"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CONTENTS)
def test_a_file_that_cannot_be_trusted_is_refused(name: str, tmp_path: Path) -> None:
    content, found = BAD_CONTENTS[name]
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(write(tmp_path, content))
    assert str(caught.value).startswith(f"{tmp_path}/config.json: {found}")
    assert ". Expected: " in str(caught.value)
    assert str(caught.value).endswith("or download the file itself." if name == "a pointer" else AGAIN)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "config.json", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(tmp_path)
    assert str(caught.value) == f"{tmp_path}/config.json: {2**40} bytes long. {EXPECTED}, of at most {2**24} bytes. {AGAIN}"


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    assert cached_load_hf_config(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())).hidden_size == 48


def make_link_loop(file: Path) -> None:
    file.symlink_to(file)


ODD_FILES = {
    "a pipe": (os.mkfifo, "not a regular file"),
    "a device": (lambda file: file.symlink_to("/dev/zero"), "not a regular file"),
    "a folder": (Path.mkdir, "not a regular file"),
    "a link to itself": (make_link_loop, "can't be read (Too many levels of symbolic links)"),
    "a broken link": (
        lambda file: file.symlink_to("blobs/0123"),
        "a link whose target is missing, as after an interrupted download",
    ),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_what_is_no_file_is_refused_at_once_by_the_name_that_was_asked_for(name: str, tmp_path: Path) -> None:
    make, found = ODD_FILES[name]
    make(tmp_path / "config.json")
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/config.json: {found}. {EXPECTED}. What to do: ")


def test_a_linked_file_of_the_hubs_cache_is_named_by_its_link(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text(json.dumps(LLAMA | {"mlp_bias": "x"}))
    (tmp_path / "config.json").symlink_to("blob")
    with pytest.raises(ConfigError, match=f"^{tmp_path}/config.json: mlp_bias 'x' isn't true or false"):
        cached_load_hf_config(tmp_path)


def test_reading_a_config_writes_nothing_to_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    cached_load_hf_config(write(tmp_path, LLAMA | {"rope_scaling": rope | {"original_max_position_embeddings": 64}}))
    assert capfd.readouterr() == ("", "")

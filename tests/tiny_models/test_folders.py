"""The four folders are complete, ordinary, small, and each uses what marks its architecture."""

import json
import math

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from minisgl.errors import MinisglError
from minisgl.tiny_models import TINY_MODELS, tiny_model_path

CLASSES = {
    "tiny-llama": "LlamaForCausalLM",
    "tiny-qwen2": "Qwen2ForCausalLM",
    "tiny-qwen3": "Qwen3ForCausalLM",
    "tiny-qwen3-moe": "Qwen3MoeForCausalLM",
}
FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
}
every_model = pytest.mark.parametrize("name", TINY_MODELS)


def read_config(name: str) -> dict:
    return json.loads((tiny_model_path(name) / "config.json").read_text(encoding="utf-8"))


def read_tensors(name: str) -> dict[str, torch.Tensor]:
    tensors = {}
    for file in tiny_model_path(name).glob("*.safetensors"):
        tensors |= load_file(file)
    return tensors


@every_model
def test_folder_is_complete_and_has_several_shards(name: str) -> None:
    files = {file.name for file in tiny_model_path(name).iterdir()}
    shards = {file for file in files if file.endswith(".safetensors")}
    assert files - shards == FILES
    assert 3 <= len(shards) <= 5


@every_model
def test_index_names_the_tensors_of_each_shard(name: str) -> None:
    folder = tiny_model_path(name)
    index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
    found = {}
    for shard in folder.glob("*.safetensors"):
        with safe_open(shard, "pt") as tensors:
            found |= dict.fromkeys(tensors.keys(), shard.name)
    assert index["weight_map"] == found
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in read_tensors(name).values())


@every_model
def test_some_group_that_a_loader_merges_lies_in_two_shards(name: str) -> None:
    index = json.loads((tiny_model_path(name) / "model.safetensors.index.json").read_text(encoding="utf-8"))
    groups = {}
    for key, shard in index["weight_map"].items():
        group = key.replace("q_proj", "qkv").replace("k_proj", "qkv").replace("v_proj", "qkv")
        group = group.replace("gate_proj", "gate_up").replace("up_proj", "gate_up")
        if ".experts." in group:
            head, tail = group.split(".experts.")
            group = head + "." + tail.split(".", 1)[1]
        groups.setdefault(group, set()).add(shard)
    assert any(len(shards) > 1 for shards in groups.values())


def test_all_four_stay_under_24_megabytes() -> None:
    sizes = [file.stat().st_size for name in TINY_MODELS for file in tiny_model_path(name).iterdir()]
    assert sum(sizes) < 24_000_000


@every_model
def test_weights_are_bfloat16_and_one_to_three_million(name: str) -> None:
    tensors = read_tensors(name)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert 1e6 <= sum(tensor.numel() for tensor in tensors.values()) <= 3e6


@every_model
def test_config_is_the_architecture_with_grouped_heads(name: str) -> None:
    config = read_config(name)
    assert config["architectures"] == [CLASSES[name]]
    assert config["num_key_value_heads"] > 1
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0
    assert config["num_attention_heads"] > config["num_key_value_heads"]


def test_tied_and_untied_heads_are_both_there() -> None:
    tied = {name: read_config(name)["tie_word_embeddings"] for name in TINY_MODELS}
    assert set(tied.values()) == {True, False}
    assert {name: "lm_head.weight" not in read_tensors(name) for name in TINY_MODELS} == tied


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-qwen3-moe"])
def test_qwen3_head_dim_is_not_hidden_size_over_heads(name: str) -> None:
    config = read_config(name)
    assert config["head_dim"] != config["hidden_size"] // config["num_attention_heads"]


def test_qwen2_biases_are_far_from_zero() -> None:
    biases = {key: tensor.float() for key, tensor in read_tensors("tiny-qwen2").items() if key.endswith(".bias")}
    assert len(biases) == 3 * read_config("tiny-qwen2")["num_hidden_layers"]
    assert min(bias.std().item() for bias in biases.values()) > 0.2


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-qwen3-moe"])
def test_qk_norm_weights_are_far_from_ones(name: str) -> None:
    norms = [t.float() for key, t in read_tensors(name).items() if key.endswith(("q_norm.weight", "k_norm.weight"))]
    assert len(norms) == 2 * read_config(name)["num_hidden_layers"]
    assert min((norm - 1).abs().mean().item() for norm in norms) > 0.3


def test_experts_are_more_than_ten_so_that_string_order_is_wrong() -> None:
    num_experts = read_config("tiny-qwen3-moe")["num_experts"]
    assert sorted(range(num_experts), key=str) != list(range(num_experts))
    assert read_config("tiny-qwen3-moe")["num_experts_per_tok"] >= 2


@every_model
def test_tokenizer_is_the_same_in_every_folder(name: str) -> None:
    texts = {(tiny_model_path(other) / "tokenizer.json").read_bytes() for other in ("tiny-llama", name)}
    assert len(texts) == 1


@every_model
def test_card_states_data_licence_limits_and_perplexity(name: str) -> None:
    card = (tiny_model_path(name) / "README.md").read_text(encoding="utf-8")
    for heading in ("## Data", "## Training", "## Held-out perplexity", "## Limits", "## Licence"):
        assert heading in card
    assert "license: mit" in card
    assert "SmolLM2-135M-Instruct" in card
    assert math.isfinite(float(card.split("Without a fault: **")[1].split("**")[0]))


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MinisglError) as error:
        tiny_model_path("tiny-gpt")
    assert str(error.value) == (
        "there is no tiny model named 'tiny-gpt'; expected one of tiny-llama, tiny-qwen2, tiny-qwen3, tiny-qwen3-moe; "
        "give one of these names, or the path of a model folder"
    )


def test_missing_files_are_reported_with_their_folder(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr("minisgl.tiny_models.__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(MinisglError, match=r"the files of tiny-llama are not in .*; expected config.json"):
        tiny_model_path("tiny-llama")

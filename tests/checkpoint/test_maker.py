"""The maker's checkpoints are what transformers and safetensors take for real ones."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

from minisgl.checkpoint import open_checkpoint
from minisgl.checkpoint._values import read_tag
from minisgl.checkpoint.maker import main, make_checkpoint, stored_shapes, tensor_values
from minisgl.checkpoint.presets import PRESETS
from minisgl.errors import CheckpointError, ConfigError
from tests.checkpoint.tiny import CONFIGS

Shapes = dict[str, tuple[int, ...]]


def shapes_of_transformers(folder: Path) -> Shapes:
    """Return the keys and shapes that transformers' own model has, without a second name for a tied tensor."""
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    return {key: shape for key, shape in shapes.items() if not (config.tie_word_embeddings and key == "lm_head.weight")}


def shapes_in(folder: Path) -> Shapes:
    return {key: stored.shape for key, stored in open_checkpoint(folder).tensors.items()}


@pytest.mark.parametrize("name", [*CONFIGS, *PRESETS])
def test_keys_and_shapes_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    config = CONFIGS.get(name) or {**PRESETS[name], "num_hidden_layers": 2}
    single = make_checkpoint(tmp_path / "single", config, data="sparse")
    packed = make_checkpoint(tmp_path / "packed", config, data="sparse", packed_experts=True)
    expected = shapes_of_transformers(single)
    stores_packed = any(key.endswith("experts.gate_up_proj") for key in expected)
    assert shapes_in(packed if stores_packed else single) == expected


@pytest.mark.parametrize("model", CONFIGS)
def test_transformers_loads_the_made_values(tmp_path: Path, model: str) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS[model], data="random", files=3, layout="torn")
    loaded, report = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    embedding = loaded.get_input_embeddings().weight
    assert torch.equal(embedding, tensor_values(CONFIGS[model], "model.embed_tokens.weight"))


def test_safetensors_reads_what_was_made(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3 moe"], data="random", seed=3, dtype="float16")
    with safe_open(folder / "model.safetensors", "pt") as opened:
        assert list(opened.offset_keys()) == list(stored_shapes(CONFIGS["qwen3 moe"]))
        for key in opened.offset_keys():
            assert torch.equal(
                opened.get_tensor(key), tensor_values(CONFIGS["qwen3 moe"], key, seed=3, dtype="float16")
            )


def test_sorted_files_are_in_the_order_that_transformers_saves(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3"], data="random", layout="sorted")
    saved = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    saved.save_pretrained(tmp_path / "saved")
    with (
        safe_open(folder / "model.safetensors", "pt") as ours,
        safe_open(tmp_path / "saved" / "model.safetensors", "pt") as theirs,
    ):
        assert list(ours.offset_keys()) == list(theirs.offset_keys())


def test_random_weights_are_spread_as_models_are_and_norms_lie_around_one() -> None:
    weight = tensor_values(PRESETS["Qwen3-0.6B"], "model.layers.0.mlp.up_proj.weight").float()
    assert weight.std().item() == pytest.approx(0.02, rel=0.01)
    assert weight.mean().item() == pytest.approx(0, abs=1e-4)
    assert tensor_values(PRESETS["Qwen3-0.6B"], "model.norm.weight").float().mean().item() == pytest.approx(1, abs=0.01)


def test_another_seed_gives_other_weights() -> None:
    one, two = (tensor_values(CONFIGS["llama"], "lm_head.weight", seed=seed) for seed in (0, 1))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tags_tell_tensor_and_place(dtype: str) -> None:
    config = PRESETS["Qwen3-30B-A3B"]
    key = "model.layers.47.mlp.experts.127.down_proj.weight"
    values = tensor_values(config, key, data="tagged", dtype=dtype)
    number = list(stored_shapes(config)).index(key)
    assert read_tag(values[0, :8]) == (number, 0)
    assert read_tag(values[2047, 760:]) == (number, 2048 * 768 - 8)
    assert values.min() >= 1


def test_files_are_about_equal_and_numbered(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", {**PRESETS["Qwen3-8B"], "num_hidden_layers": 8}, data="sparse", files=5)
    sizes = {file.name: file.stat().st_size for file in sorted(folder.glob("*.safetensors"))}
    assert list(sizes) == [f"model-{number:05}-of-00005.safetensors" for number in range(1, 6)]
    assert max(sizes.values()) < 1.5 * min(sizes.values())
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == open_checkpoint(folder).num_bytes


def test_a_sparse_70b_takes_next_to_no_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Llama-3-70B", str(tmp_path / "made"), "--data", "sparse", "--files", "30"]) == 0
    files = list((tmp_path / "made").glob("*.safetensors"))
    assert len(files) == 30
    assert sum(file.stat().st_size for file in files) == 141_107_497_896
    assert sum(file.stat().st_blocks * 512 for file in files) < 1_000_000
    assert "30 files, 141,107,497,896 bytes" in capsys.readouterr().out


def test_the_command_takes_a_config_file_and_fewer_layers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]))
    made = tmp_path / "made"
    assert main([str(tmp_path), str(made), "--layers", "1", "--files", "one_per_tensor", "--no-index"]) == 0
    assert len(list(made.glob("*.safetensors"))) == len(stored_shapes({**CONFIGS["llama"], "num_hidden_layers": 1}))
    assert not (made / "model.safetensors.index.json").exists()


def test_the_command_reports_a_mistake_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Llama-4", str(tmp_path / "made")]) == 2
    assert "Llama-4" in capsys.readouterr().err


REFUSED = {
    "another architecture": (
        {"architectures": ["GPT2LMHeadModel"]},
        {},
        "architecture 'GPT2LMHeadModel', model_type 'llama': expected one of LlamaForCausalLM, Qwen2ForCausalLM, "
        "Qwen3ForCausalLM, Qwen3MoeForCausalLM. Give the config of a model of these architectures.",
    ),
    "a size absent": (
        {"hidden_size": None},
        {},
        "hidden_size is None: expected a positive whole number. Give it in the config.",
    ),
    "a size of zero": (
        {"vocab_size": 0},
        {},
        "vocab_size is 0: expected a positive whole number. Give it in the config.",
    ),
    "a wrong kind of data": (
        {},
        {"data": "zeros"},
        "data='zeros', layout='natural', dtype='bfloat16': expected data from ('random', 'tagged', 'sparse'), layout from "
        "('natural', 'sorted', 'torn', 'shuffled'), dtype from ('float32', 'float16', 'bfloat16'). Correct the argument.",
    ),
    "more files than tensors": (
        {},
        {"files": 99},
        "files=99: expected 1 to 21 (the tensors). Ask for fewer files.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_made_is_refused(tmp_path: Path, name: str) -> None:
    changes, how, message = REFUSED[name]
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        make_checkpoint(tmp_path / "made", {**CONFIGS["llama"], **changes}, **how)


def test_a_folder_with_files_is_not_written_over(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "made", CONFIGS["llama"], data="sparse")
    with pytest.raises(CheckpointError, match="already holds safetensors files"):
        make_checkpoint(tmp_path / "made", CONFIGS["llama"], data="sparse", files=3)


def test_a_disk_that_is_too_small_is_noticed_before_writing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"bytes free\. Expected: 470187269120 bytes\."):
        make_checkpoint(tmp_path / "made", PRESETS["Qwen3-235B-A22B"])
    assert not list((tmp_path / "made").iterdir())

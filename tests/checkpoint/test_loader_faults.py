"""Checkpoints whose files are sound but don't hold the model that config.json describes, and the message of each."""

import json
import re
from pathlib import Path

import pytest

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.errors import CheckpointError, ConfigError, MinisglError
from tests.checkpoint.tiny import CONFIGS, load

Q_PROJ = "model.layers.0.self_attn.q_proj.weight"
MODEL = "model.safetensors"
END = "Expected exactly the tensors that config.json describes. Download or convert the checkpoint again."


def without(*keys: str) -> dict[str, str]:
    """Put the named tensors into a file that the folder then loses."""
    from minisgl.checkpoint.maker import stored_shapes

    every = {key for config in CONFIGS.values() for key in stored_shapes(config)}
    return {key: "lost.safetensors" if key in keys else MODEL for key in every}


# Config; how to make the checkpoint; the problems that the message lists, {file} being the file.
CASES = {
    "a part of a group missing": (
        "qwen3",
        {"files": without("model.layers.1.self_attn.k_proj.weight")},
        ["model.layers.1.self_attn.k_proj.weight is missing, a part of model.layers.1.self_attn.qkv_proj.weight"],
    ),
    "half of an MLP missing": (
        "llama",
        {"files": without("model.layers.0.mlp.up_proj.weight")},
        ["model.layers.0.mlp.up_proj.weight is missing, a part of model.layers.0.mlp.gate_up_proj.weight"],
    ),
    "a whole tensor missing": (
        "llama",
        {"files": without("model.norm.weight")},
        ["model.norm.weight is missing, a part of model.norm.weight"],
    ),
    "parts of two experts missing": (
        "qwen3 moe",
        {"files": without("model.layers.0.mlp.experts.3.down_proj.weight", "model.layers.2.mlp.experts.1.up_proj.weight")},
        [
            "model.layers.0.mlp.experts.3.down_proj.weight is missing, a part of model.layers.0.mlp.experts.down_proj",
            "model.layers.2.mlp.experts.1.up_proj.weight is missing, a part of model.layers.2.mlp.experts.gate_up_proj",
        ],
    ),
    "an untied head missing": (
        "llama",
        {"files": without("lm_head.weight")},
        ["lm_head.weight is missing, a part of lm_head.weight"],
    ),
    "an unknown tensor": (
        "llama",
        {"extra": {"model.layers.0.self_attn.q_norm.weight": ("BF16", (8,))}},
        ["model.layers.0.self_attn.q_norm.weight in {file} is unknown to the model"],
    ),
    "a layer too many": (
        "llama",
        {"extra": {"model.layers.2.input_layernorm.weight": ("BF16", (64,))}},
        ["model.layers.2.input_layernorm.weight in {file} is unknown to the model"],
    ),
    "a wrong shape": (
        "llama",
        {"extra": {"model.layers.0.self_attn.o_proj.weight": ("BF16", (64, 65))}},
        ["model.layers.0.self_attn.o_proj.weight in {file} has shape [64, 65], expected [64, 64]"],
    ),
    "a transposed matrix": (
        "llama",
        {"extra": {"model.layers.0.mlp.down_proj.weight": ("BF16", (128, 64))}},
        ["model.layers.0.mlp.down_proj.weight in {file} has shape [128, 64], expected [64, 128]"],
    ),
    "mixed dtypes in a group": (
        "llama",
        {"extra": {Q_PROJ: ("F32", (64, 64))}},
        ["model.layers.0.self_attn.qkv_proj.weight has parts of different dtypes: torch.bfloat16, torch.float32"],
    ),
    "mixed dtypes among experts": (
        "qwen3 moe",
        {"extra": {"model.layers.0.mlp.experts.2.up_proj.weight": ("F16", (64, 64))}},
        ["model.layers.0.mlp.experts.gate_up_proj has parts of different dtypes: torch.bfloat16, torch.float16"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_that_is_not_the_configs_is_refused_with_its_message(tmp_path: Path, name: str) -> None:
    model, how, problems = CASES[name]
    folder = make_checkpoint(tmp_path / "made", CONFIGS[model], index=False, **how)
    (folder / "lost.safetensors").unlink(missing_ok=True)
    listed = "; ".join(problem.format(file=folder / MODEL) for problem in problems)
    message = f"the checkpoint and its config disagree in {len(problems)} places: {listed}. {END}"
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        load(folder)


def test_a_shape_is_checked_before_it_is_sharded(tmp_path: Path) -> None:
    # 32 rows would be one rank's right share of 64, so a look at the shares alone would accept them.
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"], extra={Q_PROJ: ("BF16", (32, 64))})
    with pytest.raises(CheckpointError, match=r"q_proj\.weight in .* has shape \[32, 64\], expected \[64, 64\]"):
        load(folder, rank=0, size=2)


def test_a_tensor_stored_packed_and_single_is_refused(tmp_path: Path) -> None:
    single = {"model.layers.0.mlp.experts.0.up_proj.weight": ("BF16", (64, 64))}
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3 moe"], packed_experts=True, extra=single)
    with pytest.raises(CheckpointError, match=r"experts\.0\.up_proj\.weight is stored twice"):
        load(folder)


def test_a_tensor_stored_with_and_without_prefix_is_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"], extra={"norm.weight": ("BF16", (64,))})
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight is stored twice: as .* and as norm\.weight"):
        load(folder)


def test_a_packed_tensor_of_too_few_experts_is_refused(tmp_path: Path) -> None:
    short = {"model.layers.0.mlp.experts.gate_up_proj": ("BF16", (3, 128, 64))}
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3 moe"], packed_experts=True, extra=short)
    with pytest.raises(CheckpointError, match=r"experts\.3\.gate_proj\.weight is missing, a part of"):
        load(folder)


def test_a_quantized_checkpoint_without_a_trace_in_its_config_is_refused(tmp_path: Path) -> None:
    fp8 = {Q_PROJ: ("F8_E4M3", (64, 64)), Q_PROJ + "_scale": ("F32", (1,))}
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"], extra=fp8)
    with pytest.raises(CheckpointError, match=r"as fp8 or smaller quantization stores them, of type F8_E4M3 \(1\)"):
        load(folder)


UNDIVIDED = {
    3: "num_qo_heads 8 with num_kv_heads 2, intermediate_size 128",
    16: "num_qo_heads 8 with num_kv_heads 2",
}


@pytest.mark.parametrize("size", UNDIVIDED)
def test_ranks_that_do_not_divide_the_model_are_refused_before_anything_is_read(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"])
    monkeypatch.setattr("minisgl.models.weight.open_reader", lambda device: pytest.fail("a reader was opened"))
    message = (
        f"{UNDIVIDED[size]} can't be divided over tp size {size}; expected one of these numbers of ranks: 1, 2, 4, 8."
    )
    with pytest.raises(MinisglError, match=f"^{re.escape(message)}$"):
        load(folder, 0, size)


def test_a_file_cut_while_it_is_loaded_gives_an_error_and_no_tensor(tmp_path: Path) -> None:
    from minisgl.models import load_weight

    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"])
    stream = load_weight(folder, "cpu", progress=False)
    next(stream)
    whole = (folder / MODEL).read_bytes()
    (folder / MODEL).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"bytes left while reading tensor '.*'\. Expected: at least"):
        list(stream)


def test_a_config_that_is_missing_is_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"])
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError):
        load(folder)


def test_a_config_of_another_size_is_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3, "vocab_size": 130}))
    with pytest.raises(CheckpointError, match=r"disagree in 11 places: lm_head\.weight in .* has shape \[131, 64\]"):
        load(folder)

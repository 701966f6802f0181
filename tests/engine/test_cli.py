"""The command line prints results on stdout only, and fails with one message."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.checkpoint.presets import PRESETS
from minisgl.cli import generate, main
from tests.engine.oracle import make_oracle
from tests.engine.parity_cases import Case


@pytest.fixture
def qwen3_06b(tmp_path: Path) -> Path:
    """Make Qwen3-0.6B's exact shapes, tied head stored as in the original, without data."""
    return make_checkpoint(tmp_path / "model", PRESETS["Qwen3-0.6B"], data="sparse", stored_tied_head=True)


def test_inspect_says_what_qwen3_06b_is(qwen3_06b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(qwen3_06b)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for row in [
        "layers 28",
        "query heads 16",
        "kv heads 8",
        "head_dim 128",
        "hidden size 1024",
        "vocabulary 151936",
        "rope base 1,000,000",
        "tied embeddings yes",
        "model tensors 226",
        "out of the loader 227 tensors",
        "checkpoint 311 tensors, 1 file, 1,503,264,768 bytes",
        "weights 1,192,099,840 bytes in bfloat16",
        "KV cache 114,688 bytes a token in bfloat16",
        "tp sizes 1, 2, 4, 8, 16",
        "model.layers.*.self_attn.qkv_proj.weight (4096, 1024) × 28",
    ]:
        assert row in rows


def test_inspect_shows_each_ranks_share(qwen3_06b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(qwen3_06b), "--tp", "16", "--json"]) == 0
    ranks = json.loads(capsys.readouterr().out)["ranks"]
    assert [rank["kv_heads"] for rank in ranks[:4]] == [[0, 1], [0, 1], [1, 2], [1, 2]]
    assert ranks[5]["qo_heads"] == [5, 6]
    assert ranks[15]["vocab_rows"] == [142440, 151936]
    assert {rank["kv_bytes_per_token"] for rank in ranks} == {114_688 // 8}
    assert {"name": "model.layers.*.mlp.down_proj.weight", "shape": [1024, 192], "count": 28} in ranks[0]["shapes"]


def test_inspect_prints_a_table_of_ranks(qwen3_06b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(qwen3_06b), "--tp", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "8–15", "4–7", "75968–151935", "0", "596,115,456", "57,344"] in rows


def test_inspect_json_agrees_with_the_config(qwen3_06b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(qwen3_06b), "--json"]) == 0
    description = json.loads(capsys.readouterr().out)
    assert description["config"]["num_qo_heads"] == 16
    assert description["model_tensors"]["count"] == 226
    assert description["checkpoint"] == {
        "files": 1,
        "tensors": 311,
        "bytes": 1_503_264_768,
        "tensors_out_of_loader": 227,
    }
    assert description["kv_bytes_per_token"] == 114_688


def test_inspect_needs_no_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PRESETS["Llama-3-70B"]))
    assert main(["inspect", str(tmp_path), "--tp", "8"]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "checkpoint no weights in this folder" in rows
    assert "model.layers.*.self_attn.qkv_proj.weight (1280, 8192) × 80" in rows


def test_inspect_shows_experts_and_rope_scaling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rope = {"rope_type": "linear", "factor": 2.0}
    make_oracle(Case("moe", "qwen3_moe", rope=rope), tmp_path)
    assert main(["inspect", str(tmp_path)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "experts 6, 2 a token" in rows
    assert "rope scaling linear factor=2.0" in rows
    assert "model.layers.*.mlp.experts.gate_up_proj (6, 48, 48) × 3" in rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["inspect", "/nowhere"],
            "minisgl inspect: there is no folder '/nowhere'; expected a model folder or a hub id",
        ),
        (["generate", "--model", "/nowhere", "--prompt", "x"], "minisgl generate: there is no folder '/nowhere'"),
    ],
)
def test_failures_are_one_line_on_stderr(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_a_damaged_checkpoint_is_named(qwen3_06b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (qwen3_06b / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert main(["inspect", str(qwen3_06b)]) == 1
    assert "model.safetensors" in capsys.readouterr().err


def test_a_tp_size_that_does_not_divide_names_those_that_do(
    qwen3_06b: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(qwen3_06b), "--tp", "3"]) == 1
    assert capsys.readouterr().err.endswith("expected one of these numbers of ranks: 1, 2, 4, 8, 16.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["inspect"],
        ["inspect", "x", "--tp", "0"],
        ["generate", "--prompt", "x"],
        ["generate", "--model", "x"],
        ["generate", "--model", "x", "--prompt", "y", "--max-new-tokens", "-3"],
        ["generate", "--model", "x", "--prompt", "y", "--dtype", "int8"],
        ["fetch", "extra"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "usage:" in err


def test_a_model_without_tokenizer_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_oracle(Case("no-tokenizer", "llama"), tmp_path)
    assert main(["generate", "--model", str(tmp_path), "--prompt", "x"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"minisgl generate: {tmp_path} has no tokenizer that transformers can read (")
    assert err.endswith("expected tokenizer.json beside config.json. Download the whole folder of the model.\n")


def test_generate_looks_at_the_config_before_the_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--model", str(tmp_path), "--prompt", "x"]) == 1
    assert capsys.readouterr().err.startswith(f"minisgl generate: {tmp_path}: no config.json. Expected")


def test_generate_refuses_a_prompt_without_tokens_before_it_loads_the_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(*args: object, **kwargs: object) -> None:
        raise AssertionError("the model was loaded")

    # As SmolLM2's tokenizer, which puts nothing before the text; the tiny models' puts a token there.
    monkeypatch.setattr(generate, "_load_tokenizer", lambda folder: lambda text: SimpleNamespace(input_ids=[]))
    monkeypatch.setattr("minisgl.engine.Engine", load)
    assert main(["generate", "--model", "tiny-llama", "--prompt", ""]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "minisgl generate: --prompt '' gives no token with this model; expected some text to continue.\n"


@pytest.mark.parametrize("command", [["inspect"], ["generate", "--prompt", "x", "--model"]], ids=["inspect", "generate"])
def test_a_folder_that_may_not_be_read_is_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")

    def refuse(path: Path, *args: object) -> int:
        if str(path) == str(file):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *args)  # type: ignore[arg-type]

    # What the system does to a folder without its x bit, for root too, whom no bit stops.
    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    assert main([*command, str(tmp_path)]) == 1
    expected = f"{file}: can't be read (Permission denied). Expected: the config.json of a Hugging Face model. "
    assert expected in capsys.readouterr().err


def test_the_module_runs_and_help_needs_no_torch() -> None:
    code = (
        "import sys, runpy; sys.argv = ['minisgl', '--help']\ntry: runpy.run_module('minisgl', run_name='__main__')\n"
    )
    code += "except SystemExit as end: print(end.code, sorted({'torch', 'transformers'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("0 []\n")
    assert all(command in result.stdout for command in ("inspect", "generate", "fetch"))

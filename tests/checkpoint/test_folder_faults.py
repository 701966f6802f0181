"""Folders whose files are missing, foreign, or at odds with each other or the index, and the message of each."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.checkpoint.presets import PRESETS
from minisgl.cli import main
from minisgl.errors import CheckpointError, MinisglError
from minisgl.utils import cached_load_hf_config
from tests.checkpoint.raw_files import write_index, write_weights

INDEX = "model.safetensors.index.json"
ONE, TWO, THREE = (f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
MODEL_FILES = "a model's *.safetensors files"
FIX_INDEX = "download the index again, or delete it if every *.safetensors file in the folder belongs to the model"
ONE_REVISION = "download the index and the files again, from one revision"
CONVERT = (
    "convert them once, where you trust them, with transformers: "
    "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder)"
)

Case = tuple[Callable[[Path], object], str, str, str, str]


def touch(*names: str) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).write_bytes(b"x") for name in names]


def stored(**files: str) -> Callable[[Path], object]:
    """Write files with the tensors named, separated by spaces; a_b stands for the file a-b.safetensors."""
    names = {
        "one": ONE,
        "two": TWO,
        "three": THREE,
        "model": "model.safetensors",
        "consolidated": "consolidated.safetensors",
    }
    return lambda folder: [write_weights(folder / names[file], *keys.split()) for file, keys in files.items()]


def indexed(weight_map: object, **files: str) -> Callable[[Path], object]:
    return lambda folder: (stored(**files)(folder), write_index(folder, weight_map))


def index_text(text: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / INDEX).write_bytes(text if isinstance(text, bytes) else text.encode())


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def both(*makers: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [maker(folder) for maker in makers]


# How to make the folder; the file at fault; what is found; what was expected; what to do.
CASES: dict[str, Case] = {
    "nothing": (
        lambda folder: None,
        "",
        "no safetensors file (it holds nothing)",
        MODEL_FILES,
        "check the path, or download the model",
    ),
    "another kind of folder": (
        touch("README.md", "config.json"),
        "",
        "no safetensors file (it holds 'README.md', 'config.json')",
        MODEL_FILES,
        "check the path, or download the model",
    ),
    "only pickles": (
        touch("config.json", "pytorch_model.bin", "optimizer.pt"),
        "",
        "only pickled weights, which are never loaded here: 'optimizer.pt', 'pytorch_model.bin'",
        MODEL_FILES,
        CONVERT,
    ),
    "only GGUF": (
        touch("config.json", "model-q4.gguf"),
        "",
        "only GGUF files: 'model-q4.gguf'",
        MODEL_FILES,
        "get the model's safetensors files, or convert with transformers: "
        "AutoModelForCausalLM.from_pretrained(folder, gguf_file=...).save_pretrained(new_folder)",
    ),
    "an adapter": (
        touch("adapter_config.json", "adapter_model.safetensors"),
        "",
        "an adapter's folder ('adapter_config.json', 'adapter_model.safetensors'): it holds changes to a model, not a model",
        MODEL_FILES,
        "merge it into its base model (peft: merge_and_unload, then save_pretrained) and load the result",
    ),
    "only files of another layout": (
        stored(consolidated="w"),
        "",
        "only safetensors files of another format or tool: 'consolidated.safetensors'",
        MODEL_FILES,
        f"get the files in the Hugging Face layout, or an {INDEX} that names these",
    ),
    "numbered files missing, no index": (
        stored(two="w"),
        "",
        f"missing files, 2 of 3: '{ONE}', '{THREE}'",
        "all files from 1 to 3",
        "download the missing files",
    ),
    "files of the index missing": (
        indexed({"a": ONE, "b": TWO, "c": THREE}, two="b"),
        "",
        f"missing files, 2 of the 3 that {INDEX} names: '{ONE}', '{THREE}'",
        "all of them",
        "download the missing files",
    ),
    "an index that isn't JSON": (
        both(stored(model="w"), index_text('{"weight_map": {')),
        INDEX,
        "the index is not valid JSON ('Expecting property name enclosed in double quotes: line 1 column 17 (char 16)')",
        "one JSON object",
        FIX_INDEX,
    ),
    "an index that is a list": (
        both(stored(model="w"), index_text("[]")),
        INDEX,
        "a JSON list",
        "an object whose weight_map maps each tensor to its file",
        FIX_INDEX,
    ),
    "an index without weight_map": (
        both(stored(model="w"), index_text('{"metadata": {}}')),
        INDEX,
        "weight_map None",
        "an object whose weight_map maps each tensor to its file",
        FIX_INDEX,
    ),
    "an empty weight_map": (
        indexed({}, model="w"),
        INDEX,
        "weight_map {}",
        "an object whose weight_map maps each tensor to its file",
        FIX_INDEX,
    ),
    "a weight_map that is a list": (
        indexed(["w"], model="w"),
        INDEX,
        "weight_map ['w']",
        "an object whose weight_map maps each tensor to its file",
        FIX_INDEX,
    ),
    "a file name that isn't text": (
        indexed({"w": 1}, model="w"),
        INDEX,
        "weight_map maps 'w' to 1",
        "a file name",
        FIX_INDEX,
    ),
    "a tensor twice in the index": (
        both(stored(one="w"), index_text(f'{{"weight_map": {{"w": "{ONE}", "w": "{TWO}"}}}}')),
        INDEX,
        "the index holds the key 'w' twice",
        "each key once",
        FIX_INDEX,
    ),
    "an index that is a git-lfs pointer": (
        both(stored(one="w"), index_text("version https://git-lfs.github.com/spec/v1\n")),
        INDEX,
        "a git-lfs pointer, not the file it stands for",
        "the index",
        "run `git lfs install` and `git lfs pull` in the folder, or download the file itself",
    ),
    "an index that names a pickle": (
        both(touch("pytorch_model.bin"), indexed({"w": "pytorch_model.bin"})),
        INDEX,
        "weight_map names the file 'pytorch_model.bin'",
        "names that end with .safetensors",
        "convert the checkpoint to safetensors; pickle is never loaded here",
    ),
    "a tensor of the index in no file": (
        indexed({"a": ONE, "b": ONE}, one="a"),
        INDEX,
        f"tensors that it names but no file holds (1): 'b in {ONE}'",
        "files that hold what the index names",
        ONE_REVISION,
    ),
    "a tensor that the index doesn't name": (
        indexed({"a": ONE}, one="a b"),
        INDEX,
        f"tensors of the files that it doesn't name (1): 'b in {ONE}'",
        "an index that names every tensor",
        ONE_REVISION,
    ),
    "a tensor in another file than the index says": (
        indexed({"a": ONE, "b": TWO, "c": ONE}, one="a b", two="c"),
        INDEX,
        f"tensors in another file than it says (2): 'b in {ONE} (index: {TWO})', 'c in {TWO} (index: {ONE})'",
        "each tensor in the file that the index names",
        ONE_REVISION,
    ),
    "a tensor in two files of the index": (
        indexed({"a": ONE, "b": TWO}, one="a", two="a b"),
        "",
        f"tensors in more than one file (1): 'a in {ONE} and {TWO}'",
        "each tensor in one file",
        "remove the files that don't belong to the model, or download its index",
    ),
    "a second copy beside the shards, no index": (
        stored(model="a b c", one="a", two="b", three="c"),
        "",
        "tensors in more than one file (3): "
        f"'a in {ONE} and model.safetensors', 'b in {TWO} and model.safetensors', 'c in {THREE} and model.safetensors'",
        "each tensor in one file",
        "remove the files that don't belong to the model, or download its index",
    ),
    "no tensor at all": (
        stored(model=""),
        "",
        "its safetensors files hold no tensor",
        "a model's tensors",
        "check what this folder is",
    ),
}

LEAVING = {
    "up and out": "../model.safetensors",
    "out in the middle": "sub/../../model.safetensors",
    "absolute": "/etc/model.safetensors",
    "backslashes": "..\\model.safetensors",
    "another drive": "C:\\model.safetensors",
}


@pytest.mark.parametrize("name", CASES)
def test_a_folder_at_fault_is_refused_with_its_message(tmp_path: Path, name: str) -> None:
    make, place, found, expected, advice = CASES[name]
    make(tmp_path)
    message = f"{tmp_path / place}: {found}. Expected: {expected}. What to do: {advice}."
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("name", LEAVING)
def test_an_index_entry_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "checkpoint"
    write_weights(tmp_path / "model.safetensors", "w")
    (folder / "sub").mkdir(parents=True)
    write_index(folder, {"w": LEAVING[name]})
    message = f"{folder / INDEX}: weight_map names the file {LEAVING[name]!r}, which leaves the folder."
    with pytest.raises(CheckpointError, match=re.escape(message)):
        open_checkpoint(folder)


def test_an_index_entry_that_leaves_through_a_linked_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    write_weights(tmp_path / "elsewhere" / "model.safetensors", "w")
    (folder / "sub").symlink_to(tmp_path / "elsewhere")
    write_index(folder, {"w": "sub/model.safetensors"})
    with pytest.raises(CheckpointError, match=r"'sub/model\.safetensors', which leaves the folder"):
        open_checkpoint(folder)


@pytest.mark.parametrize("name", ["model\0.safetensors", "model\ud800.safetensors", "", "x" * 5000 + ".safetensors"])
def test_a_file_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(CheckpointError, match=r"weight_map names the file|missing files"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("path", ["absent", "x" * 5000, "zero\0byte"])
def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(CheckpointError, match=r"no such folder\. Expected: a folder with a model's"):
        open_checkpoint(tmp_path / path)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", "w")
    with pytest.raises(CheckpointError, match=r"model\.safetensors: a file\. Expected: a folder"):
        open_checkpoint(tmp_path / "model.safetensors")


def test_a_pipe_in_place_of_the_index_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / INDEX)
    with pytest.raises(CheckpointError, match=r"index\.json: not a regular file"):
        open_checkpoint(tmp_path)


UNQUANTIZED = "get the model's unquantized checkpoint"
PERHAPS = ("integer tensors, perhaps quantized weights,", f"{UNQUANTIZED} in floating point")
SMALLER = "save the model again in a smaller type: model.to(torch.bfloat16).save_pretrained(folder)"


def by(method: str) -> tuple[str, str]:
    return f"tensors as {method} quantization stores them,", UNQUANTIZED


@pytest.mark.parametrize(
    ("dtype", "num_bytes", "keys", "what"),
    [
        ("I8", 2, "a b", PERHAPS),
        ("U8", 2, "a b", PERHAPS),
        ("I32", 8, "a b", PERHAPS),
        ("F8_E4M3", 2, "a b", by("fp8 or smaller")),
        ("F4", 1, "a b", by("fp8 or smaller")),
        ("I32", 8, "l.g_idx l.qweight", by("gptq")),
        ("I32", 8, "l.qweight l.qzeros", by("awq")),
        ("U8", 2, "l.absmax l.weight", by("bitsandbytes")),
        ("I32", 8, "l.weight_packed m", by("compressed-tensors")),
        ("U32", 8, "l.biases l.scales l.weight", by("MLX")),
        ("F64", 16, "a b", ("float64 tensors", SMALLER)),
        (
            "I64",
            16,
            "model.position_ids x",
            ("tables of integers, which none of these models has,", "save the model again without these buffers"),
        ),
    ],
)
def test_tensors_of_another_type_are_called_what_they_are(
    tmp_path: Path, dtype: str, num_bytes: int, keys: str, what: tuple[str, str]
) -> None:
    write_weights(tmp_path / "model.safetensors", *keys.split(), dtype=dtype, num_bytes=num_bytes)
    listed = ", ".join(f"'{key} ({dtype}) in model.safetensors'" for key in keys.split())
    found, advice = what
    message = (
        f"{tmp_path}: {found} of type {dtype} ({len(keys.split())}): {listed}. Expected: only BF16, F16, F32. "
        f"What to do: {advice}."
    )
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        open_checkpoint(tmp_path)


def test_a_rotary_table_of_any_type_is_left_alone(tmp_path: Path) -> None:
    write_weights(tmp_path / "a.safetensors", "w")
    table = "layers.0.self_attn.rotary_emb.inv_freq"
    write_weights(tmp_path / "b.safetensors", table, dtype="F64", num_bytes=16)
    assert list(open_checkpoint(tmp_path).tensors) == ["w"]


PREFIXES = {
    "module.": "save the model out of its wrapper for parallel training: model.module.save_pretrained(folder)",
    "_orig_mod.": "save the model out of torch.compile's wrapper: model._orig_mod.save_pretrained(folder)",
    "base_model.model.": "merge the adapter into its base model: model.merge_and_unload().save_pretrained(folder)",
    "model.language_model.": "save the language model by itself, or take the prefix off the names",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_of_all_layers_is_named(tmp_path: Path, prefix: str) -> None:
    inner = "" if prefix == "model.language_model." else "model."
    keys = [f"{prefix}{inner}layers.{layer}.mlp.up_proj.weight" for layer in range(2)]
    write_weights(tmp_path / "model.safetensors", *keys, f"{prefix}{inner}norm.weight")
    message = (
        f"{tmp_path}: the names of all layers' tensors begin with {prefix!r}, as in {keys[0]}. "
        f"Expected: names that begin with 'model.' or 'layers.'. What to do: {PREFIXES[prefix]}."
    )
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        standard_tensors(open_checkpoint(tmp_path))


KINDS = {
    "adapter_config.json adapter_model.safetensors": ("an adapter's folder ('adapter_config.json', 'a", "merge it into"),
    "refs/main snapshots/abc/config.json": ("the top of a model in the hub's cache, not one", "pass the model's folder below"),
    "models--a--b/refs/main version.txt": ("the hub's cache of models ('models--a--b'), not one", "pass the model's folder"),
    "model.safetensors.incomplete README.md": ("an interrupted download ('model.safetensors.incomplete')", "start the download"),
    ".cache/huggingface/download/a.incomplete": ("an interrupted download ('a.incomplete')", "start the download again"),
    "model_index.json unet/config.json": ("a pipeline of several models (model_index.json)", "pass the folder of its language"),
    "params.json consolidated.00.pth": (
        "weights in the original layout of their maker: 'consolidated.00.pth', 'params.json'",
        "get the model's version for transformers",
    ),
    "model-Q4_K_M.gguf": ("only GGUF files: 'model-Q4_K_M.gguf'", "get the model's safetensors files, or convert"),
    "__0_0.distcp .metadata": ("a distributed training checkpoint: '__0_0.distcp'", "merge it with the tool that wrote it"),
    "global_step100/x latest": ("a distributed training checkpoint: 'global_step100'", "merge it with the tool that wrote it"),
    "pytorch_model.bin": ("only pickled weights, which are never loaded here: 'pytorch_model.bin'", "convert them once"),
    "checkpoint-9/config.json trainer.log": ("no model by itself, but there is one in each of 'checkpoint-9'", "pass that"),
}


@pytest.mark.parametrize("names", KINDS)
def test_a_folder_of_something_else_is_called_what_it_is(tmp_path: Path, names: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    found, advice = KINDS[names]
    expected = f"^{re.escape(f'{tmp_path}: {found}')}.*Expected: .*What to do: {re.escape(advice)}"
    for read in (open_checkpoint, cached_load_hf_config):
        with pytest.raises(MinisglError, match=expected):
            read(tmp_path)
    assert main(["inspect", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"minisgl inspect: {tmp_path}: {found}")


def test_inspect_fails_on_a_config_beside_other_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PRESETS["Qwen3-0.6B"]))
    (tmp_path / "pytorch_model.bin").touch()
    assert main(["inspect", str(tmp_path)]) == 1
    assert "only pickled weights, which are never loaded here: 'pytorch_model.bin'" in capsys.readouterr().err


def test_a_long_list_of_names_is_cut_and_counted(tmp_path: Path) -> None:
    write_index(tmp_path, {f"w{i}": f"model-{i}.safetensors" for i in range(100)})
    with pytest.raises(CheckpointError, match=r"100 of the 100 that .* and 88 more\. Expected"):
        open_checkpoint(tmp_path)

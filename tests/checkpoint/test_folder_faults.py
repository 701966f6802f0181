"""Folders whose files are missing, foreign, or at odds with each other or the index, and the message of each."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from minisgl.checkpoint import open_checkpoint
from minisgl.errors import CheckpointError
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
        "an adapter's folder (adapter_config.json): it holds changes to a model, not a model",
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
        "run `git lfs pull`",
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
        "download the model again",
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


@pytest.mark.parametrize("dtype, num_bytes", [("I8", 2), ("U8", 2), ("F8_E4M3", 2), ("F4", 1), ("I32", 8), ("F64", 16)])
def test_a_quantized_checkpoint_is_recognized_by_its_dtypes(tmp_path: Path, dtype: str, num_bytes: int) -> None:
    write_weights(tmp_path / "model.safetensors", "b", "a", dtype=dtype, num_bytes=num_bytes)
    message = (
        f"{tmp_path}: tensors of type {dtype}, as in a quantized checkpoint (2): 'a ({dtype}) in model.safetensors', "
        f"'b ({dtype}) in model.safetensors'. Expected: only BF16, F16, F32. What to do: get the model's unquantized "
        "checkpoint."
    )
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        open_checkpoint(tmp_path)


def test_a_long_list_of_names_is_cut_and_counted(tmp_path: Path) -> None:
    write_index(tmp_path, {f"w{i}": f"model-{i}.safetensors" for i in range(100)})
    with pytest.raises(CheckpointError, match=r"100 of the 100 that .* and 88 more\. Expected"):
        open_checkpoint(tmp_path)

"""One file that is wrong in one way, and the exact message that it gets."""

import os
import re
import time
import tracemalloc
from pathlib import Path

import pytest

from minisgl.checkpoint import open_checkpoint
from minisgl.errors import CheckpointError
from tests.checkpoint.raw_files import F32, file_bytes

AGAIN = "download the file again"
INCOMPLETE = f"{AGAIN}: incomplete download"
SAVED = f"{AGAIN}, or save it again"
DTYPES = (
    "BF16, BOOL, C64, F16, F32, F4, F64, F6_E2M3, F6_E3M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2, F8_E5M2FNUZ, F8_E8M0, I16, "
    "I32, I64, I8, U16, U32, U64, U8"
)


def tensor(**changes: object) -> dict[str, object]:
    return {"w": {**F32, **changes}}


# What the file holds; what is found; what was expected; what to do.
CASES = {
    "empty": (b"", "an empty file (0 bytes)", "a safetensors file", INCOMPLETE),
    "shorter than a length": (
        b"\x10\0\0",
        "3 bytes long",
        "at least the 8 bytes of a header's length",
        INCOMPLETE,
    ),
    "cut short inside the header": (
        file_bytes(tensor(), bytes(8))[:30],
        "30 bytes long, cut short inside its header",
        "a header of 61 bytes",
        INCOMPLETE,
    ),
    "cut short inside the tensors": (
        file_bytes(tensor(), bytes(5)),
        "74 bytes long",
        "the 77 bytes that its header promises",
        INCOMPLETE,
    ),
    "longer than its tensors": (
        file_bytes(tensor(), bytes(11)),
        "3 bytes behind the last tensor that no tensor claims",
        "a file of 77 bytes",
        SAVED,
    ),
    "a git-lfs pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1192135096\n",
        "a git-lfs pointer, not the file it stands for",
        "a safetensors file",
        "run `git lfs install` and `git lfs pull` in the repository's folder, or download the file itself",
    ),
    "a web page": (
        b"<!DOCTYPE html><html><body>Not found</body></html>",
        "a web page or XML text, not a safetensors file",
        "a safetensors file",
        f"{AGAIN}: the server answered with a page",
    ),
    "a web page after an empty line": (
        b"\n<html>Not found</html>",
        "a web page or XML text, not a safetensors file",
        "a safetensors file",
        f"{AGAIN}: the server answered with a page",
    ),
    "a GGUF file": (
        b"GGUF" + bytes(40),
        "a GGUF file renamed to .safetensors",
        "a safetensors file",
        "get the model's safetensors files",
    ),
    "a zip of pickles": (
        b"PK\x03\x04" + bytes(60),
        "a pickled PyTorch file renamed to .safetensors",
        "a safetensors file",
        "convert it to safetensors where you trust it; pickle is never loaded here",
    ),
    "an old pickle": (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
        "a pickled PyTorch file renamed to .safetensors",
        "a safetensors file",
        "convert it to safetensors where you trust it; pickle is never loaded here",
    ),
    "a header too large": (
        file_bytes(b"{}", header_bytes=2**40),
        "no safetensors header (its first 8 bytes would make it 1099511627776 bytes long, starting with b'{}')",
        "a length from 2 to 100000000 and then JSON that starts with '{'",
        f"check what this file is, and {AGAIN}",
    ),
    "a header of no bytes": (
        file_bytes(b"", bytes(8)),
        "no safetensors header (its first 8 bytes would make it 0 bytes long, starting with "
        "b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00')",
        "a length from 2 to 100000000 and then JSON that starts with '{'",
        f"check what this file is, and {AGAIN}",
    ),
    "plain text": (
        b"Access to this model is restricted.",
        "no safetensors header (its first 8 bytes would make it 8367815047113827137 bytes long, starting with "
        "b'o this m')",
        "a length from 2 to 100000000 and then JSON that starts with '{'",
        f"check what this file is, and {AGAIN}",
    ),
    "a header that isn't JSON": (
        file_bytes(b'{"w": }'),
        "the header is not valid JSON ('Expecting value: line 1 column 7 (char 6)')",
        "one JSON object",
        AGAIN,
    ),
    "a header that isn't UTF-8": (
        file_bytes(b'{"\xff": 1}'),
        "the header is not valid JSON (\"'utf-8' codec can't decode byte 0xff in position 2: invalid start byte\")",
        "one JSON object",
        AGAIN,
    ),
    "a header nested too deeply": (
        file_bytes(b'{"w":' + b"[" * 200_000),
        "the header is nested too deeply",
        "a few levels",
        AGAIN,
    ),
    "a key twice": (
        file_bytes(b'{"w":{"dtype":"F32"},"w":{"dtype":"F32"}}'),
        "the header holds the key 'w' twice",
        "each key once",
        AGAIN,
    ),
    "metadata that isn't text": (
        file_bytes({"__metadata__": {"epoch": 3}, **tensor()}, bytes(8)),
        "__metadata__ in the header isn't a map of texts",
        "texts only",
        "save the file again",
    ),
    "a tensor without a description": (
        file_bytes({"w": [1, 2]}),
        "tensor 'w': described by [1, 2]",
        "an object with dtype, shape and data_offsets",
        SAVED,
    ),
    "a tensor without offsets": (
        file_bytes({"w": {"dtype": "F32", "shape": [2]}}),
        "tensor 'w': described by {'dtype': 'F32', 'shape': [2]}",
        "an object with dtype, shape and data_offsets",
        SAVED,
    ),
    "an unknown dtype": (file_bytes(tensor(dtype="F12")), "tensor 'w': dtype 'F12'", f"one of {DTYPES}", SAVED),
    "a dtype that isn't a name": (file_bytes(tensor(dtype=32)), "tensor 'w': dtype 32", f"one of {DTYPES}", SAVED),
    "a negative size": (
        file_bytes(tensor(shape=[-2])),
        "tensor 'w': shape [-2]",
        "a list of whole numbers, none negative",
        SAVED,
    ),
    "a size that isn't a whole number": (
        file_bytes(tensor(shape=[2.0])),
        "tensor 'w': shape [2.0]",
        "a list of whole numbers, none negative",
        SAVED,
    ),
    "a size that is true": (
        file_bytes(tensor(shape=[True, 2])),
        "tensor 'w': shape [True, 2]",
        "a list of whole numbers, none negative",
        SAVED,
    ),
    "a shape that overflows": (
        file_bytes(tensor(shape=[2**40, 2**40])),
        "tensor 'w': shape [1099511627776, 1099511627776] of F32",
        "a whole number of bytes, at most 1152921504606846976",
        SAVED,
    ),
    "one offset": (
        file_bytes(tensor(data_offsets=[8])),
        "tensor 'w': data_offsets [8]",
        "two whole numbers, none negative",
        SAVED,
    ),
    "a negative offset": (
        file_bytes(tensor(data_offsets=[-8, 0])),
        "tensor 'w': data_offsets [-8, 0]",
        "two whole numbers, none negative",
        SAVED,
    ),
    "offsets that don't fit the shape": (
        file_bytes(tensor(data_offsets=[0, 4]), bytes(4)),
        "tensor 'w': data_offsets [0, 4] span 4 bytes",
        "8 bytes for shape [2] of F32",
        SAVED,
    ),
    "offsets the wrong way round": (
        file_bytes(tensor(data_offsets=[8, 0]), bytes(8)),
        "tensor 'w': data_offsets [8, 0] span -8 bytes",
        "8 bytes for shape [2] of F32",
        SAVED,
    ),
    "half a byte": (
        file_bytes(tensor(dtype="F4", shape=[3], data_offsets=[0, 1]), bytes(1)),
        "tensor 'w': shape [3] of F4",
        "a whole number of bytes, at most 1152921504606846976",
        SAVED,
    ),
    "a hole between tensors": (
        file_bytes({"v": F32, "w": {**F32, "data_offsets": [12, 20]}}, bytes(20)),
        "tensor 'w' starts at byte 144 and leaves a hole before it",
        "a start at byte 140",
        SAVED,
    ),
    "overlapping tensors": (
        file_bytes({"v": F32, "w": {**F32, "data_offsets": [4, 12]}}, bytes(12)),
        "tensor 'w' starts at byte 135 and overlaps the tensor before it",
        "a start at byte 139",
        SAVED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_refused_with_its_message(tmp_path: Path, name: str) -> None:
    content, found, expected, advice = CASES[name]
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    message = f"{file}: {found}. Expected: {expected}. What to do: {advice}."
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}$"):
        open_checkpoint(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    message = "not a regular file. Expected: a file with tensors. What to do: replace it by the real file."
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path / 'model.safetensors'}: {message}")):
        open_checkpoint(tmp_path)


def test_a_folder_named_like_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(CheckpointError, match=r"model.safetensors: not a regular file. Expected: a file with tensors."):
        open_checkpoint(tmp_path)


def test_a_broken_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blobs" / "4d7a")
    message = "a link whose target is missing, as after an interrupted download. Expected: a file with tensors. What to do: "
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path / 'model.safetensors'}: {message}")):
        open_checkpoint(tmp_path)


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, *_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "model.safetensors").write_bytes(file_bytes(tensor(), bytes(8)))
    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, whom no permission stops
    message = (
        "can't be read (Permission denied). Expected: a file with tensors. What to do: check the path and its permissions."
    )
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path / 'model.safetensors'}: {message}")):
        open_checkpoint(tmp_path)


def test_a_key_of_odd_characters_is_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(file_bytes({"\ud800\x1b[31m": 7}))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path)
    assert "tensor '\\ud800\\x1b[31m': described by 7" in str(caught.value)


def test_a_right_file_says_where_each_tensor_lies(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, "b": {**F32, "data_offsets": [8, 16]}, "a": F32}
    scalar = {"dtype": "BF16", "shape": [], "data_offsets": [16, 18]}
    nothing = {"dtype": "F16", "shape": [0, 4], "data_offsets": [8, 8]}
    content = file_bytes({**header, "scalar": scalar, "nothing": nothing}, bytes(18))
    (tmp_path / "model.safetensors").write_bytes(content)
    tensors = open_checkpoint(tmp_path).tensors
    start = len(content) - 18
    assert [(key, stored.shape, stored.offset - start, stored.num_bytes) for key, stored in tensors.items()] == [
        ("a", (2,), 0, 8),
        ("nothing", (0, 4), 8, 0),
        ("b", (2,), 8, 8),
        ("scalar", (), 16, 2),
    ]


@pytest.mark.parametrize("data_bytes", [64, 0], ids=["of four bytes each", "of no bytes"])
def test_a_million_tensors_on_the_same_bytes_are_refused_in_seconds_and_little_memory(tmp_path: Path, data_bytes: int) -> None:
    one = f'":{{"dtype":"F32","shape":[{data_bytes // 4}],"data_offsets":[0,{data_bytes}]}},"'
    text = ('{"' + one.join(map(str, range(1_000_000))) + one.removesuffix(',"') + "}").encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(data_bytes))
    assert len(text) > 50_000_000
    tracemalloc.start()
    started = time.monotonic()
    try:
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(tmp_path)
        taken, peak_bytes = time.monotonic() - started, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(
        f"{tmp_path}/model.safetensors: its first 10001 tensors claim 640064 bytes, but there are 64. Expected: tensors that"
        if data_bytes
        else f"{tmp_path}/model.safetensors: more than {2**17} tensors. Expected: fewer in one file. What to do: "
    )
    assert taken < 20
    assert peak_bytes < 4 * len(text)

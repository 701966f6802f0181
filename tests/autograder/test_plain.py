"""Only plain data crosses: exact builtin types, finite numbers, tensors rebuilt from their bytes."""

import json
import struct

import pytest
import torch

from autograder.worker import plain
from autograder.worker.plain import MetaTensor, NotPlain, decode, encode

MIB = 1 << 20


class AlwaysEqual(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Lying(torch.Tensor):
    pass


@pytest.mark.parametrize("value", [None, True, 7, -3.5, "ü\n", [1, [2.0, "x"]], {"a": {"b": [None]}}])
def test_plain_values_cross_unchanged(value):
    back = decode(*encode(value, MIB))
    assert back == value and type(back) is type(value)


def test_tensors_keep_values_dtype_and_shape():
    sent = {
        "half": torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16),
        "empty": torch.zeros(0, 3),
        "strided": torch.arange(6.0).reshape(2, 3).T,
        "expanded": torch.tensor([1.0]).expand(4),
        "nan": torch.tensor([float("nan")]),
    }
    back = decode(*encode(sent, MIB))
    for name, tensor in sent.items():
        assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape
        assert torch.equal(back[name].isnan(), tensor.isnan())
        assert torch.equal(back[name].nan_to_num(), tensor.nan_to_num())
    assert type(back["half"]) is torch.Tensor


def test_tuples_sizes_dtypes_and_meta_tensors_have_a_plain_form():
    sent = {"shape": torch.Size([2, 3]), "dtype": torch.float16, "meta": torch.empty(2, 3, device="meta")}
    back = decode(*encode(sent, MIB))
    assert back == {"shape": [2, 3], "dtype": torch.float16, "meta": MetaTensor((2, 3), torch.float32)}


@pytest.mark.parametrize(
    "value",
    [
        AlwaysEqual(3),
        type("MyDict", (dict,), {})(a=1),
        type("MyStr", (str,), {})("x"),
        torch.zeros(2).as_subclass(Lying),
        float("nan"),
        float("inf"),
        {1: "int key"},
        {"$tensor": "t0"},
        {1, 2},
        object(),
        torch.zeros(2, dtype=torch.complex64),
        torch.eye(2).to_sparse(),
        b"bytes",
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_by_its_place(value):
    with pytest.raises(NotPlain, match=r"answer\['here'\]"):
        encode({"here": value}, MIB)


def test_too_deep_and_too_large_are_refused():
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(NotPlain, match="deeper"):
        encode(deep, MIB)
    with pytest.raises(NotPlain, match="at most 1048576 bytes were expected"):
        encode(torch.zeros(MIB), MIB)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"$tensor": "t0"}',
        '{"$tensor": 3}',
        '{"$dtype": "Tensor"}',
        '{"$dtype": "__dict__"}',
        '{"$meta": {"shape": [-1], "dtype": "float32"}}',
        '{"$meta": {"shape": [true], "dtype": "float32"}}',
        '{"$other": 1}',
        '{"$tensor": "t0", "more": 1}',
        "[" * 100_000,
        "1e999",
        "not json",
        "9" * 5000,
    ],
)
def test_a_forged_answer_is_refused(text):
    with pytest.raises(NotPlain):
        decode(text.encode(), b"")


def test_a_forged_blob_is_refused():
    header = json.dumps({"t0": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4]}}).encode()
    for blob in (b"garbage", struct.pack("<Q", len(header)) + header + b"\0\0\0\0", struct.pack("<Q", 1 << 60)):
        with pytest.raises(NotPlain):
            decode(b'{"$tensor": "t0"}', blob)


def test_a_tensor_that_nothing_refers_to_is_refused():
    _, blob = encode({"a": torch.zeros(2)}, MIB)
    with pytest.raises(NotPlain, match="nothing refers to"):
        decode(b"1", blob)


def test_a_frame_says_its_size_and_a_short_one_is_refused():
    data = plain.frame({"kind": "answer"}, b"xyz")
    assert plain.frame_size(data[:7]) is None
    assert plain.frame_size(data) == len(data)
    assert plain.unframe(data) == ({"kind": "answer"}, b"xyz")
    with pytest.raises(NotPlain):
        plain.unframe(data[:-1])
    with pytest.raises(NotPlain):
        plain.unframe(struct.pack(">II", 3, 0) + b"[1]")

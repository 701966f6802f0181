"""A parameter that lies in a file as it is becomes the file's own pages; any other is new memory."""

import os
from pathlib import Path

import pytest
import torch

from minisgl.checkpoint import Piece, StoredTensor, _memory, open_reader
from minisgl.errors import CheckpointError
from tests.checkpoint.test_reader import read_one, stored


@pytest.fixture
def large(tmp_path: Path) -> tuple[torch.Tensor, StoredTensor]:
    tensor = torch.randn(1024, 1024).to(torch.bfloat16)
    return tensor, stored(tmp_path, {"t": tensor, "u": torch.ones(8)}).tensors["t"]


def test_a_parameter_that_is_one_run_of_a_file_is_the_files_pages(
    large: tuple[torch.Tensor, StoredTensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor, source = large
    monkeypatch.setattr(os, "preadv", lambda *_: pytest.fail("copied"))
    rows = slice(0, 768)
    with open_reader("cpu") as opened:
        parameter = read_one(opened, (768, 1024), Piece(source, (rows,)))
        assert opened.bytes_read == parameter.nbytes
    assert torch.equal(parameter, tensor[rows])
    assert parameter.untyped_storage().nbytes() == parameter.nbytes
    before = source.file.read_bytes()
    parameter.zero_()  # a copy of the pages, in this process alone
    assert source.file.read_bytes() == before


def test_a_mapped_parameter_outlives_its_reader_and_keeps_no_file_open(
    large: tuple[torch.Tensor, StoredTensor],
) -> None:
    tensor, source = large

    def mappings() -> int:
        return Path("/proc/self/maps").read_text().count(str(source.file))

    with open_reader("cpu") as opened:
        parameter = read_one(opened, (1024, 1024), Piece(source, ()))
    links = [os.path.realpath(f"/proc/self/fd/{descriptor}") for descriptor in os.listdir("/proc/self/fd")]
    assert str(source.file) not in links
    assert mappings() == 1
    assert torch.equal(parameter, tensor)
    del parameter
    assert mappings() == 0


def test_two_parameters_of_the_same_bytes_share_no_writes(large: tuple[torch.Tensor, StoredTensor]) -> None:
    tensor, source = large
    with open_reader("cpu") as opened:
        one, two = (read_one(opened, (1024, 1024), Piece(source, ())) for _ in range(2))
    one.zero_()
    assert not one.any()
    assert torch.equal(two, tensor)


@pytest.mark.parametrize("pieces", ["two", "columns", "small", "padded", "cut short"])
def test_other_parameters_are_new_memory(large: tuple[torch.Tensor, StoredTensor], pieces: str) -> None:
    _, source = large
    half = slice(0, 512)
    shape, asked = {
        "two": ((1024, 1024), [Piece(source, (half,)), Piece(source, (half,))]),
        "columns": ((1024, 512), [Piece(source, (slice(None), half))]),
        "small": ((16, 1024), [Piece(source, (slice(0, 16),))]),
        "padded": ((1030, 1024), [Piece(source, ())]),
        "cut short": ((1024, 1024), [Piece(source, ())]),
    }[pieces]
    if pieces == "cut short":
        os.truncate(source.file, 1000)
    with open_reader("cpu") as opened:
        if pieces == "cut short":
            with pytest.raises(CheckpointError, match="only 1000 bytes left"):
                read_one(opened, shape, *asked)
            return
        parameter = read_one(opened, shape, *asked)
        assert parameter.shape == shape
        assert str(source.file) not in Path("/proc/self/maps").read_text()


def test_where_files_cannot_be_mapped_they_are_read(
    large: tuple[torch.Tensor, StoredTensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor, source = large
    monkeypatch.setattr(_memory, "_libc", lambda: None)
    with open_reader("cpu") as opened:
        parameter = read_one(opened, (1024, 1024), Piece(source, ()))
    assert torch.equal(parameter, tensor)


@pytest.fixture
def two_in_a_row(tmp_path: Path) -> tuple[torch.Tensor, list[StoredTensor]]:
    tensors = {"a": torch.randn(512, 1024).to(torch.bfloat16), "b": torch.randn(256, 1024).to(torch.bfloat16)}
    checkpoint = stored(tmp_path, tensors)
    return torch.cat(list(tensors.values())), [checkpoint.tensors["a"], checkpoint.tensors["b"]]


def test_pieces_that_follow_each_other_in_a_file_are_its_pages(
    two_in_a_row: tuple[torch.Tensor, list[StoredTensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, (a, b) = two_in_a_row
    monkeypatch.setattr(os, "preadv", lambda *_: pytest.fail("copied"))
    with open_reader("cpu") as opened:
        parameter = read_one(opened, (768, 1024), Piece(a, ()), Piece(b, ()))
        assert opened.bytes_read == parameter.nbytes
    assert torch.equal(parameter, expected)


def test_pieces_in_another_order_than_the_files_are_right(
    two_in_a_row: tuple[torch.Tensor, list[StoredTensor]],
) -> None:
    expected, (a, b) = two_in_a_row
    with open_reader("cpu") as opened:
        parameter = read_one(opened, (768, 1024), Piece(b, ()), Piece(a, ()))
    assert torch.equal(parameter, torch.cat([expected[512:], expected[:512]]))

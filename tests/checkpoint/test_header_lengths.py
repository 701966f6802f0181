"""A header's length is its first bytes: no length may make a good file look like another format."""

import json
import struct
from pathlib import Path

import pytest

from minisgl.checkpoint import open_checkpoint


def file_with_header_of(num_bytes: int) -> bytes:
    header = json.dumps({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", num_bytes) + header.ljust(num_bytes) + b"\0\0\0\0"


# 0x0280 begins like a pickle, 0x4b50 like a zip archive, 0x…3c like a web page.
@pytest.mark.parametrize("num_bytes", [0x0280, 0x4B50, 0x013C])
def test_a_header_whose_length_looks_like_another_formats_first_bytes_is_read(tmp_path: Path, num_bytes: int) -> None:
    (tmp_path / "model.safetensors").write_bytes(file_with_header_of(num_bytes))
    assert list(open_checkpoint(tmp_path).tensors) == ["weight"]

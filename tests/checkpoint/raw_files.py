"""Write safetensors files byte by byte, right or wrong."""

import json
from pathlib import Path

F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def file_bytes(header: object, data: bytes = b"", header_bytes: int | None = None) -> bytes:
    """Return a file's bytes.

    Args:
        header: The header; bytes are taken as they are, anything else becomes JSON.
        data: What follows the header.
        header_bytes: The length to claim, instead of the true one.
    """
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if header_bytes is None else header_bytes
    return length.to_bytes(8, "little") + text + data


def write_weights(file: Path, *keys: str, dtype: str = "F32", num_bytes: int = 8) -> None:
    """Write a right file that holds a tensor of shape [2] under each key."""
    file.parent.mkdir(parents=True, exist_ok=True)
    header = {
        key: {"dtype": dtype, "shape": [2], "data_offsets": [i * num_bytes, (i + 1) * num_bytes]}
        for i, key in enumerate(keys)
    }
    file.write_bytes(file_bytes(header, bytes(len(keys) * num_bytes)))


def write_index(folder: Path, weight_map: object) -> None:
    """Write an index with the given weight_map."""
    text = json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)

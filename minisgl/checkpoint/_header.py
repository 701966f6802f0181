"""The header of one safetensors file: read it, distrust it, and say where each tensor lies.

The format: 8 bytes with the header's length (unsigned, little-endian), the header (JSON), then the tensors' bytes
without a gap. The header maps each key to ``{"dtype": "BF16", "shape": [4096, 1024], "data_offsets": [begin, end]}``,
offsets counted from the header's end; the key ``__metadata__`` holds free text.

Source: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from minisgl.checkpoint._fault import fault, quoted
from minisgl.checkpoint._untrusted import DOWNLOAD_AGAIN, MAX_HEADER_BYTES, parse_json, read_regular_file

if TYPE_CHECKING:
    import torch

# Far more than any model's file holds (one file of 235B MoE: 36,000), and parsed in seconds.
_MAX_TENSORS = 2**17
# Up to here a header is parsed whatever it claims, for a message that names the tensor.
_FEW = 10_000
_OFFSETS = re.compile(rb'"data_offsets"\s*:\s*\[\s*(\d{1,19})\s*,\s*(\d{1,19})\s*\]')
# Nothing larger can be addressed in a file; it also keeps sums of sizes far from any overflow.
_MAX_TENSOR_BYTES = 2**60

LOADED_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_NAMES_BY_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
    16: "U16 I16 F16 BF16",
    32: "U32 I32 F32",
    64: "U64 I64 F64 C64",
}
DTYPE_BITS = {name: bits for bits, names in _NAMES_BY_BITS.items() for name in names.split()}

_PICKLE = "a pickled PyTorch file renamed to .safetensors"
_OTHER_FORMATS = (
    (
        b"version https://git-lfs",
        "a git-lfs pointer, not the file it stands for",
        "run `git lfs install` and `git lfs pull` in the repository's folder, or download the file itself",
    ),
    (b"GGUF", "a GGUF file renamed to .safetensors", "get the model's safetensors files"),
    (b"PK\x03\x04", _PICKLE, "convert it to safetensors where you trust it; pickle is never loaded here"),
    (b"\x80\x02", _PICKLE, "convert it to safetensors where you trust it; pickle is never loaded here"),
    (b"<", "a web page or XML text, not a safetensors file", f"{DOWNLOAD_AGAIN}: the server answered with a page"),
)


@dataclass(frozen=True)
class StoredTensor:
    """Say where one tensor's bytes lie.

    Attributes:
        key: The tensor's name in the checkpoint.
        file: The file that holds it.
        dtype_name: float32, float16 or bfloat16.
        shape: The stored shape, row-major.
        offset: First byte, counted from the file's start.
        num_bytes: Size in bytes; the product of shape and item size.
    """

    key: str
    file: Path
    dtype_name: str
    shape: tuple[int, ...]
    offset: int
    num_bytes: int

    @property
    def dtype(self) -> torch.dtype:
        """The torch dtype; only here is torch needed."""
        import torch

        return getattr(torch, self.dtype_name)


@dataclass(frozen=True)
class RawEntry:
    """One tensor as the header describes it, checked, but of any dtype. ``begin`` counts from the file's start."""

    key: str
    dtype_name: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(file: Path) -> list[RawEntry]:
    """Read and check one file's header; no tensor data is read.

    Returns:
        The file's tensors in the order of their bytes.

    Raises:
        CheckpointError: The file can't be read, isn't a regular file, isn't a safetensors file, is cut short, or its
            header is malformed or contradicts itself or the file's size.
    """
    header, data_start, file_bytes = _header_text(file)
    _check_amount(file, header, file_bytes - data_start)
    entries = [_entry(file, key, value, data_start) for key, value in _parsed(file, header).items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    _check_layout(file, entries, data_start, file_bytes)
    return entries


def _header_text(file: Path) -> tuple[bytes, int, int]:
    """Return the header's bytes, where the data starts, and the file's size."""
    start, file_bytes = read_regular_file(file, 64)
    if file_bytes == 0:
        raise fault(file, "an empty file (0 bytes)", "a safetensors file", f"{DOWNLOAD_AGAIN}: incomplete download")
    header_bytes = int.from_bytes(start[:8], "little")
    # Asked first, because a header of 640 bytes begins with the two bytes that also begin a pickle.
    looks_right = 2 <= header_bytes <= MAX_HEADER_BYTES and start[8:9] in (b"{", b"")
    for magic, found, advice in () if looks_right else _OTHER_FORMATS:
        if start.lstrip().startswith(magic) if magic == b"<" else start.startswith(magic):
            raise fault(file, found, "a safetensors file", advice)
    if len(start) < 8:
        raise fault(
            file,
            f"{file_bytes} bytes long",
            "at least the 8 bytes of a header's length",
            f"{DOWNLOAD_AGAIN}: incomplete download",
        )
    if not looks_right:
        raise fault(
            file,
            f"no safetensors header (its first 8 bytes would make it {header_bytes} bytes long, "
            f"starting with {quoted(start[8:16])})",
            f"a length from 2 to {MAX_HEADER_BYTES} and then JSON that starts with '{{'",
            f"check what this file is, and {DOWNLOAD_AGAIN}",
        )
    text, file_bytes = read_regular_file(file, 8 + header_bytes)
    if len(text) < 8 + header_bytes:
        raise fault(
            file,
            f"{file_bytes} bytes long, cut short inside its header",
            f"a header of {header_bytes} bytes",
            f"{DOWNLOAD_AGAIN}: incomplete download",
        )
    return text[8:], 8 + header_bytes, file_bytes


def _check_amount(file: Path, text: bytes, data_bytes: int) -> None:
    """Refuse a header of more tensors, or of more bytes in them, than a file can have, before it is parsed.

    Parsing a million descriptions of the same bytes would take minutes and gigabytes. Inside a JSON text the quotes of
    the pattern would be escaped, so it is found only where tensors are described.
    """
    promised = 0
    for num_tensors, match in enumerate(_OFFSETS.finditer(text), start=1):
        promised += max(int(match[2]) - int(match[1]), 0)
        if num_tensors > _MAX_TENSORS:
            raise fault(file, f"more than {_MAX_TENSORS} tensors", "fewer in one file", "check what this file is")
        if promised > data_bytes and num_tensors > _FEW:
            found = f"its first {num_tensors} tensors claim {promised} bytes, but there are {data_bytes}"
            raise fault(file, found, "tensors that don't overlap, in a whole file", f"{DOWNLOAD_AGAIN}, or save it again")


def _parsed(file: Path, text: bytes) -> dict[str, object]:
    """Return the header as key → description, without its free-text part."""
    header = parse_json(file, text, "the header", DOWNLOAD_AGAIN)
    if not isinstance(header, dict):
        raise fault(file, f"the header is a JSON {type(header).__name__}", "a JSON object", DOWNLOAD_AGAIN)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise fault(file, "__metadata__ in the header isn't a map of texts", "texts only", "save the file again")
    return header


def _entry(file: Path, key: str, value: object, data_start: int) -> RawEntry:
    """Check one tensor's description by itself."""

    def wrong(found: str, expected: str) -> Exception:
        return fault(file, f"tensor {quoted(key)}: {found}", expected, f"{DOWNLOAD_AGAIN}, or save it again")

    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise wrong(f"described by {quoted(value)}", "an object with dtype, shape and data_offsets")
    dtype_name, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype_name, str) or dtype_name not in DTYPE_BITS:
        raise wrong(f"dtype {quoted(dtype_name)}", f"one of {', '.join(sorted(DTYPE_BITS))}")
    if not isinstance(shape, list) or not all(_is_size(size) for size in shape):
        raise wrong(f"shape {quoted(shape)}", "a list of whole numbers, none negative")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(offset) for offset in offsets):
        raise wrong(f"data_offsets {quoted(offsets)}", "two whole numbers, none negative")
    begin, end = offsets
    # Multiplying thousands of huge factors would take time, so a shape that can't be real stops early.
    num_bits = DTYPE_BITS[dtype_name] * (0 if 0 in shape else _bounded_product(shape))
    if num_bits > 8 * _MAX_TENSOR_BYTES or num_bits % 8:
        raise wrong(f"shape {quoted(shape)} of {dtype_name}", f"a whole number of bytes, at most {_MAX_TENSOR_BYTES}")
    if end - begin != num_bits // 8:
        raise wrong(
            f"data_offsets [{begin}, {end}] span {end - begin} bytes",
            f"{num_bits // 8} bytes for shape {quoted(shape)} of {dtype_name}",
        )
    return RawEntry(key, dtype_name, tuple(shape), data_start + begin, data_start + end)


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_TENSOR_BYTES


def _bounded_product(shape: list[int]) -> int:
    """Multiply the sizes, stopping as soon as the product can't be a real tensor's."""
    product = 1
    for size in shape:
        product *= size
        if product > _MAX_TENSOR_BYTES:
            return 8 * _MAX_TENSOR_BYTES + 1
    return product


def _check_layout(file: Path, entries: list[RawEntry], data_start: int, file_bytes: int) -> None:
    """Check that the tensors fill the data area exactly: no overlap, no hole, nothing behind it."""
    position = data_start
    for entry in entries:
        if entry.begin != position:
            kind = "overlaps the tensor before it" if entry.begin < position else "leaves a hole before it"
            raise fault(
                file,
                f"tensor {quoted(entry.key)} starts at byte {entry.begin} and {kind}",
                f"a start at byte {position}",
                f"{DOWNLOAD_AGAIN}, or save it again",
            )
        position = entry.end
    if file_bytes < position:
        raise fault(
            file,
            f"{file_bytes} bytes long",
            f"the {position} bytes that its header promises",
            f"{DOWNLOAD_AGAIN}: incomplete download",
        )
    if file_bytes > position:
        raise fault(
            file,
            f"{file_bytes - position} bytes behind the last tensor that no tensor claims",
            f"a file of {position} bytes",
            f"{DOWNLOAD_AGAIN}, or save it again",
        )

"""Plain data, the only thing that crosses from a process with student code to one without.

A value becomes JSON (None, bool, int, finite float, str, list, dict with str keys) and a safetensors blob for its
tensors. Never pickle. The encoder runs beside student code and is only a convenience: whatever it sends, the
decoder checks again, and builds nothing but the exact builtin types above, fresh tensors, dtypes and ``MetaTensor``.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from dataclasses import dataclass
from typing import Any

import safetensors
import safetensors.torch
import torch

_HEADER = struct.Struct(">II")
MAX_DEPTH = 24
# What a reader in the trusted process will build: text can be a hundred times larger once it is objects.
MAX_JSON_BYTES = 16 << 20
MAX_JSON_ITEMS = 1_000_000


class NotPlain(ValueError):
    """Report a value that may not cross: what it is, where it lies, what was expected."""


@dataclass(frozen=True)
class MetaTensor:
    """Stand for a tensor without data: its shape and dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def encode(value: Any, max_bytes: int) -> tuple[bytes, bytes]:
    """Turn a value into JSON bytes and a safetensors blob.

    Raises:
        NotPlain: the value holds something else than plain data (also a subclass of an allowed type, a number that
            isn't finite, a sparse or quantized tensor), or is larger than ``max_bytes`` in all.
    """
    tensors: dict[str, torch.Tensor] = {}
    plain = _Plain(tensors, max_bytes)
    text = json.dumps(plain.of(value, "answer", 0), allow_nan=False, ensure_ascii=True).encode()
    copies = {name: tensor.detach().to("cpu").contiguous().clone() for name, tensor in tensors.items()}
    return text, safetensors.torch.save(copies) if copies else b""


def decode(text: bytes, blob: bytes) -> Any:
    """Build the value that JSON bytes and a blob describe; trust neither.

    Raises:
        NotPlain: anything that ``encode`` could not have sent.
    """
    try:
        tensors = safetensors.torch.load(blob) if blob else {}
        document = _document(text)
        value = _built(document, tensors, 0)
    except NotPlain:
        raise
    except (ValueError, RecursionError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise NotPlain(f"the answer isn't plain data: {error}") from None
    if tensors:
        raise NotPlain(f"the answer carries {len(tensors)} tensors that nothing refers to")
    return value


class _Plain:
    """Walk through a value; stop as soon as it is known to be too large."""

    def __init__(self, tensors: dict[str, torch.Tensor], max_bytes: int) -> None:
        self.tensors = tensors
        self.max_bytes = self.left = max_bytes

    def of(self, value: Any, where: str, depth: int) -> Any:
        """Return the JSON form of a value."""
        if depth > MAX_DEPTH:
            raise NotPlain(f"{where} is nested deeper than {MAX_DEPTH} levels")
        kind = type(value)
        self._count(len(value) if kind in (str, list, tuple, dict) else 1)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            if not math.isfinite(value):
                raise NotPlain(f"{where} is {value}; a finite number was expected")
            return value
        if kind in (list, tuple, torch.Size):
            return [self.of(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        if kind is dict:
            wrong = [key for key in value if type(key) is not str or key.startswith("$")]
            if wrong:
                raise NotPlain(f"{where} has the key {wrong[0]!r:.80}; plain strings were expected")
            return {key: self.of(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
        if kind is torch.dtype:
            return {"$dtype": str(value).removeprefix("torch.")}
        if kind in (torch.Tensor, torch.nn.Parameter):
            return self._tensor(value, where)
        if kind is MetaTensor:
            return {"$meta": {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}}
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise NotPlain(f"{where} is a {name}; plain data was expected (an exact built-in type)")

    def _tensor(self, value: torch.Tensor, where: str) -> dict[str, Any]:
        if value.device.type == "meta":
            return {"$meta": {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}}
        if value.layout is not torch.strided or value.is_quantized or value.is_complex():
            raise NotPlain(
                f"{where} is a tensor of layout {value.layout} and dtype {value.dtype}; a plain one was expected"
            )
        name = f"t{len(self.tensors)}"
        self.tensors[name] = value
        self._count(value.numel() * value.element_size())
        return {"$tensor": name}

    def _count(self, num_bytes: int) -> None:
        self.left -= num_bytes
        if self.left < 0:
            raise NotPlain(f"the answer is too large; at most {self.max_bytes} bytes were expected")


def _document(text: bytes) -> Any:
    """Read JSON that may come from student code, unless it would become too many objects."""
    if len(text) > MAX_JSON_BYTES or sum(map(text.count, (b",", b"[", b"{"))) > MAX_JSON_ITEMS:
        raise NotPlain(f"the answer is too large; at most {MAX_JSON_ITEMS} values were expected")
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(text: str) -> None:
    raise NotPlain(f"the answer holds {text}; finite numbers were expected")


def _built(value: Any, tensors: dict[str, torch.Tensor], depth: int) -> Any:
    if depth > 2 * MAX_DEPTH:
        raise NotPlain("the answer is nested too deeply")
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPlain(f"the answer holds {value}; finite numbers were expected")
    if isinstance(value, list):
        return [_built(item, tensors, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key.startswith("$") for key in value):
        return _built_special(value, tensors)
    return {key: _built(item, tensors, depth + 1) for key, item in value.items()}


def _built_special(value: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Any:
    if len(value) != 1:
        raise NotPlain("the answer uses a reserved key")
    ((kind, content),) = value.items()
    if kind == "$tensor" and type(content) is str:
        return tensors.pop(content)
    if kind == "$dtype" and type(content) is str:
        return _dtype(content)
    if kind == "$meta" and type(content) is dict and set(content) == {"shape", "dtype"}:
        shape = content["shape"]
        if type(shape) is list and all(type(size) is int and size >= 0 for size in shape):
            return MetaTensor(tuple(shape), _dtype(content["dtype"]))
    raise NotPlain(f"the answer uses the reserved key {kind!r:.40}")


def _dtype(name: Any) -> torch.dtype:
    found = getattr(torch, name, None) if type(name) is str else None
    if not isinstance(found, torch.dtype):
        raise NotPlain(f"the answer names the dtype {name!r:.40}, which torch doesn't have")
    return found


def send(connection: socket.socket, header: dict[str, Any], blob: bytes = b"") -> None:
    """Send one frame: two lengths, a JSON header, a blob."""
    text = json.dumps(header).encode()
    connection.sendall(_HEADER.pack(len(text), len(blob)) + text + blob)


def frame(header: dict[str, Any], blob: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    text = json.dumps(header).encode()
    return _HEADER.pack(len(text), len(blob)) + text + blob


def frame_size(received: bytes | bytearray) -> int | None:
    """Return how many bytes the frame at the start of ``received`` takes in all, or None while it isn't known."""
    if len(received) < _HEADER.size:
        return None
    return _HEADER.size + sum(_HEADER.unpack(bytes(received[: _HEADER.size])))


def unframe(received: bytes | bytearray) -> tuple[dict[str, Any], bytes]:
    """Cut a complete frame into header and blob.

    Raises:
        NotPlain: it isn't one.
    """
    num_text, num_blob = _HEADER.unpack(bytes(received[: _HEADER.size]))
    text = bytes(received[_HEADER.size : _HEADER.size + num_text])
    blob = bytes(received[_HEADER.size + num_text : _HEADER.size + num_text + num_blob])
    try:
        header = _document(text)
    except NotPlain:
        raise
    except (ValueError, RecursionError) as error:
        raise NotPlain(f"the answer's header isn't JSON: {error}") from None
    if type(header) is not dict or len(blob) != num_blob:
        raise NotPlain("the answer is cut short or has no header")
    return header, blob


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame from a trusted peer; None at the end of the stream."""
    head = _exactly(connection, _HEADER.size)
    if head is None:
        return None
    rest = _exactly(connection, sum(_HEADER.unpack(head)))
    return None if rest is None else unframe(head + rest)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)

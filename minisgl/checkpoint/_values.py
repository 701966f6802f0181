"""What the maker writes into a tensor: the same values whatever files they are spread over.

``tagged`` values tell every place of a checkpoint from every other. Eight neighbouring elements (counted through the
whole tensor, row by row, from a multiple of eight) hold the eight digits, to base 128 and most significant first, of

    number of the tensor x 128**5 + position // 8

and 1 is added to each digit, so that none is zero. The tensor's number counts the model's tensors in their order (see
``stored_shapes``). Digits stay within 1 to 128, which float32, float16 and bfloat16 all hold exactly.
"""

import math
import zlib
from collections.abc import Iterator, Mapping

import torch

from minisgl.checkpoint._shapes import stored_shapes
from minisgl.errors import ConfigError

_BASE = 128
_NUM_DIGITS = 8
_CHUNK_ELEMENTS = 4 * 1024 * 1024
MAX_TENSORS = _BASE**3


def tagged_values(tensor_number: int, first: int, count: int) -> torch.Tensor:
    """Return ``count`` tagged elements of a tensor from flat position ``first`` on, float32 [count]."""
    position = torch.arange(first, first + count, dtype=torch.int64)
    code = tensor_number * _BASE**5 + position // _NUM_DIGITS
    exponent = _NUM_DIGITS - 1 - position % _NUM_DIGITS
    return ((code // _BASE**exponent) % _BASE + 1).to(torch.float32)


def read_tag(values: torch.Tensor) -> tuple[int, int]:
    """Tell where eight tagged elements come from.

    Args:
        values: Eight neighbouring elements, the first at a multiple of eight; any dtype.

    Returns:
        The tensor's number and the flat position of the first element.
    """
    code = 0
    for digit in values.tolist():
        code = code * _BASE + int(digit) - 1
    return code // _BASE**5, code % _BASE**5 * _NUM_DIGITS


class ModelValues:
    """The values of all tensors of one model.

    Args:
        hf_config: The model's config.json as a dict; its initializer_range is the spread of random weights.
        data: ``random``, ``tagged`` or ``sparse`` (zeros).
        seed: Seed of random values.

    Attributes:
        shapes: Shape of each of the model's tensors by key.
    """

    def __init__(self, hf_config: Mapping[str, object], data: str, seed: int) -> None:
        self.shapes = stored_shapes(hf_config)
        self._data = data
        self._seed = seed
        self._scale = float(hf_config.get("initializer_range") or 0.02)  # type: ignore[arg-type]
        self._numbers = {key: number for number, key in enumerate(self.shapes)}
        if len(self.shapes) > MAX_TENSORS:
            raise ConfigError(
                f"{len(self.shapes)} tensors. Expected at most {MAX_TENSORS}. Use fewer layers or experts."
            )

    def chunks(self, key: str) -> Iterator[torch.Tensor]:
        """Yield a tensor's values, float32, in flat chunks of at most 16 MiB.

        Random values depend on the key and the seed, not on the order of writing; norms lie around 1.
        """
        generator = torch.Generator().manual_seed(zlib.crc32(key.encode()) * 1_000_003 + self._seed)
        centre = 1.0 if "norm" in key.split(".")[-2] else 0.0
        # A uniform distribution of that standard deviation: several times faster to draw than a normal one.
        width = 3**0.5 * self._scale
        num_elements = math.prod(self.shapes[key])
        for first in range(0, num_elements, _CHUNK_ELEMENTS):
            count = min(_CHUNK_ELEMENTS, num_elements - first)
            if self._data == "tagged":
                yield tagged_values(self._numbers[key], first, count)
            elif self._data == "sparse":
                yield torch.zeros(count)
            else:
                yield torch.empty(count).uniform_(centre - width, centre + width, generator=generator)

"""What a model folder says about when generation ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from minisgl.errors import ConfigError
from minisgl.utils.hf_config import read_config_file

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def eos_token_ids_of(folder: Path, hf_config: PretrainedConfig) -> frozenset[int]:
    """Return the token ids that end a generation, as transformers' `generate` takes them.

    `generation_config.json` decides where it exists, even if it names none; otherwise the model's config does.

    Raises:
        ConfigError: `eos_token_id` is neither an int, a list of ints, nor null.
    """
    file = folder / "generation_config.json"
    if file.is_file():
        return _as_ids(read_config_file(file).get("eos_token_id"), file)
    return _as_ids(getattr(hf_config, "eos_token_id", None), folder / "config.json")


def _as_ids(value: Any, file: Path) -> frozenset[int]:
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(type(token) is int for token in ids):
        raise ConfigError(
            f"{file} has eos_token_id {value!r}; expected a token id, a list of them, or null. Correct the field."
        )
    return frozenset(ids)

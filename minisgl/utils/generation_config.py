"""What a model folder says about when generation ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from minisgl.checkpoint._fault import fault, quoted
from minisgl.errors import ConfigError
from minisgl.utils.hf_config import HFConfig, read_config_file


def eos_token_ids_of(folder: Path, hf_config: HFConfig) -> frozenset[int]:
    """Return the token ids that end a generation, as transformers' `generate` takes them.

    `generation_config.json` decides where it exists, even if it names none; otherwise the model's config does.

    Raises:
        ConfigError: `eos_token_id` is neither an int, a list of ints, nor null.
    """
    file = folder / "generation_config.json"
    if os.path.lexists(file):
        return _as_ids(read_config_file(file).get("eos_token_id"), file)
    return _as_ids(getattr(hf_config, "eos_token_id", None), folder / "config.json")


def _as_ids(value: Any, file: Path) -> frozenset[int]:
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(type(token) is int for token in ids):
        found, expected = f"eos_token_id is {quoted(value)}", "a token id, a list of them, or null"
        raise fault(file, found, expected, "correct the field", ConfigError)
    return frozenset(ids)

"""Turn the text of a config.json into an object with transformers' attribute names, without importing transformers."""

from __future__ import annotations

import copy
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from minisgl.checkpoint._fault import fault, listed, quoted
from minisgl.checkpoint._untrusted import parse_json, read_regular_file
from minisgl.checkpoint.kinds import what_else
from minisgl.errors import ConfigError
from minisgl.hf_fields import (
    DEFAULTS,
    HARMLESS,
    KNOWN,
    KNOWN_ROPE,
    MODEL_TYPE,
    NEVER_DEFAULTED,
    NEVER_DEFAULTED_MOE,
)
from minisgl.utils.hf_config_limits import check_names, check_rope, check_values

_LARGEST_BYTES = 2**24


class HFConfig(SimpleNamespace):
    """Hold a config.json's fields as attributes, where transformers' config classes have them.

    Fields that the file leaves out have the default of transformers' class, except sizes: those are None. RoPE stays in
    the layout of the file.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the fields, as the method of transformers' classes does."""
        return copy.deepcopy(vars(self))


def read_config_file(file: Path) -> dict[str, Any]:
    """Read config.json, or another JSON file that lies beside it, without trusting it.

    Raises:
        ConfigError: the file is missing, isn't a regular file, is too large, isn't JSON, holds a key twice, or isn't an
            object. Where there is no config.json, the message says what the folder is instead.
    """
    expected = f"the {file.name} of a Hugging Face model"
    advice = "download the file again, or check the path"
    if file.name == "config.json" and not os.path.lexists(file):
        found, remedy = what_else(file.parent) or ("no config.json", "download the folder again, or check the path")
        raise fault(file.parent, found, expected, remedy, ConfigError)
    text, num_bytes = read_regular_file(file, _LARGEST_BYTES, expected, ConfigError)
    if num_bytes > _LARGEST_BYTES:
        raise fault(file, f"{num_bytes} bytes long", f"{expected}, of at most {_LARGEST_BYTES} bytes", advice, ConfigError)
    raw = parse_json(file, text, "the file", advice, ConfigError)
    if not isinstance(raw, dict):
        raise fault(file, f"a JSON {type(raw).__name__}", f"{expected}, which is an object", advice, ConfigError)
    return raw


def build_hf_config(raw: dict[str, Any], file: Path) -> HFConfig:
    """Build the config object for the fields of `file`; a config of another architecture keeps just its own fields.

    Unknown fields are named in one warning.

    Args:
        raw: config.json's fields.
        file: where they come from, for messages.

    Raises:
        ConfigError: two fields contradict each other, a value can't be a model's, or a field turns on what isn't computed.
    """
    check_names(raw, file)
    model_type = _known_model_type(raw)
    if model_type is None:
        return HFConfig(**{"architectures": None, "model_type": "", **raw})
    raw = _one_name_for_experts(raw, file)
    check_values(raw, file)
    check_rope(raw, file)
    _refuse_what_would_change(raw, file)
    _warn(raw, model_type, file)
    sizes = NEVER_DEFAULTED + (NEVER_DEFAULTED_MOE if model_type == "qwen3_moe" else ())
    fields = {**dict.fromkeys(sizes), **DEFAULTS[model_type], **raw}
    fields["model_type"] = raw.get("model_type") or model_type
    _settle_window(fields, model_type)
    _settle_original_length(fields)
    if fields["num_key_value_heads"] is None:
        fields["num_key_value_heads"] = raw.get("num_attention_heads")
    return HFConfig(**fields)


def _known_model_type(raw: dict[str, Any]) -> str | None:
    """Return the model type whose class reads these fields, or None when it is none of the four.

    `architectures` decides before `model_type`: draft and reward models carry a model_type of llama or qwen3.
    """
    if raw.get("architectures"):
        return MODEL_TYPE.get(raw["architectures"][0])
    model_type = raw.get("model_type")
    return model_type if model_type in MODEL_TYPE.values() else None


def _one_name_for_experts(raw: dict[str, Any], file: Path) -> dict[str, Any]:
    """Read `num_local_experts`, under which transformers 5 saves it, as `num_experts`."""
    other, own = raw.get("num_local_experts"), raw.get("num_experts")
    if other is None:
        return raw
    if own is not None and own != other:
        found = f"num_experts {quoted(own)} and num_local_experts {quoted(other)}"
        raise fault(file, found, "one number of experts", "remove the wrong one", ConfigError)
    return {**raw, "num_experts": other}


def _refuse_what_would_change(raw: dict[str, Any], file: Path) -> None:
    problems = [
        f"{name} is {quoted(raw[name])}"
        for name, harmless in HARMLESS.items()
        if raw.get(name) is not None and raw[name] not in harmless
    ]
    if problems:
        expected = "a config without these: a causal decoder of text, with whole heads and the same layers throughout"
        raise fault(file, f"{'; '.join(problems)}, which isn't computed here", expected, "choose another model", ConfigError)


def _warn(raw: dict[str, Any], model_type: str, file: Path) -> None:
    """Name the fields that nobody knows, and a model_type that isn't the architecture's, in one line."""
    unknown = sorted(raw.keys() - KNOWN)
    for home in ("rope_scaling", "rope_parameters"):
        unknown += [f"{home}.{name}" for name in sorted((raw.get(home) or {}).keys() - KNOWN_ROPE)]
    remarks = [f"fields that are unknown and have no effect: {listed(unknown)}"] if unknown else []
    given = raw.get("model_type")
    if given not in (None, model_type):
        remarks.append(f"model_type is {quoted(given)}, but {raw['architectures'][0]} decides: read as {model_type}")
    if remarks:
        warnings.warn(f"{file}: {'; '.join(remarks)}.", stacklevel=4)


def _settle_window(fields: dict[str, Any], model_type: str) -> None:
    """Say which layers attend over a window, as the Qwen classes do: none while `use_sliding_window` is off."""
    if "use_sliding_window" not in DEFAULTS[model_type]:
        return
    if not fields["use_sliding_window"]:
        fields["sliding_window"] = None
    num_layers = fields.get("num_hidden_layers")
    if model_type != "qwen3_moe" and fields["layer_types"] is None and type(num_layers) is int:
        first = num_layers if fields["sliding_window"] is None else fields["max_window_layers"]
        kinds = ("full_attention", "sliding_attention")
        fields["layer_types"] = [kinds[layer >= first] for layer in range(num_layers)]


def _settle_original_length(fields: dict[str, Any]) -> None:
    """Move a top-level `original_max_position_embeddings` to the RoPE fields, where transformers 5 lets it win."""
    length = fields.get("original_max_position_embeddings")
    for home in ("rope_parameters", "rope_scaling"):
        rope = fields.get(home)
        if length is not None and rope and rope.get("rope_type", rope.get("type")) in ("yarn", "llama3"):
            fields[home] = {**rope, "original_max_position_embeddings": length}

"""Questions about ``models/config.py``; ``config`` is what a config.json holds, ``bare`` passes just these fields."""

from __future__ import annotations

import copy
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

import torch


def read_hf_config(config: dict[str, Any]) -> Any:
    """Write a config.json and read it as the engine does (this is provided code, not the student's)."""
    from minisgl.utils import cached_load_hf_config

    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(config))
    return cached_load_hf_config(str(folder))


class _BareConfig:
    """Hold fields as attributes, beside them only what every config of transformers 4.57 and 5 has, with its default.

    What only some releases or some models' classes have stays absent: head_dim, rope_parameters, tie_word_embeddings, ….
    """

    model_type = ""
    architectures = None
    dtype = torch_dtype = None
    transformers_version = None
    name_or_path = ""
    is_encoder_decoder = output_hidden_states = False
    return_dict = True

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def to_dict(self) -> dict[str, Any]:
        """Give a copy of the fields and the defaults, as the method of transformers does."""
        defaults = {name: value for name, value in vars(_BareConfig).items() if name[0] != "_" and not callable(value)}
        return copy.deepcopy(defaults | vars(self))


def _config(fields: dict[str, Any], bare: bool) -> Any:
    """Give the config as transformers reads it or, with ``bare``, these fields and nothing that only some configs have."""
    return _BareConfig(fields) if bare else read_hf_config(fields)


def as_plain(value: Any) -> Any:
    """Turn dataclasses and tuples into dicts and lists, so that they may cross."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if type(value) in (tuple, list):
        return [as_plain(item) for item in value]
    if type(value) is dict:
        return {key: as_plain(item) for key, item in value.items()}
    return value


def architecture(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the architecture's name."""
    from minisgl.models.config import architecture_of

    return architecture_of(_config(config, bare))


def sizes(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the sizes."""
    from minisgl.models.config import sizes_of

    return as_plain(sizes_of(_config(config, bare)))


def head_dim(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the size of one head."""
    from minisgl.models.config import head_dim_of

    return head_dim_of(_config(config, bare))


def rope_parameters(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the RoPE parameters."""
    from minisgl.models.config import rope_parameters_of

    return as_plain(rope_parameters_of(_config(config, bare)))


def rope_parameters_change(config: dict[str, Any]) -> Any:
    """Ask for the RoPE parameters of a bare config, and give the config's fields as they are afterwards."""
    from minisgl.models.config import rope_parameters_of

    bare = _BareConfig(config)
    rope_parameters_of(bare)
    return as_plain(vars(bare))


def rope(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the RotaryConfig, as a dict."""
    from minisgl.models.config import rotary_config_of

    return as_plain(rotary_config_of(_config(config, bare)))


def biases(config: dict[str, Any], architecture: str, bare: bool = False) -> Any:
    """Ask which layers carry a bias."""
    from minisgl.models.config import biases_of

    return as_plain(biases_of(_config(config, bare), architecture))


def moe(config: dict[str, Any], architecture: str, bare: bool = False) -> Any:
    """Ask for the mixture-of-experts fields."""
    from minisgl.models.config import moe_fields_of

    return as_plain(moe_fields_of(_config(config, bare), architecture))


def refusals(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask whether the config is refused: an exception, or None."""
    from minisgl.models.config import refuse_uncomputed

    return refuse_uncomputed(_config(config, bare))


def model_config(config: dict[str, Any], bare: bool = False) -> Any:
    """Ask for the whole ModelConfig as a dict; ``is_moe``, ``has_qk_norm`` and ``is_sparse_layer`` (a list) are added."""
    from minisgl.models.config import ModelConfig

    built = ModelConfig.from_hf(_config(config, bare))
    answer = as_plain(built)
    answer["is_moe"] = built.is_moe
    answer["has_qk_norm"] = built.has_qk_norm
    answer["is_sparse_layer"] = [built.is_sparse_layer(layer) for layer in range(min(built.num_layers, 200))]
    return answer


def is_frozen(config: dict[str, Any], bare: bool = False) -> bool:
    """Ask whether a ModelConfig refuses to be changed."""
    from minisgl.models.config import ModelConfig

    built = ModelConfig.from_hf(_config(config, bare))
    try:
        built.num_layers = 1
    except AttributeError:
        return True
    return False


def kv_bytes(config: dict[str, Any], dtype: str, bare: bool = False) -> Any:
    """Ask for the KV-cache bytes of one token; ``dtype`` is a name as ``bfloat16``."""
    from minisgl.models.config import ModelConfig, kv_bytes_per_token

    return kv_bytes_per_token(ModelConfig.from_hf(_config(config, bare)), getattr(torch, dtype))

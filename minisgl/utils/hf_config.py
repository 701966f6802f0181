"""Turn the text of a config.json into a transformers config that says no more than the file does."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minisgl.errors import ConfigError
from minisgl.utils.hf_config_limits import check_names, check_values

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# The transformers config class of each architecture that is computed here, by its model type.
_MODEL_TYPE = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}

# Sizes that transformers' classes have a default for (that of one particular model), with their other spellings.
_NEVER_DEFAULTED = {
    "hidden_size": (),
    "intermediate_size": (),
    "num_attention_heads": (),
    "num_hidden_layers": (),
    "vocab_size": (),
}
_NEVER_DEFAULTED_MOE = {
    "moe_intermediate_size": (),
    "num_experts": ("num_local_experts",),
    "num_experts_per_tok": (),
}


def read_config_file(file: Path) -> dict[str, Any]:
    """Read config.json, or another JSON file that lies beside it.

    Raises:
        ConfigError: the file is missing, can't be read, isn't JSON, or isn't an object.
    """
    expected = f"expected the {file.name} of a Hugging Face model. Download the folder again, or check the path."
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {file.name} in {file.parent}; {expected}") from error
    except OSError as error:
        raise ConfigError(f"{file} can't be read ({error.strerror}); {expected}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} isn't JSON ({error}); {expected}") from error
    if not isinstance(raw, dict):
        raise ConfigError(f"{file} holds a JSON {type(raw).__name__}, not an object; {expected}")
    return raw


def build_hf_config(raw: dict[str, Any], file: Path) -> PretrainedConfig:
    """Build the config object for the fields of `file`.

    Args:
        raw: config.json's fields.
        file: where they come from, for messages.

    Raises:
        ConfigError: two fields give the same RoPE value differently, one isn't an object, or a value can't be a model's.
    """
    check_names(raw, file)
    model_type = _known_model_type(raw)
    if model_type is None:
        return _bare_config(raw)
    check_values(raw, file)
    _check_rope_fields(raw, file)
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    fields = {**raw, "model_type": model_type}
    try:
        with quiet_transformers():
            config = CONFIG_MAPPING[model_type].from_dict(json.loads(json.dumps(fields)))
    except Exception:  # whatever its validation raises: ModelConfig.from_hf names the field at fault
        return _bare_config({"tie_word_embeddings": False, **fields})
    _restore_what_is_absent(config, raw, model_type)
    return config


def _known_model_type(raw: dict[str, Any]) -> str | None:
    """Return the model type whose class reads these fields, or None when it is none of the four.

    `architectures` decides before `model_type`: draft and reward models carry a model_type of llama or qwen3.
    """
    architectures = raw.get("architectures")
    model_type = raw.get("model_type")
    if architectures:
        first = architectures[0] if isinstance(architectures, list) else None
        by_architecture = _MODEL_TYPE.get(first) if isinstance(first, str) else None
        if by_architecture is None or model_type not in (None, by_architecture):
            return None
        return by_architecture
    return model_type if isinstance(model_type, str) and model_type in _MODEL_TYPE.values() else None


def _restore_what_is_absent(config: PretrainedConfig, raw: dict[str, Any], model_type: str) -> None:
    """Take back the class defaults that would pass for the file's own values."""
    names = _NEVER_DEFAULTED | (_NEVER_DEFAULTED_MOE if model_type == "qwen3_moe" else {})
    for name, others in names.items():
        if all(raw.get(spelling) is None for spelling in (name, *others)):
            _set(config, name, None)
    if raw.get("num_key_value_heads") is None:
        _set(config, "num_key_value_heads", raw.get("num_attention_heads"))


def _bare_config(raw: dict[str, Any]) -> PretrainedConfig:
    """Hold the file's fields as they are, in the base class, which interprets none of them."""
    from transformers import PretrainedConfig

    config = PretrainedConfig()
    for name, value in raw.items():
        _set(config, name, value)
    if isinstance(raw.get("rope_scaling"), dict):
        # transformers 5 answers for rope_scaling with rope_parameters, whatever the file has.
        _set(config, "rope_parameters", {**raw["rope_scaling"], **(raw.get("rope_parameters") or {})})
    return config


def _set(config: PretrainedConfig, name: str, value: Any) -> None:
    """Set a field past the class's own validation, which knows no absent sizes."""
    name = config.attribute_map.get(name, name)
    config.__dict__[name] = value


def _check_rope_fields(raw: dict[str, Any], file: Path) -> None:
    """Refuse RoPE fields that aren't objects, and values that the file gives twice and differently.

    transformers 5 would take one of the two, and pass over an empty string or a 0, without a word.
    """
    homes = {name: raw[name] for name in ("rope_parameters", "rope_scaling") if raw.get(name) is not None}
    for name, value in homes.items():
        if not isinstance(value, dict):
            raise ConfigError(
                f"{file} has {name} {value!r}; expected an object with a rope_type, or null. Correct {name}."
            )
    if raw.get("rope_theta") is not None:
        homes["the top level"] = {"rope_theta": raw["rope_theta"]}
    seen: dict[str, tuple[str, Any]] = {}
    for home, fields in homes.items():
        for name, value in fields.items():
            if value is None:
                continue
            first_home, first_value = seen.setdefault("rope_type" if name == "type" else name, (home, value))
            if first_value != value:
                raise ConfigError(
                    f"{file} has {name} {first_value!r} in {first_home} and {value!r} in {home}; "
                    "expected one value. Remove the wrong one."
                )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' remarks off stderr; what matters becomes an error of our own."""
    logger = logging.getLogger("transformers")
    before = logger.level
    if before >= logging.ERROR:  # quiet already; to set a level empties the cache of every logger
        yield
        return
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)

"""Values that no model's config can have are refused at once, with the field's name and no hang."""

import json
import re
import time
from pathlib import Path

import pytest

from minisgl.errors import ConfigError
from tests.configs.compare import ours_of
from tests.configs.families import llama, qwen3_moe

END = "Expected: values that a model can have. What to do: correct these fields in config.json."
LLAMA = llama(2, 768, 2048, 12)
DEEP = 1.0
for _ in range(400):
    DEEP = [DEEP]

CASES = {
    "infinity": (LLAMA, {"rope_theta": float("inf")}, "rope_theta inf isn't finite"),
    "not a number": (LLAMA, {"rms_norm_eps": float("nan")}, "rms_norm_eps nan isn't finite"),
    "inside a list": (LLAMA, {"eos_token_id": [1, 2**60]}, "eos_token_id.1 is beyond 9007199254740992"),
    "deep inside": (LLAMA, {"rope_scaling": {"rope_type": "yarn", "factor": 1e999}}, "rope_scaling.factor inf isn't finite"),
    "a size beyond any number": (LLAMA, {"hidden_size": 10**400}, "hidden_size is beyond 9007199254740992"),
    "too many layers": (LLAMA, {"num_hidden_layers": 2**31}, "num_hidden_layers 2147483648 is more than 4096"),
    "too many heads": (LLAMA, {"num_attention_heads": 2**40}, "num_attention_heads 1099511627776 is more than 16384"),
    "too many experts in all": (
        qwen3_moe(2, 64, 64, 4, 64),
        {"num_hidden_layers": 4000, "num_experts": 16000},
        "num_hidden_layers x num_experts is more than 131072",
    ),
    "a switch that is text": (LLAMA, {"tie_word_embeddings": "false"}, "tie_word_embeddings 'false' isn't true or false"),
    "a switch that is a number": (LLAMA, {"attention_bias": 2}, "attention_bias 2 isn't true or false"),
    "layers that aren't a list": (LLAMA, {"mlp_only_layers": 3}, "mlp_only_layers 3 isn't a list of layer numbers"),
    "layer types that aren't names": (LLAMA, {"layer_types": [[]]}, "layer_types [[]] isn't a list of names"),
    "a window that is no number": (LLAMA, {"sliding_window": "wide"}, "sliding_window 'wide' isn't a whole number from 0"),
    "quantization that is no object": (LLAMA, {"quantization_config": 8}, "quantization_config 8 isn't an object"),
    "two at once": (
        LLAMA,
        {"mlp_bias": "no", "vocab_size": 2**40},
        "vocab_size 1099511627776 is more than 268435456; mlp_bias 'no' isn't true or false",
    ),
}  # fmt: skip

NAMES = {
    "architectures that are a name": ({"architectures": "Llama"}, "architectures 'Llama'. Expected: a list of class names"),
    "architectures that are numbers": ({"architectures": [7]}, "architectures [7]. Expected: a list of class names"),
    "a model type that is a list": ({"model_type": ["llama"]}, "model_type ['llama']. Expected: a name"),
}

YARN = {"rope_type": "yarn", "factor": 4.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0}
ROPES = {
    "a type that isn't a name": ({"rope_scaling": {"type": ["yarn"]}}, "rope_scaling.type ['yarn'] isn't a name"),
    "base 1 with yarn": (
        {"rope_theta": 1.0, "rope_scaling": YARN},
        "rope_theta is 1.0, but yarn takes its logarithm as a divisor and needs more than 1",
    ),
    "a base in the same place": (
        {"rope_parameters": {**YARN, "rope_theta": 0.5}},
        "rope_theta is 0.5, but yarn takes its logarithm as a divisor and needs more than 1",
    ),
    "negative betas": (
        {"rope_scaling": {**YARN, "beta_fast": -3, "beta_slow": -1}},
        "rope_scaling.beta_fast -3 isn't a positive number; rope_scaling.beta_slow -1 isn't a positive number",
    ),
    "a negative original length": (
        {"rope_scaling": {**YARN, "original_max_position_embeddings": -16}},
        "rope_scaling.original_max_position_embeddings -16 isn't a positive number",
    ),
    "the same at the top": (
        {"original_max_position_embeddings": "long", "rope_scaling": YARN},
        "original_max_position_embeddings 'long' isn't a positive number",
    ),
    "a text for a switch": (
        {"rope_scaling": {**YARN, "truncate": "false"}},
        "rope_scaling.truncate 'false' isn't true or false",
    ),
    "a negative scale": (
        {"rope_scaling": {**YARN, "mscale": -1.0}},
        "rope_scaling.mscale -1.0 isn't a number from 0",
    ),
    "frequencies the wrong way round": (
        {"rope_scaling": {**LLAMA3, "low_freq_factor": 4.0, "high_freq_factor": 4.0}},
        "rope_scaling.low_freq_factor 4.0 isn't below high_freq_factor 4.0",
    ),
    "one object for each kind of layer": (
        {"rope_parameters": {"full_attention": YARN, "sliding_attention": {"rope_type": "default"}}},
        "rope_parameters.full_attention is an object: RoPE that differs by layer isn't computed here; "
        "rope_parameters.sliding_attention is an object: RoPE that differs by layer isn't computed here",
    ),
}


def read(folder: Path, config: object) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    ours_of(folder)


@pytest.mark.parametrize("name", CASES)
def test_an_impossible_value_is_refused_with_its_message(tmp_path: Path, name: str) -> None:
    config, changes, found = CASES[name]
    config = {**config, "model_type": "mistral"}  # all checks run whatever the model_type says
    started = time.monotonic()
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{tmp_path}/config.json: {found}. {END}')}$"):
        read(tmp_path, {**config, **changes})
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("model_type", ["llama", "mistral"])
@pytest.mark.parametrize("name", ROPES)
def test_rope_that_no_formula_can_compute_is_refused_by_field(tmp_path: Path, name: str, model_type: str) -> None:
    changes, found = ROPES[name]
    end = "Expected: RoPE fields that can be computed with. What to do: correct these fields in config.json."
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{tmp_path}/config.json: {found}. {end}')}$"):
        read(tmp_path, {**LLAMA, **changes, "model_type": model_type})


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    changes, message = NAMES[name]
    with pytest.raises(ConfigError, match=re.escape(message)):
        read(tmp_path, {**LLAMA, **changes})


def test_deep_nesting_is_no_trouble(tmp_path: Path) -> None:
    read(tmp_path, {**LLAMA, "task_specific_params": DEEP})


def test_the_largest_real_sizes_are_within_the_limits(tmp_path: Path) -> None:
    read(tmp_path, qwen3_moe(94, 4096, 12288, 64, 1536))
    read(tmp_path, llama(126, 16384, 53248, 128, 128256, num_key_value_heads=8))

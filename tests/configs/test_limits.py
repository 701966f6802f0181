"""Values that no model's config can have are refused at once, with the field's name and no hang."""

import json
import re
import time
from pathlib import Path

import pytest

from minisgl.errors import ConfigError
from tests.configs.compare import ours_of
from tests.configs.families import llama, qwen3_moe

END = "Expected values that a model can have. Correct these fields."
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
    "a RoPE type that isn't a name": (
        LLAMA,
        {"rope_scaling": {"type": ["yarn"], "factor": 2.0}},
        "rope_scaling.type ['yarn'] isn't a name",
    ),
    "two at once": (
        LLAMA,
        {"mlp_bias": "no", "vocab_size": 2**40},
        "vocab_size 1099511627776 is more than 268435456; mlp_bias 'no' isn't true or false",
    ),
}  # fmt: skip

NAMES = {
    "architectures that are a name": (
        {"architectures": "LlamaForCausalLM"},
        "architectures 'LlamaForCausalLM'; expected",
    ),
    "architectures that are numbers": ({"architectures": [7]}, "architectures [7]; expected a list of class names."),
    "a model type that is a list": ({"model_type": ["llama"]}, "model_type ['llama']; expected a name. Correct it."),
}


def read(folder: Path, config: object) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    ours_of(folder)


@pytest.mark.parametrize("name", CASES)
def test_an_impossible_value_is_refused_with_its_message(tmp_path: Path, name: str) -> None:
    config, changes, found = CASES[name]
    started = time.monotonic()
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{tmp_path}/config.json: {found}. {END}')}$"):
        read(tmp_path, {**config, **changes})
    assert time.monotonic() - started < 30


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

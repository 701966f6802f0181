"""Nothing in a config is ignored by accident: what transformers' own code reads, both lines of it, stands in our tables.

Each class is built, run and asked to generate with every type of RoPE while the fields that are read are recorded.
"""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from transformers import AutoModelForCausalLM, PretrainedConfig

from minisgl.errors import ConfigError
from minisgl.hf_fields import COMPUTED, DEFAULTS, HARMLESS, KNOWN, KNOWN_ROPE, MODEL_TYPE, WITHOUT_EFFECT
from minisgl.models.config import REQUIRED_ROPE_FIELDS
from minisgl.utils import cached_load_hf_config
from tests.configs.compare import CONFIG_CLASSES

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
NUMBERS = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
# Plans of how transformers spreads or wraps a model, and other class attributes that no config.json sets.
OF_THE_CLASS = re.compile(r"base_model_\w+_plan|sub_configs\w*|default_(rope_type|theta)|is_heterogeneous|ignore_keys\w*")


def built(architecture: str, **changes: Any) -> PretrainedConfig:
    fields = {**SMALL, **(MOE if architecture == "Qwen3MoeForCausalLM" else {}), **changes}
    return CONFIG_CLASSES[architecture](**json.loads(json.dumps(fields)))


class Recorded(dict):
    """A dict that writes down which of its keys are asked for."""

    asked: ClassVar[set[str]] = set()

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


@pytest.fixture
def fields_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Record the names of all data that is asked of any config object, absent data too."""
    read: set[str] = set()
    plain = PretrainedConfig.__getattribute__

    def recording(self: PretrainedConfig, name: str) -> Any:
        if not name.startswith("_") and not callable(getattr(type(self), name, None)):
            read.add(name)
        return plain(self, name)

    monkeypatch.setattr(PretrainedConfig, "__getattribute__", recording)
    yield read


@pytest.mark.parametrize("architecture", MODEL_TYPE)
def test_every_field_that_transformers_reads_is_known(
    architecture: str, fields_read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    monkeypatch.setattr(Recorded, "asked", asked)
    for rope_type, needed in REQUIRED_ROPE_FIELDS.items():
        rope = {"rope_type": rope_type, **{name: NUMBERS[name] for name in needed}}
        if rope_type in ("yarn", "llama3"):
            rope["original_max_position_embeddings"] = 16
        config = built(architecture, rope_scaling=rope)
        for home in ("rope_parameters", "rope_scaling"):
            if isinstance(vars(config).get(home), dict):
                vars(config)[home] = Recorded(vars(config)[home])
        model = AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            model(input_ids=torch.arange(80).remainder(61)[None])
            model.generate(torch.arange(5)[None], max_new_tokens=2, do_sample=False, pad_token_id=0)
    assert "hidden_size" in fields_read  # the recorder works
    assert "rope_type" in asked
    assert {name for name in fields_read - KNOWN if not OF_THE_CLASS.fullmatch(name)} == set()
    assert {name for name in asked if not name.startswith("_")} - KNOWN_ROPE - {"dtype"} == set()


@pytest.mark.parametrize("architecture", MODEL_TYPE)
def test_every_field_that_the_classes_declare_or_take_out_of_a_file_is_known(architecture: str) -> None:
    kind = CONFIG_CLASSES[architecture]
    declared = set(inspect.signature(kind.__init__).parameters) | set(inspect.signature(PretrainedConfig.__init__).parameters)
    takes_out = [getattr(PretrainedConfig, name, None) for name in ("__post_init__", "convert_rope_params_to_dict")]
    for method in [method for method in takes_out if method] or [PretrainedConfig.__init__]:
        declared |= set(re.findall(r"kwargs\.(?:pop|get)\(\"(\w+)\"", inspect.getsource(method)))
    assert {"hidden_size", "torch_dtype", "name_or_path"} <= declared
    assert declared - KNOWN - {"self", "args", "kwargs"} == set()


@pytest.mark.parametrize("architecture", MODEL_TYPE)
def test_a_field_without_effect_changes_no_logit_of_transformers(architecture: str) -> None:
    # Numbers where a class asks for numbers; what a class validates away has no effect either.
    odd = {name: 1 for names in WITHOUT_EFFECT.values() for name in names if name.endswith(("_id", "_size", "_tp"))}
    odd |= {"attention_dropout": 0.5, "initializer_range": 0.7, "use_cache": False, "repetition_penalty": 3.0, "top_k": 1}
    odd |= {"router_aux_loss_coef": 9.0, "is_decoder": True, "tokenizer_class": "Other", "prefix": "x", "min_length": 7}
    odd |= {"auto_map": {"AutoModelForCausalLM": "other.Model"}, "id2label": {"0": "a"}, "no_repeat_ngram_size": 1}

    def logits(**changes: Any) -> torch.Tensor:
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(built(architecture, **changes)).eval()
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) / 5)
            return model(input_ids=torch.arange(20)[None]).logits

    assert torch.equal(logits(**odd), logits())


def harmful(name: str) -> Any:
    return {"pruned_heads": {"0": [1]}, "partial_rotary_factor": 0.5, "num_kv_shared_layers": 1}.get(name, True)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_field_that_would_change_the_answer_is_refused_unless_it_has_a_harmless_value(name: str, tmp_path: Path) -> None:
    fields = {**SMALL, "architectures": ["LlamaForCausalLM"]}
    for value in (None, *HARMLESS[name]):
        (tmp_path / "config.json").write_text(json.dumps({**fields, name: value}))
        cached_load_hf_config(tmp_path)
    value = False if name == "is_causal" else harmful(name)
    (tmp_path / "config.json").write_text(json.dumps({**fields, name: value}))
    with pytest.raises(ConfigError) as caught:
        cached_load_hf_config(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/config.json: {name} is {value}, which isn't computed here. Expected: a config without these: a causal "
        "decoder of text, with whole heads and the same layers throughout. What to do: choose another model."
    )


def test_no_field_stands_in_two_tables() -> None:
    tables = [COMPUTED, frozenset(HARMLESS), *WITHOUT_EFFECT.values()]
    assert sum(map(len, tables)) == len(KNOWN)


@pytest.mark.parametrize("architecture", MODEL_TYPE)
def test_the_defaults_are_those_of_transformers_classes(architecture: str, tmp_path: Path) -> None:
    theirs = built(architecture)
    sizes = {**SMALL, **(MOE if architecture == "Qwen3MoeForCausalLM" else {})}
    (tmp_path / "config.json").write_text(json.dumps({**sizes, "architectures": [architecture]}))
    ours = vars(cached_load_hf_config(tmp_path))
    differing = {}
    for name in DEFAULTS[MODEL_TYPE[architecture]].keys() - {"architectures"}:
        expected = getattr(theirs, name)
        # Left to ModelConfig.from_hf, which also reads transformers' own objects.
        if name == "head_dim" and ours[name] is None:
            expected = None
        elif name == "mlp_only_layers":
            expected = expected or None
        if ours[name] != expected:
            differing[name] = (ours[name], expected)
    assert differing == {}
    declared = set(inspect.signature(CONFIG_CLASSES[architecture].__init__).parameters) - {"self", "args", "kwargs"}
    base = set(inspect.signature(PretrainedConfig.__init__).parameters)
    without_default = {"rope_theta", "rope_scaling", "rope_parameters", *sizes}
    assert declared - base - without_default <= DEFAULTS[MODEL_TYPE[architecture]].keys()

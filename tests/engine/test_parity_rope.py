"""Frequencies, cos and sin are those of transformers' rotary embedding, whatever surrounds the building."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from minisgl.core import Batch, Context
from minisgl.engine import Engine
from minisgl.errors import ConfigError
from minisgl.layers import get_rope, set_rope_device
from minisgl.layers.rope_types import dynamic_inverse_frequencies, longest_sequence
from minisgl.models import ModelConfig, RotaryConfig
from minisgl.utils import cached_load_hf_config, torch_dtype
from tests.engine.oracle import difference, fresh, logits_of, make_oracle, prompts_for
from tests.engine.parity_cases import CASES, ORIGINAL_CONTEXT, Case

ROPE_CASES = [case for case in CASES if case.rope and case.stored == "float32"]
DYNAMIC = Case(
    "dynamic", "llama", {"max_position_embeddings": ORIGINAL_CONTEXT}, rope={"rope_type": "dynamic", "factor": 4.0}
)


def plain(**changes: Any) -> RotaryConfig:
    return dataclasses.replace(RotaryConfig(16, 16, 128, 10000.0, None), **changes)


@pytest.mark.parametrize("case", ROPE_CASES, ids=str)
def test_frequencies_are_bit_for_bit_those_of_transformers(case: Case, tmp_path: Path) -> None:
    theirs = make_oracle(case, tmp_path).model.rotary_emb
    ours = get_rope(ModelConfig.from_hf(cached_load_hf_config(tmp_path)).rotary_config)
    assert torch.equal(ours.inv_freq, theirs.inv_freq)
    assert ours.attention_scaling == theirs.attention_scaling


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cos_and_sin_are_those_of_transformers(dtype: torch.dtype, tmp_path: Path) -> None:
    theirs = make_oracle(ROPE_CASES[3], tmp_path).model.rotary_emb
    ours = get_rope(ModelConfig.from_hf(cached_load_hf_config(tmp_path)).rotary_config)
    batch = Batch.prefill([[0] * 100])
    expected = theirs(torch.empty(0, dtype=dtype), batch.positions[None])
    for mine, other in zip(ours.tables(Context(batch), dtype), expected, strict=True):
        assert mine.dtype == dtype
        assert torch.equal(mine, other[0])


def test_tables_are_real_and_float32_under_meta_and_half_precision_contexts() -> None:
    config = plain(base=12345.0)
    with torch.device("meta"), torch_dtype(torch.bfloat16):
        rotary = get_rope(config)
    assert (rotary.inv_freq.device.type, rotary.inv_freq.dtype) == ("cpu", torch.float32)
    expected = 12345.0 ** -(torch.arange(0, 16, 2) / 16)
    torch.testing.assert_close(rotary.inv_freq, expected)


def test_equal_configs_share_one_embedding() -> None:
    assert get_rope(plain()) is get_rope(plain())
    assert get_rope(plain()) is not get_rope(plain(base=20000.0))


def test_the_rope_device_must_be_real() -> None:
    with pytest.raises(ConfigError) as caught:
        set_rope_device("meta")
    assert str(caught.value) == (
        "the rope device is meta, which holds no data; expected a real one. Call set_rope_device with the device that "
        "the weights go to, such as 'cpu' or 'cuda'."
    )


def test_a_dynamic_request_does_not_depend_on_its_neighbours_or_predecessors(tmp_path: Path) -> None:
    oracle = make_oracle(DYNAMIC, tmp_path)
    engine = Engine(tmp_path, progress=False)
    short, long = prompts_for(DYNAMIC, lengths=(ORIGINAL_CONTEXT, 60))
    alone = engine.logits([short])
    assert difference(engine.logits([short, long]), logits_of(oracle, [short, long])) < 1e-5
    torch.testing.assert_close(engine.logits([short]), alone)


def test_transformers_remembers_the_longest_sequence_where_we_do_not(tmp_path: Path) -> None:
    """Show the one deliberate difference: after a long prompt, transformers answers a middle one differently."""
    oracle = make_oracle(DYNAMIC, tmp_path)
    long, middle = prompts_for(DYNAMIC, lengths=(60, 30))
    with torch.no_grad():
        first = fresh(oracle)(torch.tensor([middle])).logits[0, -1]
        oracle(torch.tensor([long]))
        afterwards = oracle(torch.tensor([middle])).logits[0, -1]
    assert difference(afterwards, first) > 1e-3
    engine = Engine(tmp_path, progress=False)
    engine.logits([long])
    assert difference(engine.logits([middle])[0], first) < 1e-5


def test_dynamic_frequencies_start_to_move_beyond_the_original_context() -> None:
    config = plain(max_position=32, scaling={"rope_type": "dynamic", "factor": 2.0})
    at_31, at_32, at_33 = dynamic_inverse_frequencies(config, torch.tensor([31, 32, 33]))
    assert torch.equal(at_31, at_32)
    assert (at_33[1:] < at_32[1:]).all()


@pytest.mark.parametrize(
    ("scaling", "limit"),
    [
        (None, 128),
        ({"rope_type": "linear", "factor": 2.0}, 256),
        ({"rope_type": "dynamic", "factor": 2.0}, None),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}, 256),
        ({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32}, 128),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 16}, 128),
    ],
)
def test_the_longest_sequence_follows_from_the_scaling(scaling: dict[str, Any] | None, limit: int | None) -> None:
    assert longest_sequence(plain(scaling=scaling)) == limit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"scaling": {"rope_type": "longrope"}},
            "rope_type is 'longrope'; expected one of dynamic, linear, llama3, yarn, or no scaling. "
            "Use a checkpoint with one of these.",
        ),
        (
            {"scaling": {"rope_type": "linear"}},
            "factor is missing in the RoPE scaling of type 'linear'; expected a positive number. "
            "Correct rope_parameters (or rope_scaling) in config.json.",
        ),
        (
            {"scaling": {"rope_type": "yarn", "factor": "four"}},
            "factor is 'four' in the RoPE scaling of type 'yarn'; expected a positive number. "
            "Correct rope_parameters (or rope_scaling) in config.json.",
        ),
        (
            {"rotary_dim": 8},
            "rotary_dim is 8 and head_dim 16: partial rotation isn't computed here; expected the two to be equal. "
            "Use a model without partial_rotary_factor.",
        ),
        (
            {"head_dim": 2, "rotary_dim": 2, "scaling": {"rope_type": "dynamic", "factor": 2.0}},
            "head_dim is 2 with rope_type 'dynamic'; expected more than 2.",
        ),
    ],
)
def test_what_is_not_computed_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_rope(plain(**changes))
    assert str(caught.value) == message


def test_yarn_without_factor_takes_the_ratio_of_the_contexts() -> None:
    scaling = {"rope_type": "yarn", "original_max_position_embeddings": 32}
    assert torch.equal(
        get_rope(plain(scaling=scaling)).inv_freq, get_rope(plain(scaling=scaling | {"factor": 4.0})).inv_freq
    )


def test_the_oracle_is_a_model_of_transformers(tmp_path: Path) -> None:
    make_oracle(DYNAMIC, tmp_path)
    assert type(AutoModelForCausalLM.from_pretrained(tmp_path)).__module__.startswith("transformers.")

"""Our logits and greedy tokens are transformers', over the whole grid of models."""

from pathlib import Path

import pytest

from minisgl.engine import Engine
from tests.engine.oracle import (
    DTYPES,
    IS_TRANSFORMERS_5,
    difference,
    logits_of,
    make_oracle,
    prompts_for,
    relative_tolerance,
    tokens_of,
    tokens_of_batch,
)
from tests.engine.parity_cases import CASES, Case, covering, facts_of

NUM_STEPS = 32
# The older transformers is compared on everything once, not on every combination.
COMPARED = CASES if IS_TRANSFORMERS_5 else covering(CASES)


def test_the_older_transformers_is_compared_on_every_architecture_switch_rope_and_dtype_once() -> None:
    everything = set().union(*map(facts_of, CASES))
    assert set().union(*map(facts_of, COMPARED)) == everything == set().union(*map(facts_of, covering(CASES)))
    assert len(covering(CASES)) < len(CASES) / 2


@pytest.mark.parametrize("case", COMPARED, ids=str)
def test_logits_and_greedy_tokens_equal_transformers(case: Case, tmp_path: Path) -> None:
    oracle = make_oracle(case, tmp_path)
    prompts = prompts_for(case)
    engine = Engine(tmp_path, dtype=case.computed, progress=False)
    expected = logits_of(oracle, prompts)
    assert difference(engine.logits(prompts), expected) < relative_tolerance(DTYPES[case.computed])
    if case.computed == "float32":
        assert engine.generate(prompts, NUM_STEPS) == tokens_of(oracle, prompts, NUM_STEPS)


def test_a_batch_equals_a_left_padded_batch_of_transformers(tmp_path: Path) -> None:
    case = Case("grouped-heads", "qwen3")
    oracle = make_oracle(case, tmp_path)
    prompts = prompts_for(case)
    answers = Engine(tmp_path, progress=False).generate(prompts, NUM_STEPS)
    assert answers == tokens_of_batch(oracle, prompts, NUM_STEPS)


@pytest.mark.parametrize("computed", ["bfloat16", "float16"])
def test_half_precision_cache_gives_the_same_tokens_as_reading_the_prompt_again(computed: str, tmp_path: Path) -> None:
    case = Case("grouped-heads", "qwen3", stored=computed, computed=computed)
    make_oracle(case, tmp_path)
    engine = Engine(tmp_path, progress=False)
    (prompt,) = prompts_for(case, lengths=(9,))
    (answer,) = engine.generate([prompt], 8)
    steps = [engine.logits([prompt + answer[:count]]).argmax().item() for count in range(8)]
    assert answer == steps

"""The engine takes the files' dtype, refuses what it can't run, and stops where transformers stops."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from minisgl.distributed import use_tp_info
from minisgl.engine import Engine
from minisgl.errors import CheckpointError, ConfigError, MinisglError
from tests.engine.oracle import difference, fresh, logits_of, make_oracle, prompts_for
from tests.engine.parity_cases import Case

CASE = Case("engine", "qwen3")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    make_oracle(CASE, tmp_path)
    return Engine(tmp_path, progress=False)


def edit_json(file: Path, **fields: Any) -> None:
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(content | fields))


def test_logits_are_one_row_a_prompt_in_the_files_dtype(tmp_path: Path) -> None:
    make_oracle(Case("engine", "qwen3", stored="bfloat16"), tmp_path)
    engine = Engine(tmp_path, progress=False)
    logits = engine.logits([[1, 2], [3]])
    assert (tuple(logits.shape), logits.dtype, engine.dtype) == ((2, 131), torch.bfloat16, torch.bfloat16)
    assert not logits.requires_grad
    logits += 1


def test_no_parameter_is_left_on_the_meta_device(engine: Engine) -> None:
    assert {tensor.device.type for tensor in engine.model.state_dict().values()} == {"cpu"}


def test_a_given_dtype_converts_the_weights(tmp_path: Path) -> None:
    oracle = make_oracle(CASE, tmp_path)
    engine = Engine(tmp_path, dtype="bfloat16", progress=False)
    assert {tensor.dtype for tensor in engine.model.state_dict().values()} == {torch.bfloat16}
    prompts = prompts_for(CASE)
    assert difference(engine.logits(prompts), logits_of(oracle.bfloat16(), prompts)) < 0.02


def test_a_config_that_promises_another_dtype_is_reported(tmp_path: Path) -> None:
    make_oracle(CASE, tmp_path)
    edit_json(tmp_path / "config.json", dtype="bfloat16")
    with pytest.warns(UserWarning) as caught:
        engine = Engine(tmp_path, progress=False)
    assert str(caught[0].message) == (
        f"{tmp_path / 'config.json'} says bfloat16 but the files hold float32; computing in float32. "
        "Pass dtype= for another one."
    )
    assert engine.dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Engine(tmp_path, dtype="float32", progress=False)


def test_files_of_several_dtypes_need_a_choice(tmp_path: Path) -> None:
    make_oracle(CASE, tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    tensors["model.norm.weight"] = tensors["model.norm.weight"].bfloat16()
    save_file(tensors, file)
    with pytest.raises(CheckpointError) as caught:
        Engine(tmp_path, progress=False)
    assert str(caught.value) == (
        f"{tmp_path} holds tensors of several dtypes: bfloat16 (model.norm.weight), float32 (lm_head.weight); expected "
        "one. Say which one to compute in with dtype=, such as dtype='bfloat16'."
    )
    assert Engine(tmp_path, dtype="float32", progress=False).logits([[1]]).dtype == torch.float32


def test_a_tp_size_that_does_not_divide_is_refused_before_weights_are_opened(tmp_path: Path) -> None:
    make_oracle(CASE, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with use_tp_info(0, 3), pytest.raises(MinisglError, match="can't be divided over tp size 3"):
        Engine(tmp_path, progress=False)


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ([[1], []], "prompt 1 is empty"),
        ([[1, 131]], "prompt 0 has token ids outside the vocabulary: 131"),
        ([[5, -1, -7]], "prompt 0 has token ids outside the vocabulary: -7, -1"),
        ([[0] * 129], "prompt 0 is too long: 129 tokens and 0 new ones"),
        (["hi"], "prompt 0 is 'hi', not a list of token ids"),
        ([7], "prompt 0 is 7, not a list of token ids"),
        ([[1.5]], "prompt 0 holds no token ids"),
        ([[], [1], [999]], "prompt 0 is empty; prompt 2 has token ids outside the vocabulary: 999"),
    ],
)
def test_bad_prompts_are_refused_all_at_once(prompts: Any, problem: str, engine: Engine) -> None:
    with pytest.raises(MinisglError) as caught:
        engine.logits(prompts)
    assert str(caught.value) == (
        f"{problem}. Expected each prompt to be a non-empty list of token ids from 0 to 130, at most 128 tokens with "
        "its continuation. Use the model's own tokenizer and shorten the text."
    )


@pytest.mark.parametrize("prompts", [[], "hello"])
def test_no_prompts_are_refused(prompts: Any, engine: Engine) -> None:
    with pytest.raises(MinisglError) as caught:
        engine.generate(prompts, 4)
    assert str(caught.value) == f"prompts is {prompts!r}; expected a list with at least one list of token ids."


def test_prompt_and_continuation_together_must_fit(engine: Engine) -> None:
    assert len(engine.generate([[1] * 120], 8)[0]) == 8
    with pytest.raises(MinisglError, match="prompt 0 is too long: 121 tokens and 8 new ones"):
        engine.generate([[1] * 121], 8)


@pytest.mark.parametrize("count", [-1, 2.0, True, None])
def test_max_new_tokens_must_be_a_count(count: Any, engine: Engine) -> None:
    with pytest.raises(MinisglError) as caught:
        engine.generate([[1]], count)
    assert str(caught.value) == f"max_new_tokens is {count!r}; expected an int from 0."


def test_no_new_tokens_are_no_tokens(engine: Engine) -> None:
    assert engine.generate([[1], [2]], 0) == [[], []]


def test_arrays_and_tensors_are_prompts_too(engine: Engine) -> None:
    expected = engine.logits([[3, 4]])
    assert torch.equal(engine.logits([np.array([3, 4])]), expected)
    assert torch.equal(engine.logits([torch.tensor([3, 4])]), expected)


def eos_that_ends_some(engine: Engine, prompts: list[list[int]]) -> int:
    """Return a token that stops at least one request early, and at different steps."""
    answers = engine.generate(prompts, 24)
    steps = {token: [answer.index(token) if token in answer else 24 for answer in answers] for token in range(131)}
    return max(steps, key=lambda token: (len({step for step in steps[token] if step < 24}), -token))


@pytest.mark.parametrize("home", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("as_list", [False, True])
def test_requests_end_at_eos_as_in_transformers(home: str, as_list: bool, tmp_path: Path) -> None:
    oracle = make_oracle(CASE, tmp_path)
    (tmp_path / "generation_config.json").unlink(missing_ok=True)
    prompts = [[token, 2 * token] for token in range(1, 13)]
    free = Engine(tmp_path, progress=False)
    eos = eos_that_ends_some(free, prompts)
    edit_json(tmp_path / home, eos_token_id=[eos, 130] if as_list else eos)
    engine = Engine(tmp_path, progress=False)
    assert engine.eos_token_ids == ({eos, 130} if as_list else {eos})
    answers = engine.generate(prompts, 24)
    stop = [eos, 130] if as_list else eos
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = torch.tensor([prompt])
        out = fresh(oracle).generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=stop,
            pad_token_id=0,
        )
        assert answer == out[0, 2:].tolist()
    lengths = {len(answer) for answer in answers}
    assert len(lengths) > 1, "the case must have requests that end at different steps"
    assert engine.generate(prompts, 24, ignore_eos=True) == free.generate(prompts, 24)


def test_a_generation_config_decides_even_if_it_names_no_eos(tmp_path: Path) -> None:
    make_oracle(CASE, tmp_path)
    edit_json(tmp_path / "config.json", eos_token_id=5)
    (tmp_path / "generation_config.json").write_text("{}")
    assert Engine(tmp_path, progress=False).eos_token_ids == frozenset()


def test_an_eos_that_is_no_token_id_is_refused(tmp_path: Path) -> None:
    make_oracle(CASE, tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": "</s>"}')
    with pytest.raises(ConfigError) as caught:
        Engine(tmp_path, progress=False)
    assert str(caught.value) == (
        f"{tmp_path / 'generation_config.json'}: eos_token_id is '</s>'. Expected: a token id, a list of them, or null. "
        "What to do: correct the field."
    )


def test_a_stored_tied_head_is_dropped(tmp_path: Path) -> None:
    oracle = make_oracle(Case("tied", "llama", {"tie_word_embeddings": True}), tmp_path)
    file = tmp_path / "model.safetensors"
    save_file(load_file(file) | {"lm_head.weight": torch.full((131, 48), 9.0)}, file, metadata={"format": "pt"})
    engine = Engine(tmp_path, progress=False)
    assert "lm_head.weight" not in engine.model.state_dict()
    assert difference(engine.logits([[1, 2]]), logits_of(oracle, [[1, 2]])) < 1e-5


def test_a_tiny_model_is_known_by_name() -> None:
    engine = Engine("tiny-qwen3", progress=False)
    assert engine.config.architectures == ("Qwen3ForCausalLM",)

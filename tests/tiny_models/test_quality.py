"""The models read held-out stories well, and no longer do so with any one fault; they write what transformers writes."""

import json
from pathlib import Path

import pytest
import torch
from tiny_models.faults import faults_of, load_with_fault, perplexity
from tiny_models.report import router_spread
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from minisgl.engine import Engine
from minisgl.tiny_models import TINY_MODELS, tiny_model_path

HELD_OUT = json.loads(Path(__file__).with_name("held_out.json").read_text(encoding="utf-8"))
LARGEST_PERPLEXITY = 5.0
SMALLEST_FACTOR = 3.0
PROMPTS = ("Once upon a time", "Once upon a time, there was a little dog named Max.", "One day, Lily")

every_model = pytest.mark.parametrize("name", TINY_MODELS)


def tokenizer_of(name: str) -> Tokenizer:
    return Tokenizer.from_file(str(tiny_model_path(name) / "tokenizer.json"))


def held_out_ids(name: str) -> list[list[int]]:
    tokenizer = tokenizer_of(name)
    end = tokenizer.token_to_id("<|end|>")
    return [[*tokenizer.encode(story).ids, end] for story in HELD_OUT]


@every_model
def test_perplexity_is_low_and_every_fault_at_least_triples_it(name: str) -> None:
    config = json.loads((tiny_model_path(name) / "config.json").read_text(encoding="utf-8"))
    stories = held_out_ids(name)
    sound = perplexity(load_with_fault(tiny_model_path(name)), stories)
    assert sound < LARGEST_PERPLEXITY
    factors = {
        fault_name: perplexity(load_with_fault(tiny_model_path(name), fault), stories) / sound
        for fault_name, fault in faults_of(config["model_type"]).items()
    }
    assert len(factors) >= 3
    assert {fault: factor for fault, factor in factors.items() if factor < SMALLEST_FACTOR} == {}


@every_model
def test_greedy_text_equals_transformers_for_100_tokens(name: str) -> None:
    folder = tiny_model_path(name)
    engine = Engine(folder, dtype=torch.float32, device="cpu", progress=False)
    model = load_with_fault(folder)
    # Beyond a story's end the comparison goes on, into the next story.
    model.generation_config.eos_token_id = None
    prompts = [tokenizer_of(name).encode(prompt).ids for prompt in PROMPTS]
    expected = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=100, do_sample=False)
        expected.append(output[0, len(prompt) :].tolist())
    assert [len(row) for row in expected] == [100] * len(PROMPTS)
    assert engine.generate(prompts, max_new_tokens=100, ignore_eos=True) == expected


@every_model
def test_fast_tokenizer_of_transformers_gives_the_same_ids(name: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_path(name))
    for story in HELD_OUT[:5]:
        ids = tokenizer_of(name).encode(story).ids
        assert tokenizer.encode(story) == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == story
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1)


def test_experts_of_the_moe_share_the_work() -> None:
    spread = router_spread(load_with_fault(tiny_model_path("tiny-qwen3-moe")), held_out_ids("tiny-qwen3-moe"))
    assert max(max(layer) for layer in spread) < 15.0
    # The model card names how many stay below 1 %: two of the eighty.
    assert sum(share < 1.0 for layer in spread for share in layer) <= 2

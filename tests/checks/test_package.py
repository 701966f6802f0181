"""All parts of the course in one tree: trained models load, answer and speak as they do through transformers."""

import random
import shutil
from functools import lru_cache

import pytest
import torch

from autograder.judge.checking import cases, expect
from autograder.judge.oracles import peer_logits, small
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.tiny_models import TINY_MODELS, tiny_model_path

PROMPTS = [[5, 17, 230, 41, 9], [300, 12], [77]]
NUM_NEW_TOKENS = 12
TOLERANCE = 2e-4  # float32 through six trained layers; a wrong order changes logits by whole numbers


@lru_cache
def peer(name):
    """The trained model in transformers."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_model_path(name), dtype=torch.float32).eval()


def copied_model(subject, name):
    """A copy of a trained model where the worker may read."""
    return shutil.copytree(tiny_model_path(name), subject.folder(name), dirs_exist_ok=True)


@pytest.mark.part("package.together", weight=2)
@pytest.mark.parametrize("name", TINY_MODELS)
def test_a_trained_model_answers_as_it_does_through_transformers(subject, name):
    """The next-token logits of a trained model equal those of transformers."""
    found = subject.ask("package.logits", {"folder": str(copied_model(subject, name)), "prompts": PROMPTS})
    with torch.no_grad():
        expected = torch.stack([peer(name)(torch.tensor([prompt])).logits[0, -1] for prompt in PROMPTS])
    expect(found, expected, what="the logits", tolerance=TOLERANCE, hint="check the parts of each chapter one by one")


@pytest.mark.part("package.together")
@pytest.mark.parametrize("name", TINY_MODELS)
def test_a_trained_model_says_what_it_says_through_transformers(subject, name):
    """Twelve greedy tokens of a batch of prompts equal those of transformers."""
    args = {"folder": str(copied_model(subject, name)), "prompts": PROMPTS, "max_new_tokens": NUM_NEW_TOKENS}
    found = subject.ask("package.generated", args)
    expected = []
    for prompt in PROMPTS:
        ids = torch.tensor([prompt])
        options = {"max_new_tokens": NUM_NEW_TOKENS, "do_sample": False, "pad_token_id": 0}
        with torch.no_grad():
            answer = peer(name).generate(ids, attention_mask=torch.ones_like(ids), **options)
        expected.append(answer[0, len(prompt) :].tolist())
    hint = "if the logits agree and this doesn't, look at the layers' numbers: each layer has its own place in the KV cache"
    expect(found, expected, what="the new tokens", hint=hint)


def draw_config(source: random.Random):
    family = source.choice(["llama", "qwen2", "qwen3", "qwen3_moe"])
    changes = {"num_key_value_heads": source.choice([1, 2, 4]), "tie_word_embeddings": source.random() < 0.5}
    changes |= {"num_hidden_layers": source.choice([2, 3]), "vocab_size": source.randint(65, 99)}
    changes |= {"hidden_size": 8 * source.randint(3, 8), "rope_theta": float(source.randint(100, 10**6))}
    return {"config": small(family, **changes), "files": source.choice([1, 4])}


VISIBLE = [
    {"id": "qwen2-tied", "config": small("qwen2", tie_word_embeddings=True), "files": 3},
    {"id": "qwen3-moe-mixed", "config": small("qwen3_moe", mlp_only_layers=[0]), "files": 1},
]


@pytest.mark.part("package.together", weight=2, gist=True)
@pytest.mark.parametrize("case", cases("package", visible=VISIBLE, draw=draw_config))
def test_a_model_that_was_never_trained_answers_as_through_transformers(subject, case):
    """Random weights of another shape, spread over files: the same logits as transformers."""
    config, prompts = case["config"], [[3, 1, 4, 1, 5], [9, 2], [6]]
    folder = make_checkpoint(
        subject.folder("checkpoint"), config, dtype="float32", files=case["files"], layout="shuffled"
    )
    found = subject.ask("package.logits", {"folder": str(folder), "prompts": prompts})
    hint = "the check of each part tells more than this one"
    expect(found, peer_logits(config, prompts), what="the logits", tolerance=TOLERANCE, hint=hint)


@pytest.mark.part("package.together")
def test_the_model_holds_what_the_loader_handed_out(subject):
    """After the strict load no parameter is on the meta device, and none was copied."""
    found = subject.ask("package.keys_of", {"folder": str(copied_model(subject, "tiny-qwen3-moe"))})
    hint = "every name that the model has must come out of the loader, in the file's dtype"
    expect(found["on_meta"], [], what="the parameters that are still on the meta device", hint=hint)
    expect(found["copied"], [], what="the parameters that were copied", hint="load_state_dict assigns")

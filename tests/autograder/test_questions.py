"""A question is told by what is special about it."""

from pathlib import Path

from autograder.judge.figures import ABSENT, QWEN3_0_6B, config
from autograder.judge.oracles import small
from autograder.judge.questions import MAX_CHARS, in_words


def test_a_config_is_told_by_how_it_differs_from_a_known_one():
    fields = config(QWEN3_0_6B, head_dim=ABSENT, hidden_size=48)
    assert in_words("config.x", {"config": fields, "bare": True}) == (
        "config.x: Qwen3-0.6B's config with hidden_size 48, no head_dim"
    )
    assert in_words("config.x", {"config": dict(QWEN3_0_6B)}) == "config.x: Qwen3-0.6B's config"
    told = in_words("decoder.x", {"config": small("llama", mlp_bias=True), "tp_size": 2})
    assert told == (
        "decoder.x: a small llama config (hidden_size 32, num_attention_heads 4, num_key_value_heads 2, "
        "num_hidden_layers 2) with mlp_bias True; tp_size 2"
    )


def test_paths_are_left_out_and_long_questions_cut():
    assert in_words("weight.x", {"folder": "/tmp/a", "path": Path("/b"), "tp_rank": 1}) == "weight.x: tp_rank 1"
    assert in_words("config.x", {"config": {"unknown": "y" * 900}}).startswith("config.x: config {'unknown': ")
    assert len(in_words("x.y", dict.fromkeys("abcdefgh", "z" * 100))) <= MAX_CHARS + 1

"""The script that made the models: each step on its own, and all of it in its small mode."""

import random

import pytest
import torch
import train_tiny_models
from tiny_models.architectures import build_model, compute_all_experts
from tiny_models.corpus import finish_corpus, is_sentence, keep_sentences
from tiny_models.faults import order_experts_as_strings
from tiny_models.people import load_plots, make_outline
from tiny_models.saving import checkpoint_tensors
from tiny_models.text_tokenizer import encode_stories, train_tokenizer
from tiny_models.train import rate_share
from tiny_models.writer import END, FREE, FastWriter, Segment, TokenTables, make_scripts, write_batch

from minisgl.tiny_models import TINY_MODELS


def test_small_mode_makes_every_folder(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train_tiny_models.main(["--tiny", "--out", str(tmp_path)]) == 0
    assert {folder.name for folder in tmp_path.iterdir() if folder.is_dir()} == set(TINY_MODELS)
    assert all((tmp_path / name / "README.md").is_file() for name in TINY_MODELS)
    assert "experts_in_string_order" in capsys.readouterr().out


def test_outlines_are_the_same_for_the_same_seed() -> None:
    plots = load_plots()
    first, second = (make_outline(random.Random(3), plots) for _ in range(2))
    assert first == second
    assert all("{" not in turn and turn.endswith((".", "?", '"', "!")) for turn in first.turns)


def test_writer_computes_what_transformers_computes() -> None:
    model, _ = train_tiny_models.stand_in_writer()
    ids = torch.randint(1000, (2, 12))
    writer = FastWriter(model, max_tokens=16)
    with torch.inference_mode():
        expected = model(ids).logits[:, -1]
        cache = writer.new_cache(2)
        writer.forward(ids[:, :11], 0, cache)
        actual = writer.forward(ids[:, 11:], 11, cache) @ writer.lm_head.T
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_written_rows_keep_the_outline_in_order() -> None:
    model, tokenizer = train_tiny_models.stand_in_writer()
    outline = make_outline(random.Random(0), load_plots())
    (script,) = make_scripts([outline], tokenizer.backend_tokenizer, random.Random(0))
    writer = FastWriter(model, max_tokens=300)
    tables = TokenTables(tokenizer, 1000, "cpu")
    tokens, written = write_batch(writer, tables, [5, 6], [script], writer.new_cache(1))
    forced = [token for token, own in zip(tokens[0].tolist(), written[0].tolist(), strict=True) if not own]
    assert forced[: forced.index(END)] == [token for token in script if token not in (FREE, END)]
    assert written.any() == (FREE in script)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (" She was happy.", True),
        (' "Hello," said Tom.', True),
        (" She was", False),
        (' "Hello, said Tom.', False),
        (" A tree, a tree, a tree.", False),
        (" BAMBUM ran.", False),
        ("s ran away.", False),
    ],
)
def test_only_whole_sentences_without_loops_are_kept(text: str, good: bool) -> None:
    assert is_sentence(text) is good


def test_written_sentences_keep_to_the_people_of_the_outline() -> None:
    outline = Segment("Tom was a dog.", False)
    written = [Segment(text, True) for text in (" Lily ran.", " A cat ran.", " She ran.", " He ran.")]
    assert keep_sentences([outline, *written]) == [outline, written[-1]]


def test_repeats_and_rare_words_are_dropped() -> None:
    outline, repeat = Segment("Tom ran.", False), Segment(" Tom ran.", True)
    assert keep_sentences([outline, repeat]) == [outline]
    stories, facts = finish_corpus([[outline], [outline]])
    assert stories == ["Tom ran."]
    assert facts["dropped_as_repeats"] == 1


def test_every_story_begins_and_ends_with_its_marks() -> None:
    tokens, starts = encode_stories(train_tokenizer(["Tom ran.", "Lily ran."]), ["Tom ran.", "Lily ran."])
    assert tokens[starts].tolist() == [0, 0]
    assert tokens[starts[1:] - 1].tolist() == [1]
    assert tokens[-1] == 1


def test_all_experts_at_once_equal_the_library_forward() -> None:
    experts = build_model("tiny-qwen3-moe", 0).model.layers[0].mlp.experts
    hidden = torch.randn(7, 128)
    weights, index = torch.rand(7, 16).topk(4)
    expected = experts(hidden, index, weights)
    torch.testing.assert_close(compute_all_experts(experts, hidden, index, weights), expected, rtol=1e-4, atol=1e-5)


def test_saved_experts_are_single_tensors_and_tied_heads_are_left_out() -> None:
    moe = checkpoint_tensors(build_model("tiny-qwen3-moe", 0))
    assert moe["model.layers.4.mlp.experts.15.down_proj.weight"].shape == (128, 64)
    assert not any("gate_up" in key for key in moe)
    assert "lm_head.weight" in moe
    assert "lm_head.weight" not in checkpoint_tensors(build_model("tiny-llama", 0))


def test_string_order_moves_expert_ten_to_place_two() -> None:
    tensors = {f"m.experts.{expert}.up_proj.weight": torch.tensor(expert) for expert in range(12)}
    order_experts_as_strings(tensors, {"num_experts": 12})
    assert tensors["m.experts.2.up_proj.weight"] == 10


def test_learning_rate_rises_then_falls() -> None:
    shares = [rate_share(step, 1000) for step in range(1000)]
    assert shares[0] < shares[50] < shares[99] == 1.0
    assert shares[99] > shares[500] > shares[999] > 0

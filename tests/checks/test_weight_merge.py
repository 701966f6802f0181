"""What every right merge_stream does: names, shapes, order, refusals, and what it keeps."""

import random

import pytest
import torch
from safetensors.torch import save_file

from autograder.judge.checking import cases, expect, expect_keys, expect_refusal, expect_true
from autograder.judge.oracles import local_tensor, parameters, small, stored_tensors

QWEN3 = small("qwen3", tie_word_embeddings=True)
BIASED = small("llama", attention_bias=True, mlp_bias=True)
MIXTURE = small("qwen3_moe", num_experts=12)
STREAMS = [
    {"id": "in-the-model-s-order", "config": BIASED, "order": "natural", "tp_size": 1},
    {"id": "backwards", "config": QWEN3, "order": "reversed", "tp_size": 1},
    {"id": "names-as-text", "config": MIXTURE, "order": "sorted", "tp_size": 1},
    {"id": "shuffled-shares-of-two-ranks", "config": MIXTURE, "order": 7, "tp_size": 2},
]


def draw_stream(source: random.Random):
    tp_size = source.choice([1, 2, 4])
    config = small(
        source.choice(["llama", "qwen2", "qwen3_moe"]),
        num_key_value_heads=source.choice([1, 2, 4]),
        num_experts=source.choice([11, 23]),
        vocab_size=4 * source.choice([13, 24]),
        mlp_only_layers=source.choice([[], [1]]),
    )
    return {"config": config, "order": source.randrange(1000), "tp_size": tp_size}


def in_order(keys, order):
    keys = list(keys)
    if isinstance(order, int):
        random.Random(order).shuffle(keys)
    return {"reversed": keys[::-1], "sorted": sorted(keys)}.get(order, keys)


def saved(subject, tensors):
    path = subject.folder("tensors") / "tensors.safetensors"
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, path)
    return str(path)


@pytest.mark.part("weight.merge", weight=2, gist=True)
@pytest.mark.parametrize("case", cases("merge", visible=STREAMS, draw=draw_stream))
def test_parameters_are_merged_in_any_order_of_the_stream(subject, case):
    """q, k, v and gate, up in their fixed order, experts by number, whatever order the tensors come in."""
    config, tp_size = case["config"], case["tp_size"]
    stored, rank = stored_tensors(config, data="tagged", dtype="bfloat16"), tp_size - 1
    shares = {key: local_tensor(key, tensor, config, rank, tp_size) for key, tensor in stored.items()}
    args = {"config": config, "tensors": saved(subject, shares), "order": in_order(shares, case["order"])}
    found = subject.ask("weight.merged", args)
    hint = "hand out each parameter once, under the model's name; experts are packed into two tensors a layer"
    expected = parameters(config, stored, rank, tp_size)
    expect(len(found["names"]), len(set(found["names"])), what="the number of different names", hint=hint)
    expect_keys(found["tensors"], expected, hint=hint)
    for name, tensor in expected.items():
        hint = "join the parts in parts_of's order, not in the order in which they came"
        expect(found["tensors"][name], tensor, what=name, hint=hint)


@pytest.mark.part("weight.merge", weight=2)
def test_a_parameter_comes_as_soon_as_its_last_part(subject):
    """Nothing waits for the end of the stream, and what has been handed out isn't kept."""
    stored = stored_tensors(small("llama", num_hidden_layers=6), data="tagged", dtype="bfloat16")
    config, order = small("llama", num_hidden_layers=6), in_order(stored, 3)
    args = {"config": config, "tensors": saved(subject, stored), "order": order}
    found = subject.ask("weight.merged_in_time", args)
    waiting, complete = {}, []
    wanted = {"qkv_proj": 3, "gate_up_proj": 2}
    names = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}
    names |= {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
    num_waiting = [0]
    for number, key in enumerate(order, 1):
        *path, projection, kind = key.split(".")
        name = ".".join([*path, names.get(projection, projection), kind])
        waiting[name] = waiting.get(name, 0) + 1
        if waiting[name] == wanted.get(names.get(projection, ""), 1):
            del waiting[name]
            complete.append([name, number])
        num_waiting.append(sum(waiting.values()))
    hint = "yield inside the loop, in the moment in which a group is complete"
    moments = [list(pair) for pair in zip(found["names"], found["came_after"], strict=True)]
    expect(moments, complete, what="names and moments", hint=hint)
    kept = max(alive - waits for alive, waits in zip(found["alive"], num_waiting, strict=False))
    hint = "take a group out of the buffer when it is complete: what was handed out belongs to the caller"
    expect_true(kept <= 4, f"{kept} tensors were kept that wait for nothing", hint=hint)


@pytest.mark.part("weight.merge", weight=2)
@pytest.mark.parametrize(
    "missing", ["model.layers.1.mlp.experts.10.up_proj.weight", "model.layers.0.self_attn.v_proj.weight"]
)
def test_a_stream_that_ends_too_early_is_refused(subject, missing):
    """A group that is still incomplete at the end is refused, with the missing part's name."""
    stored = stored_tensors(MIXTURE, data="tagged", dtype="bfloat16")
    order = [key for key in stored if key != missing]
    args = {"config": MIXTURE, "tensors": saved(subject, stored), "order": order}
    hint = "when the stream ends, look at what hasn't come: name it in a CheckpointError"
    refusal = subject.refusal("weight.merged", args, hint=hint)
    expect_refusal(refusal, names=[missing], hint=hint)


@pytest.mark.part("weight.merge")
def test_a_tensor_that_comes_alone_may_not_be_missing_either(subject):
    """A norm that never comes is refused: it is a group of one."""
    stored = stored_tensors(QWEN3, data="tagged", dtype="bfloat16")
    args = {"config": QWEN3, "tensors": saved(subject, stored), "order": [key for key in stored if key[6:10] != "norm"]}
    hint = "not only open groups: every tensor that the model wants must have come"
    expect_refusal(subject.refusal("weight.merged", args, hint=hint), names=["model.norm.weight"], hint=hint)


@pytest.mark.part("weight.merge")
@pytest.mark.parametrize("key", ["model.layers.0.self_attn.q_norm.bias", "model.layers.0.self_attn.k_proj.weight"])
def test_a_tensor_that_is_unknown_or_comes_twice_is_refused(subject, key):
    """Neither is ever ignored: the message names it."""
    stored = stored_tensors(QWEN3, data="tagged", dtype="bfloat16")
    order = [*stored, key]
    stored.setdefault(key, torch.ones(16))
    hint = "cross each key off a list of what the model wants; a key that isn't on it (any more) is refused by name"
    args = {"config": QWEN3, "tensors": saved(subject, stored), "order": order}
    expect_refusal(subject.refusal("weight.merged", args, hint=hint), names=[key], hint=hint)


@pytest.mark.part("weight.merge")
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not-stored"])
def test_a_tied_head_may_come_or_not(subject, is_stored):
    """A tied model's lm_head.weight is passed on where a checkpoint stores it, and not missed where it doesn't."""
    stored = stored_tensors(QWEN3, data="tagged", dtype="bfloat16")
    if is_stored:
        stored["lm_head.weight"] = stored["model.embed_tokens.weight"] + 1
    found = subject.ask("weight.merged", {"config": QWEN3, "tensors": saved(subject, stored), "order": list(stored)})
    hint = "with tied embeddings wanted_parts lists lm_head.weight, which a checkpoint may leave out"
    expect("lm_head.weight" in found["names"], is_stored, what="is lm_head.weight handed out", hint=hint)

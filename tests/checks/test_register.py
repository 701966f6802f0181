"""What every right create_model does: the class that the config names, in no memory, or a refusal."""

import pytest
import torch

from autograder.judge.checking import MetaTensor, expect, expect_refusal, expect_true
from autograder.judge.figures import QWEN3_0_6B, QWEN3_30B_A3B
from autograder.judge.oracles import small

KNOWN = ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"]


@pytest.mark.part("register.create_model", gist=True)
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "qwen3_moe"])
def test_the_config_names_the_class(subject, family):
    """create_model builds the class of architectures[0]."""
    config = small(family)
    found = subject.ask("decoder.family", {"config": config})
    expect(found["class"], config["architectures"][0], what="the class", hint="look up architectures[0]")
    expect(found["is_a_base_model"], True, what="is it a BaseLLMModel", hint="build the class, don't return it")


@pytest.mark.part("register.create_model", weight=2)
@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "llama"])
def test_an_unknown_architecture_is_refused_with_the_known_ones(subject, name):
    """The refusal names the architecture and lists what is supported."""
    args = {"config": small("llama"), "architectures": [name]}
    hint = "a ConfigError, not a KeyError, that lists the known names"
    refusal = subject.refusal("decoder.refused_architecture", args, hint=hint)
    expect_refusal(refusal, names=[name, *KNOWN], hint=hint)


@pytest.mark.part("register.create_model")
def test_qwen3_06b_has_226_tensors_and_takes_no_memory(subject):
    """On the meta device Qwen3-0.6B has 226 tensors, its qkv_proj is (4096, 1024), and none has data."""
    found = subject.ask("decoder.parameters", {"part": "create_model", "config": QWEN3_0_6B, "dtype": "bfloat16"})
    expect(len(found), 226, what="the number of tensors", hint="28 layers of 8, the embedding and the last norm; tied")
    qkv = found["model.layers.0.self_attn.qkv_proj.weight"]
    hint = "head_dim is 128 here: (16 + 8 + 8) heads of 128 rows; dtype and device come from the context"
    expect_true(qkv == MetaTensor((4096, 1024), torch.bfloat16), f"qkv_proj.weight is {qkv}", hint=hint)
    on_meta = {key for key, value in found.items() if isinstance(value, MetaTensor)}
    expect_true(
        len(on_meta) == len(found), "some parameters have data", hint="make no tensors of your own: the layers do"
    )


@pytest.mark.part("register.create_model")
def test_a_model_of_thirty_billion_parameters_is_built_in_no_memory(subject):
    """Qwen3-30B-A3B on the meta device: 30.5 billion parameters, within a small memory limit."""
    args = {"part": "create_model", "config": QWEN3_30B_A3B, "dtype": "bfloat16"}
    found = subject.ask("decoder.parameters", args, limits={"memory_mib": 256})
    count = 0
    for value in found.values():
        size = 1
        for length in value.shape:
            size *= length
        count += size
    expect(count, 30_532_122_624, what="the number of parameters", hint="experts are packed; nothing is allocated")

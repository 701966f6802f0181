"""What every right RopeAttn, GatedMLP and MoEMLP does: its parameters, and the numbers that transformers computes."""

import random

import pytest
import torch
from safetensors.torch import save_file

from autograder.judge.checking import MetaTensor, cases, expect, expect_keys
from autograder.judge.oracles import (
    below,
    head_dim,
    parameters,
    peer_layer,
    random_hidden_states,
    small,
    stored_tensors,
)

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6]]
TOLERANCE = 1e-4  # float32 sums in another order differ by less than 1e-5 at these sizes


def attention_keys(config, size=1, dtype=torch.float32):
    """Write down RopeAttn's parameters on one of `size` ranks."""
    heads, kv_heads, dim = config["num_attention_heads"] // size, config["num_key_value_heads"], head_dim(config)
    rows = (heads + 2 * max(1, kv_heads // size)) * dim
    keys = {
        "qkv_proj.weight": (rows, config["hidden_size"]),
        "o_proj.weight": (config["hidden_size"], heads * dim),
    }
    is_qwen2, asked = config["model_type"] == "qwen2", config.get("attention_bias", False)
    if is_qwen2 or asked:
        keys["qkv_proj.bias"] = (rows,)
    if asked and not is_qwen2:
        keys["o_proj.bias"] = (config["hidden_size"],)
    if config["model_type"].startswith("qwen3"):
        keys |= {"q_norm.weight": (dim,), "k_norm.weight": (dim,)}
    return {key: MetaTensor(shape, dtype) for key, shape in keys.items()}


ATTENTION_CAUSES = {
    "qkv_proj.bias": "attention_bias belongs to q, k and v",
    "o_proj.bias": "attention_out_bias belongs to o_proj, and only there",
    "q_norm": "has_qk_norm decides about q_norm and k_norm; each has head_dim numbers",
    "k_norm": "has_qk_norm decides about q_norm and k_norm; each has head_dim numbers",
    "o_proj.weight": "o_proj reads all query heads: num_qo_heads * head_dim, which isn't always hidden_size",
    "attention": "AttentionLayer has no parameters; is the norm reachable by two names?",
    "attn": "the key's first word is the attribute's name",
}
ATTENTION = [
    {"id": "llama", "config": small("llama")},
    {"id": "llama-biased", "config": small("llama", attention_bias=True)},
    {"id": "qwen2", "config": small("qwen2")},
    {"id": "qwen3", "config": small("qwen3")},
    {"id": "qwen3-square", "config": small("qwen3", num_attention_heads=2, rope_theta=1e4)},
]


def draw_attention(source: random.Random):
    family = source.choice(["llama", "qwen2", "qwen3", "qwen3"])
    kv_heads = source.choice([1, 2, 3])
    changes = {"num_key_value_heads": kv_heads, "num_attention_heads": kv_heads * source.choice([1, 2, 4])}
    changes |= {"head_dim": source.choice([8, 12, 20]), "hidden_size": 24 * source.randint(1, 5)}
    changes |= {"rms_norm_eps": source.choice([1e-6, 1e-2]), "rope_theta": float(source.randint(100, 10**6))}
    return {"config": small(family, attention_bias=source.random() < 0.5, **changes)}


def output_of(subject, part, config, prefix, prompts, layer_id=0):
    """Ask a part for its output on random hidden states, which are returned too."""
    hidden_states = random_hidden_states(prompts, config)
    weights = below(prefix, parameters(config, stored_tensors(config)))
    path = subject.folder("weights") / "weights.safetensors"
    save_file({key: tensor.contiguous() for key, tensor in weights.items()} | {"hidden_states": hidden_states}, path)
    args = {"part": part, "config": config, "weights": str(path), "prompts": prompts, "layer_id": layer_id}
    return subject.ask("decoder.output", args), hidden_states


@pytest.mark.part("utils.rope_attn", weight=2)
@pytest.mark.parametrize("case", cases("rope_attn", visible=ATTENTION, draw=draw_attention))
def test_attention_has_the_checkpoints_parameters(subject, case):
    """RopeAttn has qkv_proj and o_proj, with the biases and norms that the config asks for."""
    config = case["config"]
    found = subject.ask("decoder.parameters", {"part": "RopeAttn", "config": config})
    expect_keys(found, attention_keys(config), causes=ATTENTION_CAUSES, hint="one attribute for each row of the table")


@pytest.mark.part("utils.rope_attn")
@pytest.mark.parametrize("tp_size", [2, 4], ids="tp-{}".format)
def test_attention_gives_whole_sizes_to_its_layers(subject, tp_size):
    """On several ranks each layer takes its own share of the whole model's sizes."""
    config = small("qwen3", attention_bias=True)
    args = {"part": "RopeAttn", "config": config, "tp_rank": 1, "tp_size": tp_size, "dtype": "bfloat16"}
    expected = attention_keys(config, tp_size, torch.bfloat16)
    hint = "hand over the whole model's sizes: the layers divide by the number of ranks themselves"
    expect_keys(subject.ask("decoder.parameters", args), expected, hint=hint)


@pytest.mark.part("utils.rope_attn", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("rope_attn_output", visible=ATTENTION, draw=draw_attention))
def test_attention_computes_what_transformers_computes(subject, case):
    """Three prompts end to end, each attending to itself only, as transformers computes them one by one."""
    config = case["config"]
    found, hidden_states = output_of(subject, "RopeAttn", config, "model.layers.0.self_attn.", PROMPTS)
    expected = peer_layer(config, 0, hidden_states, PROMPTS, "self_attn")
    hint = (
        "hand the norms and rotary_config to the attention layer (q_norm goes to the queries and k_norm to the keys); "
        "its output goes through o_proj, nothing else"
    )
    expect(found, expected, what="the attention's output", tolerance=TOLERANCE, hint=hint)


@pytest.mark.part("utils.rope_attn")
def test_each_attention_uses_its_own_layer_of_the_cache(subject):
    """The layer's number reaches the attention layer, and with it the KV cache."""
    args = {"part": "RopeAttn", "config": small("llama"), "num_layers": 3, "layer_ids": [0, 2]}
    found = subject.ask("decoder.written_layers", args)
    hint = "layer_id says which part of the KV cache is this layer's; with one number for all they overwrite each other"
    expect(found, [[0], [2]], what="the cache layers written by layers 0 and 2", hint=hint)


MLPS = [
    {"id": "plain", "config": small("llama")},
    {"id": "biased", "config": small("llama", mlp_bias=True)},
    {"id": "square", "config": small("qwen3", intermediate_size=32)},
]


def draw_mlp(source: random.Random):
    sizes = {"hidden_size": 8 * source.randint(3, 9), "intermediate_size": 4 * source.randint(5, 29)}
    return {"config": small("llama", mlp_bias=source.random() < 0.5, **sizes)}


@pytest.mark.part("utils.gated_mlp", weight=2)
@pytest.mark.parametrize("tp_size", [1, 2], ids="tp-{}".format)
@pytest.mark.parametrize("case", cases("gated_mlp", visible=MLPS, draw=draw_mlp))
def test_the_mlp_has_the_checkpoints_parameters(subject, case, tp_size):
    """gate_up_proj holds gate's rows and up's, down_proj as many columns as one of them; biases as configured."""
    config = case["config"]
    inner, hidden = config["intermediate_size"] // tp_size, config["hidden_size"]
    expected = {"gate_up_proj.weight": (2 * inner, hidden), "down_proj.weight": (hidden, inner)}
    if config.get("mlp_bias"):
        expected |= {"gate_up_proj.bias": (2 * inner,), "down_proj.bias": (hidden,)}
    found = subject.ask("decoder.parameters", {"part": "GatedMLP", "config": config, "tp_size": tp_size})
    expect_keys(
        found,
        {key: MetaTensor(shape, torch.float32) for key, shape in expected.items()},
        causes={"bias": "mlp_bias decides about all three biases"},
        hint="gate and up side by side, each of intermediate_size rows; down the other way round",
    )


@pytest.mark.part("utils.gated_mlp", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("gated_mlp_output", visible=MLPS, draw=draw_mlp))
def test_the_mlp_computes_what_transformers_computes(subject, case):
    """down(silu(gate(x)) * up(x)), with the rows of gate before those of up."""
    found, hidden_states = output_of(subject, "GatedMLP", case["config"], "model.layers.0.mlp.", PROMPTS)
    expected = peer_layer(case["config"], 0, hidden_states, PROMPTS, "mlp")
    hint = "silu_and_mul stands between the two products, and takes the first half as the gate"
    expect(found, expected, what="the MLP's output", tolerance=TOLERANCE, hint=hint)


MIXTURES = [
    {"id": "renormalized", "config": small("qwen3_moe")},
    {"id": "not-renormalized", "config": small("qwen3_moe", norm_topk_prob=False)},
    {"id": "square", "config": small("qwen3_moe", moe_intermediate_size=32, intermediate_size=32)},
    {"id": "one-expert-each", "config": small("qwen3_moe", num_experts_per_tok=1)},
]


def draw_mixture(source: random.Random):
    changes = {"num_experts": source.choice([5, 11, 16]), "num_experts_per_tok": source.choice([1, 2, 4])}
    changes |= {"moe_intermediate_size": 4 * source.randint(2, 13), "norm_topk_prob": source.random() < 0.5}
    return {"config": small("qwen3_moe", hidden_size=4 * source.randint(6, 15), **changes)}


@pytest.mark.part("utils.moe_mlp", weight=2)
@pytest.mark.parametrize("tp_size", [1, 4], ids="tp-{}".format)
@pytest.mark.parametrize("case", cases("moe_mlp", visible=MIXTURES, draw=draw_mixture))
def test_the_mixture_has_a_router_and_packed_experts(subject, case, tp_size):
    """gate is whole on every rank; the experts lie packed, with a share of each expert's rows."""
    config = case["config"]
    experts, inner, hidden = config["num_experts"], config["moe_intermediate_size"] // tp_size, config["hidden_size"]
    expected = {
        "gate.weight": (experts, hidden),
        "experts.gate_up_proj": (experts, 2 * inner, hidden),
        "experts.down_proj": (experts, hidden, inner),
    }
    found = subject.ask("decoder.parameters", {"part": "MoEMLP", "config": config, "tp_size": tp_size})
    expect_keys(
        found,
        {key: MetaTensor(shape, torch.float32) for key, shape in expected.items()},
        causes={
            "gate": "the router is a LinearReplicated without bias",
            "differs experts.gate_up_proj": "an expert's inner width is its own",
            "differs experts.down_proj": "an expert's inner width is its own",
        },
        hint="moe_intermediate_size is one expert's inner width; every rank scores all experts",
    )


@pytest.mark.part("utils.moe_mlp", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("moe_mlp_output", visible=MIXTURES, draw=draw_mixture))
def test_the_mixture_computes_what_transformers_computes(subject, case):
    """Each token's best experts, weighted by the softmax over all experts, renormalized only if the config says so."""
    found, hidden_states = output_of(subject, "MoEMLP", case["config"], "model.layers.0.mlp.", PROMPTS)
    expected = peer_layer(case["config"], 0, hidden_states, PROMPTS, "mlp")
    hint = "num_experts_per_tok experts a token, weights scaled to sum to one only with norm_topk_prob"
    expect(found, expected, what="the experts' output", tolerance=TOLERANCE, hint=hint)

"""What every right decoder layer, model and head does: keys, and the numbers that transformers computes."""

import random

import pytest
from safetensors.torch import save_file

from autograder.judge.checking import MetaTensor, cases, expect, expect_keys
from autograder.judge.oracles import (
    below,
    parameters,
    peer_hidden_states,
    peer_layer,
    peer_logits,
    random_hidden_states,
    small,
    stored_tensors,
)

PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6]]
FOLLOWING = [[7, 8, 9], [10, 11, 12]]
TOLERANCE = 1e-4  # float32 sums in another order differ by less than 1e-5 at these sizes

SPARSE_OR_DENSE = "is_sparse_layer(layer_id) decides which layers have experts"
NORMS = "input_layernorm stands before attention, post_attention_layernorm before the MLP"
CAUSES = {
    "mlp.experts": SPARSE_OR_DENSE,
    "mlp.gate": SPARSE_OR_DENSE,
    "mlp.gate_up_proj": SPARSE_OR_DENSE,
    "mlp.down_proj": SPARSE_OR_DENSE,
    "extra lm_head": "a head that is tied to the embedding has no parameter of its own",
    "missing lm_head": "a head that isn't tied has a weight of its own; tied_embedding is a layer or None, not a switch",
    "input_layernorm": NORMS,
    "post_attention_layernorm": NORMS,
    "norm": "the last norm is an attribute of the decoder model, called norm",
    "layers": "an OPList of num_layers layers, called layers",
}
SPARSE = {"num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [3]}
MODELS = [
    {"id": "llama", "config": small("llama")},
    {"id": "qwen2-tied", "config": small("qwen2", tie_word_embeddings=True)},
    {"id": "qwen3", "config": small("qwen3", num_hidden_layers=3)},
    {"id": "qwen3-moe", "config": small("qwen3_moe", norm_topk_prob=False)},
    {"id": "qwen3-moe-mixed", "config": small("qwen3_moe", **SPARSE)},
]


def draw_model(source: random.Random):
    family = source.choice(["llama", "qwen2", "qwen3", "qwen3_moe", "qwen3_moe"])
    kv_heads = source.choice([1, 2])
    changes = {"num_key_value_heads": kv_heads, "num_attention_heads": kv_heads * source.choice([1, 2, 3])}
    changes |= {"hidden_size": 12 * source.randint(2, 7), "head_dim": source.choice([8, 20])}
    changes |= {"num_hidden_layers": source.choice([2, 3]), "tie_word_embeddings": source.random() < 0.5}
    if family == "qwen3_moe":
        changes |= {"mlp_only_layers": source.choice([[], [0], [1]]), "num_experts": source.choice([4, 11])}
    changes |= {"intermediate_size": 4 * source.randint(6, 20), "vocab_size": source.randint(65, 99)}
    return {"config": small(family, **changes)}


def shapes(tensors):
    """Keep of tensors their shape and dtype."""
    return {key: MetaTensor(tuple(tensor.shape), tensor.dtype) for key, tensor in tensors.items()}


def expected_keys(config, prefix="", size=1):
    """List the parameters below a prefix that one rank of a model has."""
    return shapes(below(prefix, parameters(config, stored_tensors(config, data="sparse"), 0, size)))


def weights_file(subject, config, prefix, hidden_states=None):
    """Store the weights below a prefix of the model's names, and what goes in, where a probe can read them."""
    weights = {
        key: value.contiguous() for key, value in below(prefix, parameters(config, stored_tensors(config))).items()
    }
    weights |= {} if hidden_states is None else {"hidden_states": hidden_states}
    path = subject.folder("weights") / "weights.safetensors"
    save_file(weights, path)
    return str(path)


def ask_output(subject, part, config, prefix, hidden_states=None, layer_id=0):
    """Ask what a part computes with the weights below a prefix of the model's names."""
    path = weights_file(subject, config, prefix, hidden_states)
    args = {"part": part, "config": config, "weights": path, "prompts": PROMPTS, "layer_id": layer_id}
    return subject.ask("decoder.output", args)


@pytest.mark.part("decoder.layer", weight=2)
@pytest.mark.parametrize("case", cases("layer", visible=MODELS, draw=draw_model))
def test_a_layer_has_the_checkpoints_parameters(subject, case):
    """Two norms, self_attn, and the MLP or the experts that this very layer has."""
    config = case["config"]
    for layer_id in range(config["num_hidden_layers"]):
        args = {"part": "DecoderLayer", "config": config, "layer_id": layer_id}
        expected = expected_keys(config, f"model.layers.{layer_id}.")
        hint = "four attributes with the checkpoint's names; ask the config about this layer's experts"
        expect_keys(subject.ask("decoder.parameters", args), expected, causes=CAUSES, hint=hint)


@pytest.mark.part("decoder.layer", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("layer_output", visible=MODELS, draw=draw_model))
def test_a_layer_computes_what_transformers_computes(subject, case):
    """Attention and the MLP each read a normalized copy and add to the stream."""
    config = case["config"]
    layer_id = config["num_hidden_layers"] - 1
    hidden_states = random_hidden_states(PROMPTS, config)
    found = ask_output(subject, "DecoderLayer", config, f"model.layers.{layer_id}.", hidden_states, layer_id)
    expected = peer_layer(config, layer_id, hidden_states, PROMPTS)
    hint = "add to the stream itself, twice; the second norm reads the stream after attention was added"
    expect(found, expected, what="the layer's output", tolerance=TOLERANCE, hint=hint)


@pytest.mark.part("decoder.layer")
def test_a_layer_hands_its_number_on(subject):
    """Layer 2 writes to the third layer of the KV cache."""
    args = {"part": "DecoderLayer", "config": small("llama"), "num_layers": 3, "layer_ids": [0, 2]}
    hint = "self_attn needs this layer's number for the KV cache"
    expect(subject.ask("decoder.written_layers", args), [[0], [2]], what="the cache layers written", hint=hint)


@pytest.mark.part("decoder.layer")
def test_a_layer_leaves_its_input_as_it_was(subject):
    """The tensor that went in holds the same numbers afterwards: it is still the caller's."""
    config = small("llama")
    hidden_states = random_hidden_states(PROMPTS, config)
    args = {"part": "DecoderLayer", "config": config, "prompts": PROMPTS}
    args["weights"] = weights_file(subject, config, "model.layers.0.", hidden_states)
    hint = "x += y writes into x itself, which the caller still holds; x = x + y makes a new tensor"
    found = subject.ask("decoder.input_afterwards", args)
    expect(found, hidden_states, what="the layer's input after the call", hint=hint)


@pytest.mark.part("decoder.model", weight=2)
@pytest.mark.parametrize("case", cases("model", visible=MODELS, draw=draw_model))
def test_the_model_has_the_checkpoints_parameters(subject, case):
    """embed_tokens, as many layers as the config says, each with its own number, and norm."""
    found = subject.ask("decoder.parameters", {"part": "DecoderModel", "config": case["config"]})
    hint = "an OPList called layers; layer 0 and layer 1 may differ: give each DecoderLayer its number"
    expect_keys(found, expected_keys(case["config"], "model."), causes=CAUSES, hint=hint)


@pytest.mark.part("decoder.model", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("model_output", visible=MODELS, draw=draw_model))
def test_the_model_computes_what_transformers_computes(subject, case):
    """The final hidden states of every token, after the last norm."""
    found = ask_output(subject, "DecoderModel", case["config"], "model.")
    expected = peer_hidden_states(case["config"], PROMPTS)
    hint = "embed, go through all layers in order, and don't forget the last norm"
    expect(found, expected, what="the hidden states", tolerance=TOLERANCE, hint=hint)


def logits_with_cache(subject, part, config):
    """Ask for the logits after the prompts and after two more tokens each, and give transformers' own."""
    path = subject.folder("weights") / "weights.safetensors"
    weights = parameters(config, stored_tensors(config))
    if config["tie_word_embeddings"]:
        weights.pop("lm_head.weight", None)
    save_file({key: value.contiguous() for key, value in weights.items()}, path)
    args = {"part": part, "config": config, "weights": str(path), "prompts": PROMPTS, "following": FOLLOWING}
    found = subject.ask("decoder.continuation", args)
    prompts, expected = PROMPTS, [peer_logits(config, PROMPTS)]
    for tokens in FOLLOWING:
        prompts = [[*prompt, token] for prompt, token in zip(prompts, tokens, strict=True)]
        expected.append(peer_logits(config, prompts))
    return found, expected


@pytest.mark.part("decoder.model")
def test_each_layer_of_the_model_has_its_own_cache(subject):
    """Three layers write to three layers of the KV cache."""
    args = {"part": "DecoderModel", "config": small("llama", num_hidden_layers=3), "num_layers": 3, "layer_ids": [0]}
    hint = "is every layer built with its own number? With one number they overwrite each other's cache"
    expect(subject.ask("decoder.written_layers", args), [[0, 1, 2]], what="the cache layers written", hint=hint)


@pytest.mark.part("decoder.causal_lm", weight=2)
@pytest.mark.parametrize("case", cases("causal_lm", visible=MODELS, draw=draw_model))
def test_a_tied_head_has_no_parameter(subject, case):
    """model and lm_head; with tied embeddings there is no lm_head.weight at all."""
    config = case["config"]
    found = subject.ask("decoder.parameters", {"part": "CausalLM", "config": config})
    hint = "hand the embedding layer to the head when the config ties them, None when it doesn't"
    expect_keys(found, expected_keys(config), causes=CAUSES, hint=hint)


@pytest.mark.part("decoder.causal_lm", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("causal_lm_output", visible=MODELS, draw=draw_model))
def test_the_logits_are_those_of_transformers(subject, case):
    """One row for each request, for a prompt and for the tokens that follow it."""
    found, expected = logits_with_cache(subject, "CausalLM", case["config"])
    hint = "the ids come from the global context's batch; the head reads the model's final hidden states"
    expect(found, expected, what="the logits", tolerance=TOLERANCE, hint=hint)


@pytest.mark.part("decoder.architectures")
def test_the_four_architectures_are_classes_of_their_own(subject):
    """Four different classes, each a CausalLM."""
    found = subject.ask("decoder.classes")
    names = ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"]
    expect(
        found["names"], names, what="their names", hint="a class statement for each name; an alias keeps the old name"
    )
    expect(found["different"], 4, what="how many there are", hint="four classes, not one with four names")
    expect(found["are_causal_lms"], [True] * 4, what="are they CausalLMs", hint="each derives from CausalLM")


@pytest.mark.part("decoder.architectures", weight=2, gist=True)
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "qwen3_moe"])
def test_an_architecture_has_all_that_its_config_asks_for(subject, family):
    """Each class builds what its config describes."""
    config = small(family)
    found = subject.ask("decoder.parameters", {"part": config["architectures"][0], "config": config})
    expect_keys(
        found, expected_keys(config), causes=CAUSES, hint="the class adds nothing: the config carries the switches"
    )


@pytest.mark.part("decoder.together", weight=3, gist=True)
@pytest.mark.parametrize("case", cases("decoder_together", visible=MODELS, draw=draw_model))
def test_your_whole_decoder_computes_what_transformers_computes(subject, case):
    """All of your parts in one tree: the model that create_model gives, with and without a KV cache."""
    found, expected = logits_with_cache(subject, "create_model", case["config"])
    expect(found, expected, what="the logits", tolerance=TOLERANCE, hint="the check of the part at fault tells more")


@pytest.mark.part("decoder.together")
@pytest.mark.parametrize("tp_size", [2, 4], ids="tp-{}".format)
def test_your_whole_decoder_takes_its_share_of_the_ranks(subject, tp_size):
    """Every parameter has the shape of one rank's share, with fewer kv heads than ranks and a padded vocabulary."""
    config = small("qwen3_moe", vocab_size=97, mlp_only_layers=[1])
    found = subject.ask("decoder.parameters", {"part": "create_model", "config": config, "tp_size": tp_size})
    expect_keys(found, expected_keys(config, size=tp_size), causes=CAUSES, hint="hand whole sizes to the layers")


@pytest.mark.part("decoder.together")
def test_parameters_are_reached_by_the_path_that_their_key_names(subject):
    """model.model.layers.op_list[0].self_attn.qkv_proj.weight is the tensor of that key."""
    paths = [
        "model.embed_tokens.weight",
        "model.layers.op_list[1].self_attn.qkv_proj.weight",
        "model.layers.op_list[0].mlp.gate_up_proj.weight",
        "model.norm.weight",
        "lm_head.weight",
    ]
    found = subject.ask("decoder.paths", {"config": small("llama"), "paths": paths})
    expect(
        found, dict.fromkeys(paths, True), what="what each path leads to", hint="the attribute's name is the key's word"
    )

"""What every right biases_of, moe_fields_of and refuse_uncomputed does."""

import pytest

from autograder.judge.asking import EXACT, accepts, ask_about, gives, refuses
from autograder.judge.checking import expect
from autograder.judge.figures import ABSENT, LLAMA_3_1_8B, QWEN2_5_0_5B, QWEN3_0_6B, QWEN3_30B_A3B, config

KNOWN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM")
DENSE = KNOWN[:3]


@pytest.mark.part("config.biases", weight=2, gist=True)
def test_qwen2_has_qkv_biases_that_no_field_mentions(subject):
    """q, k and v have them, o_proj doesn't, whatever the file says."""
    expected = {"attention_bias": True, "attention_out_bias": False, "mlp_bias": False}
    hint = "Qwen2's q/k/v biases are part of the architecture, and it has none on o_proj"
    for fields in ({}, {"attention_bias": False}, {"attention_bias": True}):
        gives(subject, "config.biases", fields, expected, hint=hint, architecture="Qwen2ForCausalLM")


@pytest.mark.part("config.biases", weight=2)
@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"])
def test_attention_bias_also_stands_on_o_proj(subject, architecture):
    """In these architectures one switch puts biases on q, k, v and o."""
    for said in (True, False):
        gives(
            subject,
            "config.biases",
            {"attention_bias": said},
            {"attention_bias": said, "attention_out_bias": said, "mlp_bias": False},
            hint="attention_bias covers q, k, v and o_proj",
            architecture=architecture,
        )


@pytest.mark.part("config.biases")
def test_only_llama_has_mlp_biases(subject):
    """mlp_bias is a Llama field; the Qwens' code doesn't ask for it."""
    for architecture in KNOWN:
        answer = ask_about(subject, "config.biases", {"mlp_bias": True}, architecture=architecture)
        expected = architecture == "LlamaForCausalLM"
        expect(answer["mlp_bias"], expected, tolerance=EXACT, hint="only Llama has mlp_bias")


@pytest.mark.part("config.biases")
@pytest.mark.parametrize("said", [ABSENT, None], ids=["absent", "null"])
def test_a_missing_switch_means_no_bias(subject, said):
    """Old Llama files have neither field; null counts as absent."""
    gives(
        subject,
        "config.biases",
        config({}, attention_bias=said, mlp_bias=said),
        {"attention_bias": False, "attention_out_bias": False, "mlp_bias": False},
        hint="missing or null means no; answer with False itself, not with None",
        architecture="LlamaForCausalLM",
    )


MOE = {
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "mlp_only_layers": [],
}


@pytest.mark.part("config.moe")
@pytest.mark.parametrize("architecture", DENSE)
def test_a_dense_architecture_has_no_experts(subject, architecture):
    """Also when the file carries leftover fields of a sparse model."""
    for fields in ({}, QWEN3_30B_A3B):
        answer = ask_about(subject, "config.moe", fields, architecture=architecture)
        says_something = {name for name, value in answer.items() if value and name != "decoder_sparse_step"}
        expect(says_something, set(), tolerance=EXACT, hint="the architecture decides: a dense one has no experts")


@pytest.mark.part("config.moe", weight=2)
def test_the_fields_of_a_sparse_model(subject):
    """Qwen3-30B-A3B: 128 experts, 8 a token, 768 wide."""
    gives(subject, "config.moe", QWEN3_30B_A3B, MOE, hint="six fields, under the file's names", architecture=KNOWN[3])
    changed = config(QWEN3_30B_A3B, norm_topk_prob=False, mlp_only_layers=[0, 3], decoder_sparse_step=2)
    expected = {**MOE, "norm_topk_prob": False, "mlp_only_layers": [0, 3], "decoder_sparse_step": 2}
    gives(subject, "config.moe", changed, expected, hint="read each from the file", architecture=KNOWN[3])


@pytest.mark.part("config.moe")
@pytest.mark.parametrize("layers", [ABSENT, None], ids=["absent", "null"])
def test_missing_mlp_only_layers_are_none_at_all(subject, layers):
    """No list means that every layer on the step has experts."""
    fields = config(QWEN3_30B_A3B, mlp_only_layers=layers)
    gives(subject, "config.moe", fields, MOE, hint="absent or null: an empty tuple", architecture=KNOWN[3])


@pytest.mark.part("config.moe", weight=2)
def test_unusable_expert_counts_are_all_named(subject):
    """Not positive integers, or more experts a token than there are."""
    refuses(
        subject,
        "config.moe",
        config(QWEN3_30B_A3B, num_experts=0, num_experts_per_tok=ABSENT, moe_intermediate_size="768"),
        names=["num_experts", "num_experts_per_tok", "moe_intermediate_size"],
        hint="name all bad fields in one error",
        architecture=KNOWN[3],
    )
    refuses(
        subject,
        "config.moe",
        config(QWEN3_30B_A3B, num_experts=4, num_experts_per_tok=8),
        names=["num_experts_per_tok", "4", "8"],
        hint="a token can't visit 8 of 4 experts",
        architecture=KNOWN[3],
    )


@pytest.mark.part("config.refusals")
def test_what_is_computed_passes(subject):
    """The four published configs ask for nothing special."""
    for fields in (QWEN3_0_6B, LLAMA_3_1_8B, QWEN2_5_0_5B, QWEN3_30B_A3B):
        accepts(subject, "config.refusals", fields, hint="nothing in this config is switched on that isn't computed")
    accepts(subject, "config.refusals", config(QWEN3_0_6B, hidden_act="swish"), hint="swish is another name of silu")
    accepts(subject, "config.refusals", config(QWEN3_0_6B, quantization_config=None), hint="null means absent")
    accepts(
        subject, "config.refusals", config(QWEN3_0_6B, layer_types=["full_attention"] * 28), hint="all layers are full"
    )


@pytest.mark.part("config.refusals", weight=2)
def test_a_window_that_is_switched_off_is_ignored(subject):
    """Qwen2 files carry a window that use_sliding_window turns off."""
    off = config(QWEN2_5_0_5B, sliding_window=4096, use_sliding_window=False)
    accepts(subject, "config.refusals", off, hint="use_sliding_window is False: the number beside it means nothing")
    full = config(off, use_sliding_window=True, layer_types=["full_attention"] * 24)
    accepts(subject, "config.refusals", full, hint="where layer_types is there, it alone decides")


@pytest.mark.part("config.refusals", weight=2)
def test_a_window_that_is_on_is_refused(subject):
    """By its number and switch, or by layer_types."""
    hint = "a window that is switched on and not computed gives wrong long texts without an error"
    for switch in (True, ABSENT):
        fields = config(QWEN2_5_0_5B, sliding_window=4096, use_sliding_window=switch)
        refuses(subject, "config.refusals", fields, names=["sliding_window"], hint=hint)
    mixed = ["full_attention", "sliding_attention"] * 12
    refuses(subject, "config.refusals", config(QWEN2_5_0_5B, layer_types=mixed), names=["sliding_attention"], hint=hint)


@pytest.mark.part("config.refusals")
def test_quantized_weights_are_refused(subject):
    """quantization_config says that the tensors aren't plain numbers."""
    fields = config(QWEN3_0_6B, quantization_config={"quant_method": "fp8"})
    refuses(
        subject, "config.refusals", fields, names=["quantization_config"], hint="quantized bytes read as bf16 are noise"
    )


@pytest.mark.part("config.refusals")
def test_attention_to_later_tokens_is_refused(subject):
    """An embedding model's is_causal false is refused by name; true and null pass."""
    hint = "is_causal false lets tokens see later ones: every logit would be another"
    for said in (True, None):
        accepts(subject, "config.refusals", config(QWEN3_0_6B, is_causal=said), hint=hint)
    refuses(subject, "config.refusals", config(QWEN3_0_6B, is_causal=False), names=["is_causal"], hint=hint)


@pytest.mark.part("config.refusals")
@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_pytorch_tanh"])
def test_another_activation_is_refused(subject, activation):
    """The MLP computes silu and nothing else."""
    refuses(
        subject,
        "config.refusals",
        config(QWEN3_0_6B, hidden_act=activation),
        names=[activation],
        hint="only silu is computed",
    )


@pytest.mark.part("config.refusals")
def test_all_reasons_stand_in_one_error(subject):
    """Who reads the message wants the whole list."""
    fields = config(QWEN3_0_6B, quantization_config={"quant_method": "awq"}, hidden_act="gelu")
    names = ["quantization_config", "gelu"]
    refuses(subject, "config.refusals", fields, names=names, hint="collect the reasons and raise once, at the end")

"""What every right architecture_of, sizes_of and head_dim_of does: published figures and plain arithmetic."""

import pytest

from autograder.judge.asking import gives, refuses
from autograder.judge.figures import ABSENT, LLAMA_3_1_8B, QWEN3_0_6B, config

KNOWN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM")
MODEL_TYPES = dict(zip(("llama", "qwen2", "qwen3", "qwen3_moe"), KNOWN, strict=True))


@pytest.mark.part("config.architecture", gist=True)
@pytest.mark.parametrize("name", KNOWN)
def test_architectures_decides_even_against_model_type(subject, name):
    """The first entry of architectures decides, whatever model_type says."""
    for model_type in ("llama", "qwen3", "something_else"):
        gives(
            subject,
            "config.architecture",
            {"architectures": [name], "model_type": model_type},
            name,
            hint="architectures[0] decides where it is given; model_type is asked only when it isn't",
        )


@pytest.mark.part("config.architecture")
@pytest.mark.parametrize("architectures", [ABSENT, None, []], ids=["absent", "null", "empty"])
def test_model_type_stands_in_for_missing_architectures(subject, architectures):
    """Without architectures, model_type is looked up in the table."""
    for model_type, name in MODEL_TYPES.items():
        gives(
            subject,
            "config.architecture",
            config({"model_type": model_type}, architectures=architectures),
            name,
            hint="an absent, null or empty list means: look model_type up in ARCHITECTURE_OF_MODEL_TYPE",
        )


@pytest.mark.part("config.architecture", weight=2)
def test_an_unknown_architecture_is_refused_although_its_model_type_is_known(subject):
    """A draft model that calls itself a llama is refused by its architecture, with the known ones listed."""
    refuses(
        subject,
        "config.architecture",
        {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"},
        names=["LlamaForCausalLMEagle3", *KNOWN],
        hint="draft and reward models carry model_type llama or qwen3; their weights are something else, so refuse "
        "by architectures[0] and list the known ones",
    )


@pytest.mark.part("config.architecture")
def test_an_unknown_model_type_is_refused_by_name(subject):
    """Neither architectures nor a known model_type: refused, with the model_type in the message."""
    refuses(
        subject, "config.architecture", {"model_type": "mamba"}, names=["mamba"], hint="say which model_type you met"
    )
    refuses(
        subject,
        "config.architecture",
        {},
        names=["model_type"],
        hint="both fields may be missing: that's a ConfigError too",
    )


SIZES = {
    "num_layers": 28,
    "num_qo_heads": 16,
    "num_kv_heads": 8,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "vocab_size": 151936,
}


@pytest.mark.part("config.sizes")
def test_the_six_sizes_are_read_under_our_names(subject):
    """Qwen3-0.6B's six sizes, each from its own field."""
    gives(
        subject,
        "config.sizes",
        QWEN3_0_6B,
        SIZES,
        hint="compare your table of names with the one in the text, row by row",
    )


@pytest.mark.part("config.sizes")
@pytest.mark.parametrize("kv_heads", [ABSENT, None], ids=["absent", "null"])
def test_missing_kv_heads_mean_one_for_each_query_head(subject, kv_heads):
    """Without num_key_value_heads there are as many kv heads as query heads."""
    gives(
        subject,
        "config.sizes",
        config(QWEN3_0_6B, num_key_value_heads=kv_heads),
        {**SIZES, "num_kv_heads": 16},
        hint="no num_key_value_heads (or null) means multi-head attention: num_attention_heads of them",
    )


@pytest.mark.part("config.sizes", weight=2)
def test_every_unusable_size_is_named_at_once(subject):
    """Absent, null, zero, negative, text, float and bool are no sizes; one error names them all."""
    refuses(
        subject,
        "config.sizes",
        config(QWEN3_0_6B, num_hidden_layers=ABSENT, hidden_size=0, intermediate_size=-1, vocab_size="151936"),
        names=["num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size"],
        hint="collect all bad fields first, then raise once, with the names that stand in the file",
    )
    for value in (None, 1024.0, True):
        refuses(
            subject,
            "config.sizes",
            config(QWEN3_0_6B, hidden_size=value),
            names=["hidden_size"],
            hint="null, 1024.0 and True are no positive ints (True counts as one for isinstance, so ask for the type)",
        )


@pytest.mark.part("config.sizes")
def test_heads_that_do_not_divide_are_refused_with_both_numbers(subject):
    """28 query heads can't share 8 kv heads evenly."""
    refuses(
        subject,
        "config.sizes",
        config(QWEN3_0_6B, num_attention_heads=28, num_key_value_heads=8),
        names=["28", "8", "num_key_value_heads"],
        hint="each kv head serves the same number of query heads, so the remainder has to be zero",
    )


@pytest.mark.part("config.head_dim", weight=2)
def test_an_explicit_head_dim_wins(subject):
    """Qwen3-0.6B says 128 where hidden / heads would be 64."""
    hint = "head_dim is given, and it isn't hidden_size / num_attention_heads: the file wins"
    gives(subject, "config.head_dim", QWEN3_0_6B, 128, hint=hint)
    gives(subject, "config.head_dim", config(QWEN3_0_6B, head_dim=32, hidden_size=2048), 32, hint=hint)


@pytest.mark.part("config.head_dim")
@pytest.mark.parametrize("head_dim", [ABSENT, None], ids=["absent", "null"])
def test_without_head_dim_it_is_hidden_over_heads(subject, head_dim):
    """Absent and null both mean hidden_size / num_attention_heads."""
    gives(
        subject,
        "config.head_dim",
        config(LLAMA_3_1_8B, head_dim=head_dim),
        4096 // 32,
        hint="null counts as absent: getattr's default only helps when the attribute doesn't exist",
    )


@pytest.mark.part("config.head_dim")
def test_a_head_dim_that_cannot_be_is_refused(subject):
    """No even division, or an odd, zero, negative, null-like or float head_dim: refused by name."""
    refuses(
        subject,
        "config.head_dim",
        config(LLAMA_3_1_8B, hidden_size=4097, head_dim=None),
        names=["head_dim", "4097"],
        hint="4097 / 32 isn't whole: refuse it; // would quietly round down",
    )
    for head_dim in (0, -64, 65, 64.0, "64"):
        refuses(
            subject,
            "config.head_dim",
            config(LLAMA_3_1_8B, head_dim=head_dim),
            names=["head_dim", str(head_dim)],
            hint="only a positive even int will do: RoPE turns pairs of numbers",
        )

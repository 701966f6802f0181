"""What every right rope_parameters_of and rotary_config_of does: both layouts, every kind, every contradiction."""

import pytest

from autograder.judge.asking import EXACT, ask_about, gives, refuses
from autograder.judge.checking import expect
from autograder.judge.figures import ABSENT, LLAMA_3_1_8B, QWEN3_0_6B, config


def plain_rope(base):
    return {"rope_type": "default", "rope_theta": base}


@pytest.mark.part("config.rope_parameters", weight=2)
def test_the_base_is_found_in_both_homes(subject):
    """At the top (transformers 4) or inside rope_parameters (transformers 5)."""
    gives(
        subject,
        "config.rope_parameters",
        {"rope_theta": 1000000, "rope_scaling": None},
        plain_rope(1000000),
        hint="transformers 4 has the base at the top of the config, as rope_theta",
    )
    gives(
        subject,
        "config.rope_parameters",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
        plain_rope(500000.0),
        hint="transformers 5 has the base inside rope_parameters",
    )


@pytest.mark.part("config.rope_parameters")
def test_null_means_absent_in_either_home(subject):
    """A null beside the real value never hides it."""
    hint = "null means absent: skip it, and keep the value that the other home has"
    gives(subject, "config.rope_parameters", {"rope_theta": 2e6, "rope_parameters": None}, plain_rope(2e6), hint=hint)
    inside = {"rope_type": "default", "rope_theta": 3e6}
    gives(
        subject, "config.rope_parameters", {"rope_theta": None, "rope_parameters": inside}, plain_rope(3e6), hint=hint
    )
    no_base = {"rope_type": "default", "rope_theta": None}
    gives(
        subject, "config.rope_parameters", {"rope_theta": 4e6, "rope_parameters": no_base}, plain_rope(4e6), hint=hint
    )


@pytest.mark.part("config.rope_parameters")
def test_no_base_anywhere_means_ten_thousand(subject):
    """10000 is the base of configs from before the field existed."""
    for fields in ({}, {"rope_theta": None}, {"rope_parameters": {"rope_type": "default"}}):
        gives(
            subject,
            "config.rope_parameters",
            fields,
            plain_rope(10000.0),
            hint="the default is 10000.0, and it comes last",
        )


@pytest.mark.part("config.rope_parameters", weight=2)
@pytest.mark.parametrize("name", ["type", "rope_type"])
def test_the_kind_is_understood_under_both_names(subject, name):
    """`type` in older files is `rope_type`; the answer has rope_type only."""
    gives(
        subject,
        "config.rope_parameters",
        {"rope_theta": 1e4, "rope_scaling": {name: "linear", "factor": 2.0}},
        {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
        hint="older files say type: hand it on as rope_type, and only as that",
    )


@pytest.mark.part("config.rope_parameters")
def test_two_kinds_that_agree_pass_and_two_that_differ_are_refused(subject):
    """type and rope_type may stand side by side when they say the same."""
    agree = {"type": "yarn", "rope_type": "yarn", "factor": 4.0}
    expected = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}
    gives(
        subject,
        "config.rope_parameters",
        {"rope_theta": 1e6, "rope_scaling": agree},
        expected,
        hint="both say yarn: no contradiction",
    )
    refuses(
        subject,
        "config.rope_parameters",
        {"rope_theta": 1e6, "rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 4.0}},
        names=["linear", "yarn"],
        hint="the file contradicts itself: don't choose, refuse, and show both",
    )


@pytest.mark.part("config.rope_parameters")
@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
def test_a_field_that_is_no_dict_is_refused_by_its_name(subject, field):
    """A number or a text where a dict belongs."""
    for value in (8, 4.0, "yarn", [1.0]):
        refuses(
            subject,
            "config.rope_parameters",
            {"rope_theta": 1e4, field: value},
            names=[field],
            hint="each of the two fields must be a dict or null",
        )


@pytest.mark.part("config.rope_parameters")
def test_the_config_is_left_as_it_was(subject):
    """The answer is a new dict; the config's own dicts aren't changed."""
    fields = {"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2.0}}
    after = subject.ask("config.rope_parameters_change", {"config": fields})
    expect(
        after, fields, tolerance=EXACT, hint="copy the dict before you pop or add anything: it belongs to the caller"
    )


@pytest.mark.part("config.rope")
def test_plain_rope_has_no_scaling(subject):
    """Qwen3-0.6B: heads of 128 rotated whole, base a million, no scaling."""
    gives(
        subject,
        "config.rope",
        QWEN3_0_6B,
        {"head_dim": 128, "rotary_dim": 128, "max_position": 40960, "base": 1000000.0, "scaling": None},
        hint="for type default scaling is None; the sizes come from head_dim_of and max_position_embeddings",
    )


@pytest.mark.part("config.rope", weight=2)
@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "beta_fast": 32.0},
        LLAMA_3_1_8B["rope_scaling"],
    ],
    ids=lambda scaling: scaling["rope_type"],
)
def test_each_kind_keeps_its_own_fields(subject, scaling):
    """scaling holds rope_type and that kind's fields, and not the base."""
    for layout in ({"rope_theta": 5e5, "rope_scaling": scaling}, {"rope_parameters": {**scaling, "rope_theta": 5e5}}):
        fields = config(LLAMA_3_1_8B, rope_theta=ABSENT, rope_scaling=ABSENT)
        gives(
            subject,
            "config.rope",
            {**fields, **layout},
            {"head_dim": 128, "rotary_dim": 128, "max_position": 131072, "base": 5e5, "scaling": scaling},
            hint="the base goes into its own field; everything else of the dict stays in scaling",
        )


@pytest.mark.part("config.rope")
@pytest.mark.parametrize("kind", ["yarn", "llama3"])
def test_an_absent_original_length_is_the_longest_position(subject, kind):
    """yarn and llama3 need original_max_position_embeddings; without it, max_position_embeddings."""
    scaling = {"rope_type": kind, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    answer = ask_about(subject, "config.rope", config(LLAMA_3_1_8B, rope_scaling=scaling))
    expect(
        (answer.get("scaling") or {}).get("original_max_position_embeddings"),
        131072,
        hint="it measures from original_max_position_embeddings; when absent that is max_position_embeddings",
    )


@pytest.mark.part("config.rope")
@pytest.mark.parametrize("kind", ["longrope", "su", "mrope"])
def test_an_unknown_kind_is_refused_by_name(subject, kind):
    """A kind that the layers don't compute is never taken for another."""
    refuses(
        subject,
        "config.rope",
        config(LLAMA_3_1_8B, rope_scaling={"rope_type": kind, "factor": 4.0}),
        names=[kind],
        hint="an unknown rope_type computed as plain RoPE gives wrong text and no error: refuse it",
    )


@pytest.mark.part("config.rope", weight=2)
def test_a_needed_number_that_is_missing_or_not_positive_is_refused(subject):
    """factor and, for llama3, the two frequency factors."""
    for kind in ("linear", "dynamic", "yarn"):
        for factor in ({}, {"factor": 0}, {"factor": -2.0}, {"factor": "4"}):
            refuses(
                subject,
                "config.rope",
                config(LLAMA_3_1_8B, rope_scaling={"rope_type": kind, **factor}),
                names=["factor"],
                hint="this kind can't be computed without a positive factor: see REQUIRED_ROPE_FIELDS",
            )
    whole = LLAMA_3_1_8B["rope_scaling"]
    for name in ("low_freq_factor", "high_freq_factor"):
        refuses(
            subject,
            "config.rope",
            config(LLAMA_3_1_8B, rope_scaling=config(whole, **{name: ABSENT})),
            names=[name],
            hint="llama3 needs three factors: see REQUIRED_ROPE_FIELDS",
        )


@pytest.mark.part("config.rope")
def test_a_base_or_length_that_is_no_positive_number_is_refused(subject):
    """rope_theta and max_position_embeddings must be positive numbers."""
    for name, value in {"rope_theta": 0, "max_position_embeddings": None}.items():
        refuses(
            subject,
            "config.rope",
            config(QWEN3_0_6B, **{name: value}),
            names=[name],
            hint="rope_theta and max_position_embeddings must be numbers above zero",
        )
    refuses(
        subject, "config.rope", config(QWEN3_0_6B, rope_theta="1e6"), names=["rope_theta"], hint="a text is no number"
    )


@pytest.mark.part("config.rope")
def test_heads_rotated_only_in_part_are_refused(subject):
    """partial_rotary_factor 1.0 is what these four architectures have; anything else is refused."""
    parameters = {"rope_type": "default", "rope_theta": 1e6}
    fields = config(QWEN3_0_6B, rope_theta=ABSENT, rope_scaling=ABSENT)
    whole = {**fields, "rope_parameters": {**parameters, "partial_rotary_factor": 1.0}}
    expect(ask_about(subject, "config.rope", whole)["scaling"], None, tolerance=EXACT, hint="1.0 changes nothing")
    refuses(
        subject,
        "config.rope",
        {**fields, "rope_parameters": {**parameters, "partial_rotary_factor": 0.5}},
        names=["partial_rotary_factor"],
        hint="half-rotated heads aren't computed here: refuse them by name",
    )

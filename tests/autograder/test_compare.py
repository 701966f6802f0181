"""What a comparison says where two things differ: the likely cause beside each key, and the numbers that differ."""

import pytest
import torch

from autograder.judge.checking import CheckFailed, MetaTensor, expect, expect_keys

CAUSES = {
    "mlp.gate": "which layers have experts",
    "mlp.down_proj": "which layers have experts",
    "missing lm_head": "an untied head has a weight",
    "extra lm_head": "a tied head has none",
    "norm": "called norm",
    "layers": "called layers",
}


def table(*names, **shapes):
    return {name: MetaTensor((2, 3), torch.float32) for name in names} | {
        name: MetaTensor(shape, torch.float32) for name, shape in shapes.items()
    }


def told(actual, expected):
    with pytest.raises(CheckFailed) as caught:
        expect_keys(actual, expected, causes=CAUSES)
    return caught.value.message.splitlines()[1:]


def test_a_missing_key_and_an_extra_one_have_different_causes():
    assert told(table("norm.weight"), table("norm.weight", "lm_head.weight")) == [
        "missing  lm_head.weight  ← an untied head has a weight"
    ]
    assert told(table("norm.weight", "lm_head.weight"), table("norm.weight")) == [
        "extra    lm_head.weight  ← a tied head has none"
    ]


def test_the_cause_belongs_to_what_differs_and_not_to_another_word_of_the_key():
    sparse = table("layers.0.mlp.gate.weight", "layers.1.mlp.gate.weight")
    dense = table("layers.0.mlp.gate.weight", "layers.1.mlp.down_proj.weight")
    assert told(dense, sparse) == [
        "missing  layers.1.mlp.gate.weight  ← which layers have experts",
        "extra    layers.1.mlp.down_proj.weight  ← which layers have experts",
    ]
    strange = table(*sparse, "layers.1.mlp.router.weight")
    assert told(strange, sparse) == ["extra    layers.1.mlp.router.weight"]


def test_a_layer_that_is_missing_whole_is_the_lists_fault():
    two = table("layers.0.mlp.gate.weight", "layers.1.mlp.gate.weight")
    assert told(table("layers.0.mlp.gate.weight"), two) == ["missing  layers.1.mlp.gate.weight  ← called layers"]
    assert told({}, table("layers.0.mlp.gate.weight")) == ["missing  layers.0.mlp.gate.weight  ← called layers"]
    assert told(table("last.weight"), table("norm.weight"))[0].startswith("missing  norm.weight")


def test_many_keys_of_one_branch_share_a_line():
    names = [f"layers.{number}.{part}.weight" for number in (0, 1) for part in ("a", "b", "mlp.gate")]
    renamed = table(*[name.replace("layers", "layer") for name in names])
    assert told(renamed, table(*names)) == [
        "missing  layers.… (6 keys, such as layers.0.a.weight; did you mean it by layer.0.a.weight?)  ← called layers",
        "extra    layer.… (6 keys, such as layer.0.a.weight)",
    ]
    with pytest.raises(CheckFailed, match=r"^12 keys differ:"):
        expect_keys(renamed, table(*names))
    with pytest.raises(CheckFailed, match=r"^1 key differs:"):
        expect_keys({}, table("norm.weight"))


def test_only_a_key_of_the_same_shape_and_a_like_name_is_taken_for_a_missing_one():
    dense, sparse = {"mlp.gate_up_proj.weight": (96, 32)}, {"mlp.gate.weight": (12, 32)}
    assert "did you mean" not in "\n".join(told(table(**sparse), table(**dense)))
    assert "did you mean" not in "\n".join(told(table("mlp.gate.weight"), table("mlp.gate_up_proj.weight")))
    renamed = told(table("layer.0.norm1.weight"), table("layers.0.norm1.weight"))
    assert renamed[0].startswith("missing  layers.0.norm1.weight (did you mean it by layer.0.norm1.weight?)")
    assert "did you mean" not in told(table(**{"layer.weight": (1,)}), table(**{"layers.weight": (2,)}))[0]
    without_prefix = told(table("norm.weight"), table("model.norm.weight"))
    assert "did you mean it by norm.weight?" in without_prefix[0]
    other_layer = told(table("layers.2.norm.weight"), table("layers.1.norm.weight"))
    assert "did you mean" not in other_layer[0]


def shown(actual, expected, tolerance=None):
    with pytest.raises(CheckFailed) as caught:
        expect(actual, expected, tolerance=tolerance)
    return caught.value


def test_the_numbers_shown_are_those_around_the_first_difference():
    expected = torch.arange(40.0).view(4, 10)
    actual = expected.clone()
    actual[2, 3] = -7.5
    failed = shown(actual, expected)
    assert "first at [2, 3]" in failed.message
    assert failed.expected == "tensor [4, 10] float32, around [2, 3]: […, 21, 22, 23, 24, 25, 26, …]"
    assert failed.came == "tensor [4, 10] float32, around [2, 3]: […, 21, 22, -7.5, 24, 25, 26, …]"


def test_numbers_that_differ_late_are_shown_with_digits_enough_to_see_it():
    expected = torch.ones(3)
    actual = torch.tensor([1.0, 1.0, 1.000001])
    failed = shown(actual, expected)
    assert failed.expected == "tensor [3] float32 [1, 1, 1]" and failed.came == "tensor [3] float32 [1, 1, 1.00000095]"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.tensor(1.0), torch.tensor(2.0)),
        (torch.ones(2, 2, dtype=torch.bool), torch.zeros(2, 2, dtype=torch.bool)),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([float("nan"), 1.0]), torch.zeros(2)),
    ],
    ids=["scalar", "bool", "int", "nan"],
)
def test_any_two_tensors_that_differ_are_shown_unlike(actual, expected):
    failed = shown(actual, expected)
    assert failed.expected != failed.came


def test_tensors_of_other_shapes_are_shown_from_their_beginning():
    failed = shown(torch.zeros(2), torch.arange(40.0))
    assert failed.expected == "tensor [40] float32 [0, 1, 2, 3, 4, 5, …]" and failed.came == "tensor [2] float32 [0, 0]"

"""Keys follow the attributes, and loading is strict, whole or not at all."""

import pytest
import torch

from minisgl.errors import MinisglError
from minisgl.layers import BaseOP, OPList, RMSNorm


class Leaf(BaseOP):
    def __init__(self, size: int) -> None:
        self.weight = torch.zeros(size, 2)
        self.bias = None
        self._hidden = torch.zeros(3)
        self.name = "leaf"


class Tree(BaseOP):
    def __init__(self) -> None:
        self.first = Leaf(1)
        self.layers = OPList([Leaf(2), Leaf(3)])
        self._borrowed = self.first
        self.scale = torch.ones(1)


def weights() -> dict[str, torch.Tensor]:
    return {key: torch.full_like(tensor, 7) for key, tensor in Tree().state_dict().items()}


def test_keys_are_attribute_paths_in_order_of_definition() -> None:
    tree = Tree()
    state = tree.state_dict()
    assert list(state) == ["first.weight", "layers.0.weight", "layers.1.weight", "scale"]
    assert state["layers.1.weight"] is tree.layers.op_list[1].weight
    assert list(tree.state_dict(prefix="a.b")) == [f"a.b.{key}" for key in state]


def test_loading_assigns_the_given_tensors_without_a_copy() -> None:
    tree, state = Tree(), weights()
    tree.load_state_dict(state)
    assert tree.first.weight is state["first.weight"]
    assert tree.layers.op_list[0].weight is state["layers.0.weight"]


def test_every_mismatch_is_reported_at_once_sorted_and_nothing_is_loaded() -> None:
    tree, state = Tree(), weights()
    before = tree.state_dict()
    del state["layers.1.weight"]
    state["first.weight"] = torch.zeros(2, 1)
    state["layers.0.weight"] = torch.zeros(2, 2, dtype=torch.bfloat16)
    state["scale"] = [1.0]
    state |= {"zebra": torch.zeros(4), "ape": torch.zeros(1, dtype=torch.float16)}
    with pytest.raises(MinisglError) as caught:
        tree.load_state_dict(state)
    assert str(caught.value).splitlines() == [
        "Tree can't take these weights: 1 missing, 2 unexpected, 1 not a tensor, 1 wrong shape, 1 wrong dtype.",
        "  missing       layers.1.weight  expected (3, 2) float32",
        "  unexpected    ape              found (1,) float16",
        "  unexpected    zebra            found (4,) float32",
        "  not a tensor  scale            expected (1,) float32, found list",
        "  wrong shape   first.weight     expected (1, 2), found (2, 1)",
        "  wrong dtype   layers.0.weight  expected float32, found bfloat16",
        "Nothing was loaded. Expected exactly the keys, shapes and dtypes of model.state_dict(): check that weights and "
        "config.json belong together, and the dtype that the model was built with.",
    ]
    assert all(tensor is before[key] for key, tensor in tree.state_dict().items())


def test_a_tensor_of_wrong_shape_and_dtype_is_reported_for_both() -> None:
    norm = RMSNorm(4, 1e-6)
    with pytest.raises(MinisglError, match="1 wrong shape, 1 wrong dtype"):
        norm.load_state_dict({"weight": torch.zeros(5, dtype=torch.float16)})


def test_a_meta_model_becomes_real_by_loading() -> None:
    with torch.device("meta"):
        norm = RMSNorm(4, 1e-6)
    assert norm.weight.is_meta
    norm.load_state_dict({"weight": torch.ones(4)})
    assert norm.forward(torch.ones(1, 4)).shape == (1, 4)


def test_an_op_without_forward_says_whose_it_is() -> None:
    with pytest.raises(NotImplementedError, match=r"Leaf has no forward\(\)"):
        Leaf(1).forward()

"""The merge stepper's two algorithms: hand-counted bytes, the same results in any order, and a real load's peak."""

import pytest
import torch

from minisgl.checkpoint.maker import make_checkpoint, stored_shapes
from minisgl.distributed import set_tp_info
from minisgl.errors import MinisglError
from minisgl.models import load_weight
from minisgl.viz.known import SMALL, small
from minisgl.viz.stepper import ALGORITHMS, BY_PARAMETER, FILE_ORDER, ORDERS, StepperModel

TINY = small(
    "Qwen3-0.6B", num_hidden_layers=1, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
    head_dim=16, vocab_size=128,
)  # fmt: skip
Q, KV, GATE = 64 * 64 * 2, 32 * 64 * 2, 96 * 64 * 2


def step_of(model, algorithm, ending):
    return next(step for step in model.steps[algorithm] if step.key.endswith(ending))


def test_file_order_by_hand():
    model = StepperModel(TINY, num_files=1)
    assert step_of(model, FILE_ORDER, "q_proj.weight").held_bytes == Q
    assert step_of(model, FILE_ORDER, "k_proj.weight").held_bytes == Q + KV
    last = step_of(model, FILE_ORDER, "v_proj.weight")
    assert last.yielded == ("model.layers.0.self_attn.qkv_proj.weight",)
    assert last.held_bytes == 0
    assert last.peak_bytes == 2 * (Q + 2 * KV), "the copy beside its parts"
    assert model.peak_bytes(FILE_ORDER) == 4 * GATE


def test_by_parameter_by_hand():
    model = StepperModel(TINY, num_files=1)
    first = step_of(model, BY_PARAMETER, "q_proj.weight")
    assert first.held_bytes == Q + 2 * KV, "allocated whole, filled in place"
    assert dict(first.assembling) == {first.param: (first.key,)}
    assert step_of(model, BY_PARAMETER, "v_proj.weight").held_bytes == 0
    assert model.peak_bytes(BY_PARAMETER) == 2 * GATE


def test_groups_torn_apart_cost_file_order_more_and_the_other_nothing():
    together, torn = (StepperModel(TINY, order=order) for order in ("as saved", "groups torn apart"))
    assert torn.peak_bytes(FILE_ORDER) > together.peak_bytes(FILE_ORDER)
    assert torn.peak_bytes(BY_PARAMETER) == together.peak_bytes(BY_PARAMETER)


@pytest.mark.parametrize("config", SMALL)
@pytest.mark.parametrize("order", ORDERS)
def test_the_same_parameters_come_out_in_any_order(config, order):
    model = StepperModel(config, order=order, num_files=5, seed=3)
    assert sorted(model.keys) == sorted(stored_shapes(SMALL[config]))
    assert model.same_results()
    for algorithm in ALGORITHMS:
        assert len(model.steps[algorithm]) == model.num_steps
        model.go_to(model.num_steps)
        assert sorted(model.yielded(algorithm)) == sorted(model.groups)
        assert model.held_bytes(algorithm) == 0, "nothing is left in a buffer"
        assert all(step.peak_bytes >= step.held_bytes >= 0 for step in model.steps[algorithm])


@pytest.mark.parametrize(("layout", "tp_size"), [("natural", 1), ("torn", 1), ("shuffled", 2)])
def test_our_loader_yields_these_parameters_and_these_bytes(tmp_path, layout, tp_size):
    make_checkpoint(tmp_path, TINY, files=3, layout=layout)
    model = StepperModel(TINY, tp_size=tp_size)
    set_tp_info(0, tp_size)
    try:
        loaded = {name: tensor.nbytes for name, tensor in load_weight(tmp_path, torch.device("cpu"), progress=False)}
    finally:
        set_tp_info(0, 1)
    assert loaded == {name: sum(map(model.local_bytes, parts)) for name, parts in model.groups.items()}


def test_position_stays_within_the_steps_and_the_words_follow_it():
    model = StepperModel(TINY)
    model.go_to(-3)
    assert model.position == 0
    assert "step 0 of" in model.describe()
    model.go_to(10_000)
    assert model.position == model.num_steps
    model.go_to(2)
    step = model.steps[FILE_ORDER][1]
    assert f"{step.key} -> {step.param}: {step.action}" in model.describe()


@pytest.mark.parametrize("position", [0, 3, 12])
def test_the_picture_shows_the_models_numbers(position):
    model = StepperModel(TINY, order="groups torn apart")
    model.go_to(position)
    svg = model.picture().to_svg()
    done = {step.key for step in model.steps[FILE_ORDER][:position]}
    assert f"handed out: {len(model.yielded(FILE_ORDER))} of {len(model.groups)} parameters" in svg
    assert all(key in svg for key in done)
    assert model.static().axes


def test_an_unknown_order_is_refused():
    with pytest.raises(MinisglError, match=r"order is 'random'\. Expected one of as saved"):
        StepperModel(TINY, order="random")

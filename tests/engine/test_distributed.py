"""Ranks, the sizes they hold, and the numbers of ranks that work."""

import dataclasses
import threading
from pathlib import Path

import pytest
import torch

from minisgl.distributed import (
    TPInfo,
    all_gather,
    all_reduce,
    check_tp_size,
    get_tp_info,
    init_tensor_parallel,
    local_num_kv_heads,
    local_num_qo_heads,
    local_size,
    set_tp_info,
    supported_tp_sizes,
    use_tp_info,
)
from minisgl.errors import MinisglError
from minisgl.models import ModelConfig
from minisgl.utils import cached_load_hf_config
from tests.engine.oracle import make_oracle
from tests.engine.parity_cases import Case


def config_of(case: Case, folder: Path) -> ModelConfig:
    make_oracle(case, folder)
    return ModelConfig.from_hf(cached_load_hf_config(folder))


def test_by_default_this_process_is_the_only_rank() -> None:
    assert get_tp_info() == TPInfo(0, 1)
    assert get_tp_info().is_primary()


def test_the_info_may_be_set_again() -> None:
    set_tp_info(2, 8)
    set_tp_info(1, 4)
    assert (get_tp_info().rank, get_tp_info().size, get_tp_info().is_primary()) == (1, 4, False)
    set_tp_info(0, 1)


def test_use_tp_info_is_for_a_block_and_a_thread() -> None:
    elsewhere: list[TPInfo] = []
    with use_tp_info(1, 4) as info, use_tp_info(0, 2):
        assert (info.rank, info.size) == (1, 4)
        assert get_tp_info() == TPInfo(0, 2)
        thread = threading.Thread(target=lambda: elsewhere.append(get_tp_info()))
        thread.start()
        thread.join()
    assert elsewhere == [TPInfo(0, 1)]
    assert get_tp_info() == TPInfo(0, 1)


@pytest.mark.parametrize(
    ("rank", "size", "message"),
    [
        (0, 0, "tp size is 0; expected a positive int: the number of processes."),
        (0, 2.0, "tp size is 2.0; expected a positive int: the number of processes."),
        (2, 2, "tp rank is 2 of tp size 2; expected an int from 0 to 1."),
        (-1, 2, "tp rank is -1 of tp size 2; expected an int from 0 to 1."),
        (True, 2, "tp rank is True of tp size 2; expected an int from 0 to 1."),
    ],
)
def test_impossible_ranks_are_refused_and_change_nothing(rank: int, size: int, message: str) -> None:
    with pytest.raises(MinisglError) as caught:
        set_tp_info(rank, size)
    assert str(caught.value) == message
    assert get_tp_info() == TPInfo(0, 1)


def test_one_rank_communicates_with_nobody() -> None:
    tensor = torch.arange(3.0)
    assert all_reduce(tensor) is tensor
    assert torch.equal(all_gather(tensor), tensor[None])


@pytest.mark.parametrize("collective", [all_reduce, all_gather])
def test_several_ranks_without_a_process_group_are_told_how_to_start_one(collective) -> None:
    with use_tp_info(0, 2), pytest.raises(MinisglError) as caught:
        collective(torch.zeros(1))
    assert str(caught.value) == (
        "tp size is 2 but torch.distributed has no process group; expected one of 2 processes. Start one process a "
        "rank and call minisgl.distributed.init_tensor_parallel() in each."
    )


def test_init_without_torchrun_asks_for_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(MinisglError) as caught:
        init_tensor_parallel()
    assert str(caught.value) == (
        "the rank of this process is unknown: RANK is ''; expected a number. Start the script with torchrun, or pass "
        "rank=."
    )


def test_kv_heads_are_replicated_when_ranks_outnumber_them() -> None:
    heads = []
    for size in (1, 2, 4, 8, 16):
        with use_tp_info(0, size):
            heads.append((local_num_qo_heads(32, 4), local_num_kv_heads(32, 4)))
    assert heads == [(32, 4), (16, 2), (8, 1), (4, 1), (2, 1)]


def test_heads_that_do_not_divide_are_refused_with_the_counts_that_work() -> None:
    with use_tp_info(0, 8), pytest.raises(MinisglError) as caught:
        local_num_qo_heads(28, 4)
    assert str(caught.value) == (
        "num_qo_heads 28 with num_kv_heads 4 can't be divided over tp size 8; expected one of these numbers of ranks: "
        "1, 2, 4, 28."
    )


def test_a_rank_never_needs_two_kv_heads_in_part() -> None:
    # 12 query heads over 6 ranks are 2 each; with 4 kv heads, rank 1 would attend to the end of one and the start of another.
    with use_tp_info(1, 6), pytest.raises(MinisglError, match="num_qo_heads 12 with num_kv_heads 4"):
        local_num_kv_heads(12, 4)


def test_widths_that_do_not_divide_are_refused_with_the_counts_that_work() -> None:
    with use_tp_info(0, 4), pytest.raises(MinisglError) as caught:
        local_size(90, "intermediate_size")
    assert str(caught.value) == (
        "intermediate_size 90 can't be divided over tp size 4; expected one of these numbers of ranks: "
        "1, 2, 3, 5, 6, 9, 10, 15, 18, 30, 45, 90."
    )


def test_a_models_tp_sizes_respect_heads_and_widths(tmp_path: Path) -> None:
    config = config_of(Case("heads", "llama", {"num_attention_heads": 12, "num_key_value_heads": 4}), tmp_path)
    assert supported_tp_sizes(config) == [1, 2, 4]
    check_tp_size(config, 4)
    with pytest.raises(MinisglError) as caught:
        check_tp_size(config, 12)
    assert str(caught.value) == (
        "intermediate_size 80 can't be divided over tp size 12; expected one of these numbers of ranks: 1, 2, 4."
    )


def test_an_unused_dense_width_does_not_limit_the_ranks_of_an_moe_model(tmp_path: Path) -> None:
    config = config_of(Case("moe", "qwen3_moe", {"intermediate_size": 81}), tmp_path)
    assert supported_tp_sizes(config) == [1, 2, 4]
    assert supported_tp_sizes(dataclasses.replace(config, mlp_only_layers=(0,))) == [1]
    assert supported_tp_sizes(dataclasses.replace(config, decoder_sparse_step=2)) == [1]

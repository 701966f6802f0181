"""The batch lays requests end to end, and the context is there for one forward pass only."""

import threading

import pytest
import torch

from minisgl.attention import KVCache
from minisgl.core import Batch, forward_context, get_global_ctx
from minisgl.errors import MinisglError


def test_prefill_lays_prompts_end_to_end_with_positions_from_zero() -> None:
    batch = Batch.prefill([[7, 8, 9], [5], [1, 2]])
    assert batch.input_ids.tolist() == [7, 8, 9, 5, 1, 2]
    assert batch.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert batch.input_ids.dtype == batch.positions.dtype == torch.int64
    assert (batch.query_lens, batch.seq_lens, batch.size, batch.is_prefill) == ([3, 1, 2], [3, 1, 2], 3, True)
    assert batch.last_token_indices().tolist() == [2, 3, 5]


def test_decode_adds_one_token_behind_the_cached_ones() -> None:
    batch = Batch.decode(torch.tensor([4, 6]), [3, 10])
    assert batch.positions.tolist() == [3, 10]
    assert (batch.query_lens, batch.seq_lens, batch.is_prefill) == ([1, 1], [4, 11], False)


@pytest.mark.parametrize(
    ("prompts", "what"), [([], "there is no prompt"), ([[1], []], "prompt 1 is empty")], ids=["none", "empty"]
)
def test_prefill_refuses_nothing_to_read(prompts: list[list[int]], what: str) -> None:
    with pytest.raises(MinisglError) as caught:
        Batch.prefill(prompts)
    assert str(caught.value) == f"can't build a batch: {what}; expected at least one token id in each prompt."


def test_outside_a_forward_pass_there_is_no_context() -> None:
    with pytest.raises(MinisglError) as caught:
        get_global_ctx()
    assert str(caught.value) == (
        "no forward pass is running, so there is no batch to read; expected the call to happen inside "
        "`with forward_context(batch):` (minisgl.core). Set the context around model.forward()."
    )


def test_a_nested_context_gives_way_to_the_outer_one_even_after_an_error() -> None:
    outer, inner = Batch.prefill([[1]]), Batch.prefill([[2]])
    with forward_context(outer) as context:
        with pytest.raises(KeyError), forward_context(inner):
            assert get_global_ctx().batch is inner
            raise KeyError
        assert get_global_ctx() is context
    with pytest.raises(MinisglError):
        get_global_ctx()


def test_another_thread_sees_nothing_of_this_threads_pass() -> None:
    seen: list[type[BaseException]] = []

    def look() -> None:
        try:
            get_global_ctx()
        except MinisglError as error:
            seen.append(type(error))

    with forward_context(Batch.prefill([[1]])):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [MinisglError]


def test_continuing_without_a_cache_is_refused() -> None:
    batch = Batch.decode(torch.tensor([4]), [3])
    with pytest.raises(MinisglError) as caught, forward_context(batch):
        pass
    assert str(caught.value) == (
        "the batch continues requests (new tokens [1], all tokens [4]) without a KV cache; expected "
        "kv_cache=KVCache(...) with the earlier tokens. Pass the cache that the prefill filled."
    )
    with forward_context(batch, KVCache(1, 1, 1, 4, 2, torch.float32)) as context:
        assert context.kv_cache is not None

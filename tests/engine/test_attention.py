"""Attention over the cache equals attention written out, in one piece or in several."""

import pytest
import torch

from minisgl.attention import KVCache, attend
from minisgl.core import Batch, Context

NUM_Q, NUM_KV, DIM = 4, 2, 8


def heads(num_tokens: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (
        torch.randn(num_tokens, NUM_Q, DIM),
        torch.randn(num_tokens, NUM_KV, DIM),
        torch.randn(num_tokens, NUM_KV, DIM),
    )


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend within one request, token by token and head by head."""
    output = torch.zeros_like(q)
    for token in range(q.shape[0]):
        for head in range(NUM_Q):
            kv_head = head // (NUM_Q // NUM_KV)
            scores = k[: token + 1, kv_head] @ q[token, head] / DIM**0.5
            output[token, head] = scores.softmax(0) @ v[: token + 1, kv_head]
    return output


def new_cache(num_requests: int, capacity: int) -> KVCache:
    return KVCache(3, num_requests, NUM_KV, capacity, DIM, torch.float32)


@pytest.mark.parametrize("with_cache", [False, True])
def test_unequal_prompts_do_not_see_one_another(with_cache: bool) -> None:
    lengths = [5, 1, 3]
    batch = Batch.prefill([[0] * length for length in lengths])
    q, k, v = heads(9)
    output = attend(Context(batch, new_cache(3, 6) if with_cache else None), 1, q, k, v)
    parts = zip(q.split(lengths), k.split(lengths), v.split(lengths), strict=True)
    torch.testing.assert_close(output, torch.cat([written_out(*part) for part in parts]))


def test_decoding_token_by_token_equals_reading_at_once() -> None:
    lengths, cache = [4, 2], new_cache(2, 7)
    q, k, v = (torch.stack(pair) for pair in zip(heads(7), heads(7), strict=True))
    batch = Batch.prefill([[0] * length for length in lengths])
    prompt = [torch.cat([tensor[0, :4], tensor[1, :2]]) for tensor in (q, k, v)]
    attend(Context(batch, cache), 2, *prompt)
    expected = [written_out(q[request], k[request], v[request]) for request in range(2)]
    for step in range(3):
        cached = [length + step for length in lengths]
        batch = Batch.decode(torch.zeros(2, dtype=torch.int64), cached)
        new = [torch.stack([tensor[0, cached[0]], tensor[1, cached[1]]]) for tensor in (q, k, v)]
        output = attend(Context(batch, cache), 2, *new)
        for request in range(2):
            torch.testing.assert_close(output[request], expected[request][cached[request]])


def test_a_prompt_may_be_read_in_pieces() -> None:
    q, k, v = heads(9)
    cache = new_cache(1, 9)
    outputs = []
    for start, end in ((0, 4), (4, 5), (5, 9)):
        tokens = end - start
        batch = Batch(torch.zeros(tokens, dtype=torch.int64), torch.arange(start, end), [tokens], [end], True)
        outputs.append(attend(Context(batch, cache), 0, q[start:end], k[start:end], v[start:end]))
    torch.testing.assert_close(torch.cat(outputs), written_out(q, k, v))


def test_layers_do_not_share_their_part_of_the_cache() -> None:
    cache, batch = new_cache(1, 2), Batch.prefill([[1, 2]])
    attend(Context(batch, cache), 1, *heads(2))
    assert cache.keys[1].any()
    assert not cache.keys[0].any() and not cache.keys[2].any()


def test_keeping_some_requests_moves_their_slots_to_the_front() -> None:
    cache = new_cache(3, 2)
    for request in range(3):
        cache.keys[:, request], cache.values[:, request] = request, -request
    cache.keep([0, 2])
    assert cache.keys[0, :, 0, 0, 0].tolist() == [0, 2]
    assert cache.values[0, :, 0, 0, 0].tolist() == [0, -2]
    assert cache.capacity == 2

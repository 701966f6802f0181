"""Whatever sizes and switches are drawn, logits are transformers'."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minisgl.engine import Engine
from tests.engine.oracle import difference, logits_of, make_oracle, prompts_for
from tests.engine.parity_cases import MODEL_TYPES, Case


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw an architecture, sizes that need not resemble a real model's, and every switch the architecture has."""
    model_type = draw(st.sampled_from(MODEL_TYPES))
    num_kv_heads = draw(st.integers(1, 3))
    fields: dict[str, Any] = {
        "num_key_value_heads": num_kv_heads,
        "num_attention_heads": num_kv_heads * draw(st.integers(1, 3)),
        "head_dim": draw(st.sampled_from([4, 10, 16])),
        # A multiple of every head count above, which transformers asks of a Llama even where head_dim is given.
        "hidden_size": draw(st.sampled_from([36, 72])),
        "intermediate_size": draw(st.integers(1, 50)),
        "num_hidden_layers": draw(st.integers(1, 3)),
        "vocab_size": draw(st.integers(2, 200)),
        "tie_word_embeddings": draw(st.booleans()),
    }
    if model_type != "qwen2":
        fields["attention_bias"] = draw(st.booleans())
    if model_type == "llama":
        fields["mlp_bias"] = draw(st.booleans())
    if model_type == "qwen3_moe":
        fields["num_experts"] = draw(st.integers(1, 7))
        fields["num_experts_per_tok"] = draw(st.integers(1, fields["num_experts"]))
        # Multiples of 16 bytes, which transformers' product over all experts asks for.
        fields["moe_intermediate_size"] = 4 * draw(st.integers(1, 5))
        fields["norm_topk_prob"] = draw(st.booleans())
        fields["decoder_sparse_step"] = draw(st.integers(1, 3))
        fields["mlp_only_layers"] = draw(st.lists(st.integers(0, 2), unique=True))
    return Case("random", model_type, fields, theta=draw(st.sampled_from([100.0, 10000.0, 1e6])))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_logits_equal_transformers(case: Case, lengths: list[int], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        oracle = make_oracle(case, Path(folder), seed=seed)
        prompts = prompts_for(case, lengths, seed)
        assert difference(Engine(folder, progress=False).logits(prompts), logits_of(oracle, prompts)) < 1e-4

"""Chapter 02 says of ten mistakes which ones a strict load refuses and which are silent: try them all."""

import pytest
import torch

from autograder import paths
from autograder.judge.checking import Subject
from autograder.judge.oracles import peer_logits, small
from autograder.parts import GRADED_MODULES
from autograder.worker.client import Worker
from minisgl.checkpoint.maker import make_checkpoint

PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5]]
QWEN3, TIED = small("qwen3"), small("llama", tie_word_embeddings=True)
MIXTURE = small("qwen3_moe", num_experts_per_tok=6)
# The order of merged projections stands in a table that is provided: a mistake in it is one after the imports.
TABLE = "Shape = tuple[int, ...]"
SWAPPED = TABLE + "\nMERGED = {{**MERGED, {!r}: {!r}}}"

# number in the chapter -> config, file, text, what it is replaced by, whether the load refuses
MISTAKES = {
    1: (QWEN3, "models/weight.py", TABLE, SWAPPED.format("qkv_proj", ("q_proj", "v_proj", "k_proj")), False),
    2: (QWEN3, "models/utils.py", "if config.has_qk_norm else None", "if False else None", True),
    3: (small("qwen2"), "models/config.py", "is_qwen2 or attention_bias", "attention_bias", True),
    4: (QWEN3, "models/config.py", "    if head_dim is None:", "    if True:", True),
    5: (QWEN3, "models/weight.py", TABLE, SWAPPED.format("gate_up_proj", ("up_proj", "gate_proj")), False),
    6: (QWEN3, "models/decoder.py", "return self.norm.forward(hidden_states)", "return hidden_states", False),
    7: (QWEN3, "models/config.py", " float(base),", " 100 * float(base),", False),
    8: (TIED, "models/decoder.py", "self.model.embed_tokens if config.tie_word_embeddings else None", "None", True),
    9: (MIXTURE, "models/utils.py", "renormalize=config.norm_topk_prob", "renormalize=False", False),
    10: (MIXTURE, "models/weight.py", "range(config.num_experts)", "sorted(range(config.num_experts), key=str)", False),
}


@pytest.fixture(scope="module")
def worker():
    with Worker() as started:
        started.start()
        yield started


@pytest.mark.parametrize("number", MISTAKES)
def test_a_mistake_is_refused_or_silent_as_the_chapter_says(worker, number):
    config, module, find, replace, is_refused = MISTAKES[number]
    files = {path: (paths.reference_root() / path).read_text(encoding="utf-8") for path in GRADED_MODULES}
    assert find in files[module]
    files[module] = files[module].replace(find, replace)
    tree = worker.open(files)
    subject = Subject(tree, worker)
    folder = make_checkpoint(subject.folder("checkpoint"), config, dtype="float32")
    outcome = subject.outcome("weight.answer", {"folder": str(folder), "prompts": PROMPTS})
    subject.clean()
    tree.close()
    assert outcome.status == ("error" if is_refused else "answered"), outcome.message
    if is_refused:
        assert "ValueError" in outcome.error["bases"]
    else:
        expected = peer_logits(config, PROMPTS)
        assert outcome.value.shape == expected.shape
        assert not torch.allclose(outcome.value, expected, atol=1e-2)

"""A student's mistake is named: when the answers equal a known wrong solution's, the feedback says which trap it is."""

import json
import tracemalloc

import pytest
import torch

from autograder.authoring import wrong_solutions
from autograder.judge import diagnosis
from autograder.judge.cases import HiddenCases
from autograder.judge.checking import digest
from autograder.judge.diagnosis import FINGERPRINTS, name_trap
from autograder.judge.judge import reference_work
from autograder.parts import BY_ID, PARTS
from autograder.student.display import result_html, result_text
from autograder.worker.outcome import Outcome

KNOWN = json.loads(FINGERPRINTS.read_text(encoding="utf-8"))
ENTRIES = {entry["id"]: entry for entry in wrong_solutions.entries()}
# Two mistakes in different parts of one submission, of the first two chapters.
PAIRS = [
    ("head-dim-recomputed", "biases-qwen2-on-o-proj"),
    ("sizes-kv-heads-swapped", "moe-always-normalized"),
    ("rope-base-left-in-scaling", "refusals-quantization-ignored"),
]


def judged(judge, *names):
    work = reference_work(PARTS)
    work.pieces.update({ENTRIES[name]["part"]: wrong_solutions.text_of(ENTRIES[name]) for name in names})
    return judge.judge(work, [BY_ID[ENTRIES[name]["part"]] for name in names])


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_mistakes_in_different_parts_are_both_named(judge, pair):
    for name, result in zip(pair, judged(judge, *pair), strict=True):
        assert result.status == "failed" and result.points < result.max_points
        assert result.trap == ENTRIES[name]["concept"], result_text(result)
        assert f"known trap: {result.trap}" in result_text(result)
        assert ENTRIES[name]["concept"].replace("'", "&#x27;") in result_html(result)


def test_hidden_cases_change_nothing_about_the_diagnosis(judge, monkeypatch):
    monkeypatch.setattr(judge, "hidden", HiddenCases({"seed": "a seed\n"}))
    (result,) = judged(judge, "head-dim-recomputed")
    assert any(test.hidden for test in result.tests)
    assert result.trap == ENTRIES["head-dim-recomputed"]["concept"]


def test_mistakes_that_answer_alike_are_all_named(monkeypatch):
    answers = {"one test": ["a digest"], "another": []}
    rows = [{"concept": concept, "digests": answers} for concept in ("cloned after", "cloned before")]
    rows.append({"concept": "another mistake", "digests": {**answers, "another": ["more"]}})
    monkeypatch.setattr(diagnosis, "_fingerprints", lambda: {"weight.merge": rows})
    assert name_trap("weight.merge", answers) == "cloned after; or: cloned before"


def test_answers_that_are_all_right_are_no_known_trap(judge):
    wanted = [BY_ID[name] for name in ("config.refusals", "weight.complete", "weight.load")]
    digests = judge.run(reference_work(PARTS), wanted)[1]
    assert [name_trap(part.id, digests[part.id]) for part in wanted] == [""] * 3


# What a learner writes -> what the feedback says of it; each of these was once told something about another mistake.
MISTAKES = {
    "base-without-abstractmethod": ("only a method marked as abstract", "mark forward with @abstractmethod"),
    "base-without-abc": ("doesn't derive from ABC", "only in a class that derives from ABC"),
    "causal-tied-switch": ("not a switch", "tied_embedding is a layer or None"),
    "attn-qk-norms-over-all-heads": ("one head's numbers", "each has head_dim numbers"),
    "attn-one-norm-for-q-and-k": ("one set of weights", "q_norm goes to the queries"),
    "layer-adds-in-place": ("x = x + y makes a new one", "the caller still holds"),
    "layer-mlp-only-layers-ignored": ("leave some layers", "is_sparse_layer(layer_id) decides"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_the_hint_meant_for_it(judge, name):
    trap, hint = MISTAKES[name]
    (result,) = judged(judge, name)
    told = result_text(result)
    assert trap in result.trap and hint in told
    assert not [other for other in ("no parameter of its own", "called layers", "did you mean") if other in told]


def test_a_mistake_that_nobody_knows_is_not_given_a_name(judge):
    work = reference_work(PARTS)
    work.pieces["config.head_dim"] = "def head_dim_of(hf_config):\n    return 4242\n"
    (result,) = judge.judge(work, [BY_ID["config.head_dim"]])
    assert result.status == "failed" and result.trap == ""


def test_the_fingerprints_are_of_the_library_that_lies_beside_them():
    recorded = {facts["id"]: (part, facts["concept"]) for part, rows in KNOWN.items() for facts in rows}
    library = {name: (entry["part"], entry["concept"]) for name, entry in ENTRIES.items()}
    outdated = {name for name, facts in recorded.items() if library.get(name) != facts}
    assert not outdated, "run: python -m autograder fingerprints"
    assert len(recorded) >= 0.9 * len(library), sorted(set(library) - set(recorded))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_the_digest_of_whole_numbers_takes_little_memory_and_tells_them_apart(dtype):
    answer = torch.zeros(1 << 20, dtype=dtype)
    tracemalloc.start()
    first = digest(Outcome("answered", answer))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    answer[-1] = 1
    assert digest(Outcome("answered", answer)) != first
    assert peak < 2 * answer.nbytes + (1 << 20)

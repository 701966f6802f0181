"""Hidden cases come as an argument: a run has those that it is given, and no file holds any of them."""

import pytest

from autograder.judge.cases import Cases, HiddenCases, Source
from autograder.judge.judge import reference_work
from autograder.parts import BY_ID

HEAD_DIM = BY_ID["config.head_dim"]


def num_hidden(judge):
    (result,) = judge.judge(reference_work([HEAD_DIM]), [HEAD_DIM])
    return sum(test.hidden for test in result.tests)


def test_a_run_has_the_hidden_cases_that_it_is_given_and_writes_none_of_them(judge, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("MINISGL_HIDDEN", str(tmp_path))
    assert num_hidden(judge) == 0
    for _ in range(2):
        monkeypatch.setattr(judge, "hidden", HiddenCases({"seed": "one\n"}))
        assert num_hidden(judge) == 3
        monkeypatch.setattr(judge, "hidden", None)
        assert num_hidden(judge) == 0
    assert not list(tmp_path.iterdir())


def draw(source):
    """Draw in every way that the check files know."""
    kinds = (source.choice("abcdef"), source.random(), source.sample(range(90), 3))
    return {"kinds": kinds, "values": (source.randint(0, 10**9), source.randrange(10**9), source.choices("abcd", k=20))}


def test_the_seed_decides_the_numbers_and_never_the_kinds_of_cases():
    one, same, other = ([dict(case) for case in Cases("x", [], draw, 3).drawn(seed)] for seed in ("1", "1", "2"))
    assert one == same
    assert [case["kinds"] for case in one] == [case["kinds"] for case in other]
    assert not [True for mine, theirs in zip(one, other, strict=True) if mine["values"] == theirs["values"]]
    assert len({str(case["kinds"]) for case in one}) == 3  # and the cases of one check differ in kind


def test_order_and_number_of_draws_of_a_kind_change_no_value():
    source, other = Source("seed", "x", 1), Source("seed", "x", 1)
    other.choice([1, 2]), other.random()
    assert source.randint(0, 10**9) == other.randint(0, 10**9)


@pytest.mark.parametrize("name", ["shown", "listed"])
def test_hidden_cases_stand_behind_the_visible_ones_and_say_where_they_are_from(name):
    files = {"seed": "1", "more.json": '{"listed": [{"a": 5}]}'}
    check = Cases(name, [{"id": "small", "a": 1}], lambda source: {"a": source.randint(2, 4)}, 2)
    found = [parameter.values[0] for parameter in check.with_hidden(HiddenCases(files))]
    origins = ["", "drawn case 1", "drawn case 2", *(["more.json, case 1"] if name == "listed" else [])]
    assert [case.origin for case in found] == origins
    assert [case.hidden for case in found] == [False] + [True] * (len(origins) - 1)
    assert len(check) == 1

"""No damage to a checkpoint makes the loader hang, fail in a way of its own, or give what the files don't hold."""

import json
import time
from pathlib import Path

import pytest

from tests.fuzz import cases
from tests.fuzz.cases import Hang, make_models, run, run_case, time_limit
from tests.fuzz.mutate import damage

SHORT_RUN = 400


@pytest.mark.filterwarnings("ignore:.*config.json:UserWarning")
def test_damaged_checkpoints_are_refused_or_loaded_as_they_are(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    num_cases = pytestconfig.getoption("--fuzz-examples", default=None) or SHORT_RUN
    counts = run(seed=0, num_cases=num_cases, folder=tmp_path)
    assert counts.total() == num_cases
    # Damage that changes nothing, and damage that changes all: a run with only one kind wouldn't test much.
    assert counts["refused"] > num_cases // 4
    assert counts["loaded"] > num_cases // 100


def test_the_same_seed_does_the_same_damage(tmp_path: Path) -> None:
    first, second = (make_models(tmp_path / name)[1] for name in ("first", "second"))
    for number in range(20):
        assert damage(7, number, first) == damage(7, number, second)
    contents = [sorted((file.name, file.read_bytes()) for file in folder.iterdir()) for folder in (first, second)]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("stray", ["error", "hang", "garbage"])
def test_a_loader_that_misbehaves_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stray: str) -> None:
    real, sound = cases.load_weight, make_models(tmp_path)[0]
    monkeypatch.setattr(cases, "damage", lambda *_: "nothing")
    monkeypatch.setattr(cases, "LIMIT_S", 1)

    def bad(folder: Path, device: str, progress: bool):
        for name, tensor in real(folder, device, progress=progress):
            if stray == "error":
                raise KeyError(name)
            if stray == "hang":
                time.sleep(60)
            yield name, tensor.zero_() if stray == "garbage" else tensor

    monkeypatch.setattr(cases, "load_weight", bad)
    with pytest.raises(AssertionError, match={"error": "KeyError", "hang": "Hang", "garbage": "no file holds"}[stray]):
        run_case(0, 0, sound)


def test_the_time_limit_trips() -> None:
    with pytest.raises(Hang), time_limit(0.05):
        while True:
            json.dumps({})

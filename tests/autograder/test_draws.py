"""A case that is drawn for an instructor is a model that exists, and one that only the seed tells."""

import importlib.util

import pytest
from transformers import AutoConfig

from autograder import paths
from autograder.judge.cases import Source

NUM_DRAWS = 300
PLAIN_ARITHMETIC = "test_weight_slices"  # these cases never reach transformers


def draws():
    found = []
    for path in sorted(paths.checks_root().glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"drawn_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            if name.startswith("draw_"):
                found.append(pytest.param(function, id=f"{path.stem}-{name}"))
    return found


@pytest.mark.parametrize("draw", [each for each in draws() if not each.id.startswith(PLAIN_ARITHMETIC)])
def test_every_drawn_model_is_accepted_by_transformers(draw):
    for number in range(NUM_DRAWS):
        config = draw(Source("1", "any", number)).get("config", {})
        if "model_type" in config and "intermediate_size" in config:
            fields = {name: value for name, value in config.items() if name != "model_type"}
            AutoConfig.for_model(config["model_type"], **fields)


@pytest.mark.parametrize("draw", draws())
def test_no_case_can_be_known_without_the_seed(draw):
    """A table of answers that was recorded with other seeds holds next to none of the hidden cases."""
    drawn = [repr(draw(Source(str(seed), "any", 1))) for seed in range(20)]
    assert len(set(drawn)) >= 15

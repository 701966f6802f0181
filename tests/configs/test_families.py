"""Every family of real configs is read as transformers reads it, or refused by the name of what isn't computed."""

import json
from pathlib import Path

import pytest

from minisgl.errors import ConfigError
from tests.configs.compare import ours_of, shapes_of_ours, shapes_of_theirs, sizes_of_ours, sizes_of_theirs, theirs_of
from tests.configs.families import OTHER_ARCHITECTURES, REFUSED, SUPPORTED, Config

# Real files carry fields of other tools; the reader names them, and test_hf_config.py reads that line.
pytestmark = pytest.mark.filterwarnings("ignore:.*(unknown and have no effect|decides. read as)")


def saved(folder: Path, config: Config) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_config_has_transformers_sizes(tmp_path: Path, name: str) -> None:
    folder = saved(tmp_path, SUPPORTED[name])
    assert sizes_of_ours(ours_of(folder)) == sizes_of_theirs(theirs_of(folder))


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_config_has_transformers_keys_and_shapes(tmp_path: Path, name: str) -> None:
    # More layers of the same kind say nothing new.
    config = {**SUPPORTED[name], "num_hidden_layers": min(6, SUPPORTED[name]["num_hidden_layers"])}
    folder = saved(tmp_path, config)
    assert shapes_of_ours(ours_of(folder)) == shapes_of_theirs(theirs_of(folder))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_computed_is_refused_by_name(tmp_path: Path, name: str) -> None:
    config, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        ours_of(saved(tmp_path, config))


@pytest.mark.parametrize("name", OTHER_ARCHITECTURES)
def test_another_architecture_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    config = OTHER_ARCHITECTURES[name]
    given = config.get("architectures", [config["model_type"]])[0]
    with pytest.raises(ConfigError, match=rf"'{given}'.*Expected .*LlamaForCausalLM.*Qwen3MoeForCausalLM"):
        ours_of(saved(tmp_path, config))

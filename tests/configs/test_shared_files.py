"""Real models' config and index files, where a folder of them lies beside the clone (they are not ours to copy).

Set MINISGL_SHARED_CONFIGS to a folder that holds ``configs/supported``, ``configs/other_architectures`` and ``indexes``, or
put it beside the clone as ``shared``.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from minisgl.checkpoint import open_checkpoint
from minisgl.checkpoint.maker import make_checkpoint
from minisgl.errors import CheckpointError, ConfigError
from minisgl.models import load_weight
from tests.configs.compare import ours_of, shapes_of_ours, shapes_of_theirs, sizes_of_ours, sizes_of_theirs, theirs_of
from tests.configs.families import Config, llama, qwen2, qwen3

# Real files carry fields of other tools; the reader names them, and test_hf_config.py reads that line.
pytestmark = pytest.mark.filterwarnings("ignore:.*(unknown and have no effect|decides. read as)")

SHARED = Path(os.environ.get("MINISGL_SHARED_CONFIGS") or Path(__file__).resolve().parents[3] / "shared")
if not SHARED.is_dir():
    pytest.skip("no folder of real configs beside this clone", allow_module_level=True)


def files(kind: str) -> list[Any]:
    return [pytest.param(file, id=file.stem) for file in sorted((SHARED / kind).glob("*.json"))]


def saved(folder: Path, config: Config) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def turned_on(config: Config) -> str | None:
    """Name what a config turns on that isn't computed: quantization, a window in use, a RoPE scaling of no known form."""
    if isinstance(config.get("rope_scaling"), int | float):
        return "rope_scaling is"
    if config.get("attention_chunk_size"):
        return "attention_chunk_size is"
    if config.get("quantization"):
        return "quantization is"
    if config.get("quantization_config"):
        return "quantization_config is set"
    types = set(config.get("layer_types") or ())
    window = config.get("sliding_window") and config.get("use_sliding_window")
    if types - {"full_attention"} or (window and config.get("max_window_layers", 0) < config["num_hidden_layers"]):
        return "only full.attention is computed"
    return None


@pytest.mark.parametrize("file", files("configs/supported"))
def test_a_real_config_is_read_as_transformers_reads_it_or_refused_by_name(tmp_path: Path, file: Path) -> None:
    config = json.loads(file.read_text())
    folder = saved(tmp_path, config)
    refusal = turned_on(config)
    if refusal is not None:
        with pytest.raises(ConfigError, match=refusal):
            ours_of(folder)
        return
    assert sizes_of_ours(ours_of(folder)) == sizes_of_theirs(theirs_of(folder))
    if config.get("num_experts"):  # transformers 4 builds a module an expert: minutes for all layers, which are alike
        saved(tmp_path, {**config, "num_hidden_layers": min(4, config["num_hidden_layers"])})
    assert shapes_of_ours(ours_of(folder)) == shapes_of_theirs(theirs_of(folder))


@pytest.mark.parametrize("file", files("configs/other_architectures"))
def test_another_architecture_is_refused_by_its_name(tmp_path: Path, file: Path) -> None:
    config = json.loads(file.read_text())
    with pytest.raises(ConfigError, match=re.escape(repr(config["architectures"][0]))):
        ours_of(saved(tmp_path, config))


def config_for(keys: set[str]) -> Config:
    """Guess a small config that has an index's tensors: as many layers, and the switches that its keys show."""
    layers = 1 + max(int(match[1]) for key in keys if (match := re.search(r"\.(?:layers|h)\.(\d+)\.", key)))
    tied = not any(key.startswith("lm_head.") for key in keys)
    sizes = {"vocab_size": 64, "tie_word_embeddings": tied, "hidden_size": 32, "intermediate_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    if any(".q_norm." in key for key in keys):
        return {**qwen3(layers, 32, 64, 4, 2), **sizes, **heads}
    if any(".q_proj.bias" in key for key in keys):
        return {**qwen2(layers, 32, 64, 4, 2), **sizes}
    return {**llama(layers, 32, 64, 4), **sizes}


# What a file's tensors that the four architectures don't have look like: their names, and how the refusal names them.
FOREIGN = r"_scale$|\.scales$|\.biases$|^visual\.|\.mtp_layers\.|^transformer\.|\.fc[12]\.|\.dense\.|layernorm\.bias|_head\.bias"


@pytest.mark.parametrize("file", files("indexes"))
def test_a_real_index_loads_as_a_checkpoint_of_our_making_or_is_refused_by_name(tmp_path: Path, file: Path) -> None:
    weight_map = json.loads(file.read_text())["weight_map"]
    config = config_for(set(weight_map))
    own = set(open_checkpoint(make_checkpoint(tmp_path / "own", config, data="sparse", inv_freq=True)).tensors)
    packed = any(key.endswith((".weight_scale", ".scales")) for key in weight_map)
    extra = {key: ("BF16", (1,)) for key in weight_map if key not in own}
    if packed:  # what quantization stores in the place of the weights
        extra |= {key: ("U32", (4,)) for key in weight_map if f"{key}_scale" in extra or f"{key[:-7]}.scales" in extra}
    kept = {key: weight_map.get(key, "unused.safetensors") for key in {*own, *weight_map}}
    made = tmp_path / "made"
    make_checkpoint(made, config, data="sparse", files=kept, inv_freq=True, extra=extra, index=False)
    (made / "unused.safetensors").unlink(missing_ok=True)  # what our config has and the index doesn't
    (made / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    foreign = sorted(key for key in weight_map if re.search(FOREIGN, key))
    stream = load_weight(made, "cpu", progress=False)
    if packed:
        with pytest.raises(CheckpointError, match=r"(quantization stores them|perhaps quantized weights), of type U32"):
            list(stream)
    elif foreign:
        # Where nothing has its right name, the missing tensors come first in the list.
        named = foreign[0] if any(key.startswith("model.") for key in weight_map) else "model.embed_tokens.weight"
        with pytest.raises(CheckpointError, match=rf"{re.escape(named)} (in .* is unknown to the model|is missing)"):
            list(stream)
    else:
        assert {name for name, _ in stream} == set(shapes_of_ours(ours_of(made)))

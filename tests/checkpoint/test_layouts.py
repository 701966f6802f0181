"""However a model is cut into files, the same weights come out."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minisgl.checkpoint import open_checkpoint
from minisgl.checkpoint.maker import make_checkpoint, stored_shapes
from tests.checkpoint.tiny import CONFIGS, assert_same, load, merged

LAYOUTS = {
    "one file": {},
    "one file, shuffled": {"layout": "shuffled"},
    "one file, with an index": {"index": True},
    "three files": {"files": 3},
    "three files, no index": {"files": 3, "index": False},
    "three files, groups torn apart": {"files": 3, "layout": "torn"},
    "a file a tensor, shuffled": {"files": "one_per_tensor", "layout": "shuffled"},
    "no prefix": {"prefix": False},
    "rotary tables of old Llamas": {"inv_freq": True, "files": 2},
    "packed experts": {"packed_experts": True, "files": 2, "layout": "torn"},
    "packed experts, no prefix": {"packed_experts": True, "prefix": False},
}


@pytest.mark.parametrize("model", CONFIGS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_merged_model(tmp_path: Path, model: str, layout: str) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS[model], data="tagged", **LAYOUTS[layout])
    assert_same(load(folder), merged(CONFIGS[model], data="tagged"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_dtype_of_the_files_is_kept(tmp_path: Path, dtype: str) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3"], dtype=dtype)
    assert_same(load(folder), merged(CONFIGS["qwen3"], dtype=dtype))


@pytest.mark.parametrize("prefix", [True, False])
def test_a_stored_tied_head_comes_out_beside_the_models_own_keys(tmp_path: Path, prefix: bool) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["qwen3"], stored_tied_head=True, prefix=prefix)
    expected = merged(CONFIGS["qwen3"])
    assert_same(load(folder), {**expected, "lm_head.weight": expected["model.embed_tokens.weight"]})


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_order_of_files_and_of_tensors_gives_the_same_weights(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(["qwen3", "qwen3 moe", "llama with biases"]), label="model")
    keys = list(stored_shapes(CONFIGS[model]))
    names = [f"part-{number}.safetensors" for number in range(data.draw(st.integers(1, 12), label="files"))]
    homes = data.draw(st.lists(st.sampled_from(names), min_size=len(keys), max_size=len(keys)), label="homes")
    seed = data.draw(st.integers(0, 1000), label="seed")
    with tempfile.TemporaryDirectory() as folder:
        files = dict(zip(keys, homes, strict=True))
        make_checkpoint(folder, CONFIGS[model], data="tagged", files=files, layout="shuffled", seed=seed)
        assert_same(load(Path(folder)), merged(CONFIGS[model], data="tagged"))


def test_parameters_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "made", CONFIGS["llama"], files=2)
    first = dict.fromkeys(open_checkpoint(folder).tensors)
    names = [name.replace("qkv_proj", "q_proj").replace("gate_up_proj", "gate_proj") for name in load(folder)]
    assert names == [key for key in first if key in set(names)]

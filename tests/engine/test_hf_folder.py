"""A model is found by its folder, by a built-in name, or by a hub id."""

from pathlib import Path

import huggingface_hub
import pytest

from minisgl.errors import MinisglError
from minisgl.utils import download_hf_weight
from minisgl.utils.hf import resolve_model_folder


def test_a_folder_is_returned_as_it_is(tmp_path: Path) -> None:
    assert download_hf_weight(tmp_path) == tmp_path
    assert download_hf_weight(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(("json_only", "patterns"), [(False, ["*.json", "*.safetensors"]), (True, ["*.json"])])
def test_a_hub_id_brings_only_json_and_safetensors(
    json_only: bool, patterns: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def snapshot_download(repo_id: str, **options: object) -> str:
        asked.update(options, repo_id=repo_id)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert resolve_model_folder("Qwen/Qwen3-0.6B", json_only) == tmp_path
    assert asked == {"repo_id": "Qwen/Qwen3-0.6B", "allow_patterns": patterns, "ignore_patterns": ["*/*"]}


def test_a_hub_id_that_cannot_be_reached_is_one_clear_message() -> None:
    with pytest.raises(MinisglError) as caught:
        download_hf_weight("nobody/nothing")
    message = str(caught.value)
    assert message.startswith(
        "there is no folder 'nobody/nothing', and the hub model of that name could not be downloaded: "
    )
    assert message.endswith(
        ". Expected a model folder or a reachable hub id. Check the spelling and the network, or use a local folder."
    )
    assert "\n" not in message


@pytest.mark.parametrize("name", ["no/such/folder", "/nowhere", "nowhere", "./a/b", "~nobody"])
def test_a_missing_folder_is_refused_without_asking_a_hub(name: str) -> None:
    with pytest.raises(MinisglError) as caught:
        download_hf_weight(name)
    assert str(caught.value) == (
        f"there is no folder {name!r}; expected a model folder or a hub id such as Qwen/Qwen3-0.6B. Check the path, or "
        "run `python -m minisgl fetch` for a small model and its folder."
    )


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(MinisglError) as caught:
        download_hf_weight(file)
    assert str(caught.value) == (
        f"{file} is a file; expected a model folder with config.json and safetensors files. Pass the folder."
    )

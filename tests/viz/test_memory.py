"""The memory meter agrees with /proc, counts every tensor byte, and sees short peaks."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from minisgl.utils import memory
from minisgl.utils.memory import LiveTensors, MemoryMeter, read_memory, reset_peak

MIB = 2**20
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells anonymous and file-backed memory apart")


def smaps():
    """This process's memory as the kernel adds it up page by page: exact, but slow."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


@linux
def test_anonymous_and_file_backed_bytes_equal_those_of_proc():
    exact, read = smaps(), read_memory()
    assert read.resident_bytes == pytest.approx(exact["Rss"], abs=2 * MIB)
    assert read.anonymous_bytes == pytest.approx(exact["Anonymous"], abs=2 * MIB)
    assert read.anonymous_bytes + read.file_backed_bytes == pytest.approx(read.resident_bytes, abs=MIB)
    assert "anonymous and file-backed apart" in read.source


@linux
def test_a_mapped_file_counts_as_file_backed_and_a_copy_of_it_as_anonymous(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1024) * 64 * 1024)
    before = read_memory()
    mapped = torch.from_file(str(file), size=64 * MIB, dtype=torch.uint8, shared=False)
    mapped.max()
    after_map = read_memory()
    copy = mapped.clone()
    after_copy = read_memory()
    assert after_map.file_backed_bytes - before.file_backed_bytes == pytest.approx(64 * MIB, rel=0.05)
    assert after_map.anonymous_bytes - before.anonymous_bytes < 4 * MIB
    assert after_copy.anonymous_bytes - after_map.anonymous_bytes == pytest.approx(copy.nbytes, rel=0.05)


@linux
def test_the_high_water_mark_sees_a_peak_that_is_over():
    assert reset_peak()
    before = read_memory()
    torch.ones(64 * MIB, dtype=torch.uint8)
    after = read_memory()
    assert after.resident_bytes - before.resident_bytes < 8 * MIB
    assert after.peak_resident_bytes - before.resident_bytes == pytest.approx(64 * MIB, rel=0.05)


def test_where_the_system_does_not_tell_the_split_is_unknown(monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    read = read_memory()
    assert read.anonymous_bytes is None and read.file_backed_bytes is None
    assert read.resident_bytes == pytest.approx(psutil.Process().memory_info().rss, abs=2 * MIB)
    assert "all kinds together" in read.source


def test_another_process_is_read_by_its_id():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        time.sleep(0.2)
        assert read_memory(other.pid).resident_bytes == pytest.approx(
            psutil.Process(other.pid).memory_info().rss, abs=MIB
        )
        other.communicate(b"\n")
    with pytest.raises(psutil.NoSuchProcess):
        read_memory(other.pid)


def test_live_bytes_follow_every_allocation_and_release():
    with LiveTensors() as live:
        first = torch.zeros(1000, dtype=torch.float32)
        assert live.live_bytes == 4000
        view = first.view(10, 100)[2:]
        assert live.live_bytes == 4000, "views share their storage"
        second = torch.cat([first, first])
        assert live.live_bytes == 12_000
        del first
        assert live.live_bytes == 12_000, "the view keeps it"
        del view
        assert live.live_bytes == 8000
        del second
        gc.collect()
    assert live.live_bytes == 0
    assert live.peak_bytes == 12_000


def test_meta_tensors_take_nothing_and_mapped_ones_count_apart(tmp_path):
    (tmp_path / "data").write_bytes(bytes(4096))
    with LiveTensors() as live:
        torch.empty(10**12, device="meta").clone()
        mapped = torch.frombuffer(memoryview(bytearray(4096)), dtype=torch.uint8).view(64, 64)
        assert (live.live_bytes, live.mapped_bytes) == (0, 4096)
        del mapped
    assert live.mapped_bytes == 0


def test_restarting_the_peak_forgets_what_is_over():
    with LiveTensors() as live:
        kept = torch.zeros(10)
        torch.zeros(1000)
        assert live.peak_bytes == 4040
        live.restart_peak()
        assert live.peak_bytes == kept.nbytes


def test_samples_and_events_lie_on_one_axis_of_time():
    heard = []
    with LiveTensors() as live, MemoryMeter(live=live, interval_s=0.01, listener=heard.append) as meter:
        data = torch.ones(48 * MIB, dtype=torch.uint8)
        meter.event("read", "a", data.nbytes)
        del data
        meter.event("release", "a", 48 * MIB)
        time.sleep(0.05)
    times = [row["time_s"] for row in meter.rows()]
    assert times == sorted(times)
    assert [event.kind for event in meter.events] == ["read", "release"]
    assert meter.peak("live_tensor_bytes") == 48 * MIB, "each event takes a sample, however short the peak"
    assert meter.samples[-1].live_tensor_bytes == 0
    assert len(heard) == len(meter.samples) + len(meter.events) > 4


ALLOCATE = """
import torch
from minisgl.utils.memory import MemoryMeter
with MemoryMeter(interval_s=0.01) as meter:
    data = torch.ones(48 * 2**20, dtype=torch.uint8)
    meter.event("read", "a", data.nbytes)
print(meter.peak() - meter.samples[0].anonymous_bytes)
"""


@linux
def test_the_kernel_counts_what_a_tensor_takes():
    # in a process of its own: memory that earlier tests gave back would be used again and not show
    done = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    assert int(done.stdout) == pytest.approx(48 * MIB, rel=0.1)


def test_a_gpu_that_is_not_in_use_is_unknown_and_not_started(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert memory.read_gpu_memory() == (None, None)


def test_the_meter_of_another_process_ends_with_it():
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as other, MemoryMeter(other.pid, interval_s=0.01) as meter:
        other.communicate(b"\n")
        time.sleep(0.05)
    assert meter.samples


@pytest.mark.gpu
def test_gpu_bytes_are_pytorchs_own():
    data = torch.zeros(2**20, device="cuda")
    allocated, reserved = memory.read_gpu_memory()
    assert allocated == torch.cuda.memory_allocated() >= data.nbytes
    assert reserved >= allocated

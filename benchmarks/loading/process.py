"""Start a load in a fresh process and watch its memory from outside, so that watching costs the load nothing."""

import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_SAMPLE_S = 0.002


@dataclass(frozen=True)
class Load:
    """One measured load; sizes in bytes beyond what the process had before.

    Attributes:
        wall_s: Seconds from the call to the last tensor.
        cpu_s: Seconds of CPU, which other processes disturb less.
        anon_peak: Most anonymous memory at once (sampled every 2 ms).
        file_peak: Most mapped file pages at once (sampled).
        peak: Most resident memory at once (the kernel's own high-water mark).
        read: Bytes that read calls returned.
        held: Bytes of the tensors that the load gave.
        touched: Bytes of the files that our reader delivered: by reading, by copying rows out of a mapping, and as pages
            handed out without being touched yet; 0 for the peers.
        streamed: Bytes of the tensors that it handed out and let go.
        wrong: Names of streamed tensors with wrong values.
        digests: Checksum of each kept tensor's shape, dtype and bytes.
    """

    wall_s: float
    cpu_s: float
    anon_peak: int
    file_peak: int
    peak: int
    read: int
    held: int
    touched: int
    streamed: int
    wrong: list[str]
    digests: dict[str, int]


def measure(way: str, folder: Path, rank: int = 0, size: int = 1) -> Load:
    """Run one load. Raises ``RuntimeError`` with the child's words if it fails."""
    with _start(way, folder, rank, size) as child:
        before = _line(child)["before"]
        _answer(child)
        anon, mapped = _watch(child)
        result = _line(child)
        _answer(child)
        digests = _line(child)["digests"]
        _answer(child)
    after = result["after"]
    return Load(
        wall_s=result["wall_s"],
        cpu_s=after["cpu_s"] - before["cpu_s"],
        anon_peak=max(anon, after["RssAnon"]) - before["RssAnon"],
        file_peak=max(mapped, after["RssFile"]) - before["RssFile"],
        peak=after["VmHWM"] - before["VmRSS"],
        read=after["rchar"] - before["rchar"],
        held=result["held"],
        touched=result["touched"],
        streamed=result["streamed"],
        wrong=result["wrong"],
        digests=digests,
    )


def reference_digests(folder: Path, rank: int = 0, size: int = 1) -> dict[str, int]:
    """Return the checksums of transformers' tensors, sharded and merged."""
    with _start("reference", folder, rank, size) as child:
        digests = _line(child)["digests"]
        _answer(child)
    return digests


def _start(way: str, folder: Path, rank: int, size: int) -> subprocess.Popen[str]:
    module = "benchmarks.loading.child"
    command = [sys.executable, "-W", "ignore", "-m", module, way, str(folder.resolve()), str(rank), str(size)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)


def _line(child: subprocess.Popen[str]) -> dict:
    assert child.stdout is not None
    text = child.stdout.readline()
    if not text:
        assert child.stderr is not None
        raise RuntimeError(f"{child.args} failed:\n{child.stderr.read()}")
    return json.loads(text)


def _answer(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def _watch(child: subprocess.Popen[str]) -> tuple[int, int]:
    """Sample the child's memory until it has something to say; return the peaks, in bytes."""
    peaks = {"RssAnon": 0, "RssFile": 0}
    status = Path(f"/proc/{child.pid}/status")
    while not select.select([child.stdout], [], [], _SAMPLE_S)[0]:
        for line in status.read_text().splitlines():
            name, _, value = line.partition(":")
            if name in peaks:
                peaks[name] = max(peaks[name], int(value.split()[0]) * 1024)
    return peaks["RssAnon"], peaks["RssFile"]

"""The many-GPU benchmark runs the same code with gloo processes on a shrunken shape."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("num_ranks", [2, 4])
def test_every_rank_reports_and_checksums_and_logits_agree(num_ranks: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(num_ranks)]
    done = subprocess.run(
        [*command, "benchmarks/load_many_gpus.py", "--shrunken"], cwd=ROOT, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Qwen3-235B-A22B's shape, sparse data, {num_ranks} ranks" in done.stdout
    for rank in range(num_ranks):
        assert sum(line.startswith(f"   {rank}  ") for line in done.stdout.splitlines()) == 2  # one row a table
    assert f"checksums over {num_ranks} ranks equal the files'" in done.stdout
    assert done.stdout.count(f"over {num_ranks} ranks differ from one rank's by") == 4

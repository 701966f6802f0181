"""Two and four processes over gloo answer like one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.multiprocessing

from minisgl.distributed import all_gather, all_reduce, close_tensor_parallel, init_tensor_parallel, set_tp_info
from minisgl.errors import MinisglError


@pytest.mark.timeout(600)
def test_logits_and_tokens_of_all_ranks_equal_one_process(repository: Path) -> None:
    script = repository / "benchmarks" / "tensor_parallel.py"
    command = [sys.executable, str(script), "--ranks", "2", "4", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["ranks"] for row in rows] == [2] * 6 + [4] * 6
    for row in rows:
        # Sums over ranks add the same float32 numbers in another order.
        assert row["difference"] < 1e-5, row
        assert row["tokens_equal"], row


def _collect(rank: int, meeting: str, folder: Path) -> None:
    device = init_tensor_parallel(rank, 2, backend="gloo", init_method=meeting, timeout_seconds=60)
    assert device == torch.device("cpu")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        tensor = torch.tensor([[1.0, 2.0]], dtype=dtype) * (rank + 1)
        assert all_gather(tensor).tolist() == [[[1.0, 2.0]], [[2.0, 4.0]]]
        assert all_reduce(tensor) is tensor
        assert tensor.tolist() == [[3.0, 6.0]]
    if rank == 0:
        set_tp_info(0, 3)
        with pytest.raises(MinisglError, match=r"tp size is 3 but torch\.distributed has a process group of 2"):
            all_reduce(torch.zeros(1))
    close_tensor_parallel()
    (folder / f"done-{rank}").touch()


def test_collectives_work_in_every_dtype_and_check_the_groups_size(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(_collect, args=(f"file://{tmp_path / 'meeting'}", tmp_path), nprocs=2)
    assert (tmp_path / "done-0").exists() and (tmp_path / "done-1").exists()

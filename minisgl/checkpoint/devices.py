"""Choose the reader for a device."""

import torch

from minisgl.checkpoint.reader import CpuReader, Reader


def open_reader(device: torch.device | str) -> Reader:
    """Return the reader for parameters on a device.

    Args:
        device: ``cuda`` devices get the threaded reader; any other is filled through the CPU.
    """
    device = torch.device(device)
    if device.type == "cuda":
        from minisgl.checkpoint.reader_cuda import CudaReader

        return CudaReader(device)
    return CpuReader(device)

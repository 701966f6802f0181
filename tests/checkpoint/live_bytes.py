"""Count the bytes of all tensors that are alive, as exactly as no measure of the process's memory could."""

import weakref
from collections import Counter
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """While active, count every new CPU storage until the last tensor that looks into it is gone.

    Attributes:
        now: Bytes alive now.
        peak: Most bytes beyond those handed out that were ever alive at once.
        handed_out: Bytes that no longer count, because the caller has them; the caller sets it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.peak = 0
        self.handed_out = 0
        self._views: Counter[int] = Counter()

    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu" and leaf.untyped_storage().nbytes():
                self._count(leaf)
        return result

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        address, num_bytes = storage.data_ptr(), storage.nbytes()
        if not self._views[address]:
            self.now += num_bytes
        self._views[address] += 1
        weakref.finalize(tensor, self._forget, address, num_bytes)
        self.peak = max(self.peak, self.now - self.handed_out)

    def _forget(self, address: int, num_bytes: int) -> None:
        self._views[address] -= 1
        if not self._views[address]:
            self.now -= num_bytes

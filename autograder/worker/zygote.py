"""The process that imports the heavy libraries once and forks a keeper for each tree.

It never reads a request: a keeper is forked first and reads its own, so that no child of the zygote finds another's
code, hidden case or answer in its memory. Run as ``python -m autograder.worker.zygote FD PROVIDED SCRATCH ISOLATED``.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
from pathlib import Path

PRELOADED = ("errors", "distributed", "core", "utils", "kernel", "attention", "layers", "checkpoint")


def preload(provided: str) -> None:
    """Import what every probe needs, so that a fork has it for nothing."""
    import torch
    import transformers
    from transformers import AutoConfig, LlamaConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig  # noqa: F401

    torch.set_num_threads(1)
    # Memory that was never written reads as NaN, so that it fails the same way every time and never by luck passes.
    torch.use_deterministic_algorithms(True, warn_only=True)
    transformers.logging.set_verbosity_error()
    import autograder.probes
    import autograder.worker.keeper

    for module in pkgutil.iter_modules(autograder.probes.__path__):
        importlib.import_module(f"autograder.probes.{module.name}")
    sys.path.insert(0, provided)
    _preload_provided()
    sys.path.remove(provided)


def _preload_provided() -> None:
    """Import the provided modules that need none of the graded ones."""
    for name in PRELOADED:
        before = set(sys.modules)
        try:
            importlib.import_module(f"minisgl.{name}")
        except ImportError:
            for added in set(sys.modules) - before:
                if added.startswith("minisgl"):
                    del sys.modules[added]
    for name in [name for name in sys.modules if name.split(".")[:2] == ["minisgl", "models"]]:
        raise RuntimeError(
            f"a provided module imports the graded {name} when it is imported; it must do so on first use"
        )


def main(control_fd: int, provided: str, scratch: str, isolated: bool) -> None:
    """Fork a keeper for each socket that arrives on the control socket; end when that closes."""
    from autograder.worker import heap, isolation
    from autograder.worker.keeper import Keeper

    control = socket.socket(fileno=control_fd)
    if not isolated:
        isolation.die_with_parent()
    preload(provided)
    isolation.set_dumpable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt in a terminal or kernel is the client's to handle
    gc.collect()
    heap.fill_holes()
    gc.freeze()
    gc.disable()
    control.sendall(b"R")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        pid = isolation.fork()
        if pid == 0:
            control.close()
            _keep(fds[0], provided, scratch, isolated, Keeper)
        for fd in fds:
            os.close(fd)
        _reap_finished()


def _keep(fd: int, provided: str, scratch: str, isolated: bool, keeper: type) -> None:
    from autograder.worker import isolation

    code = 1
    try:
        isolation.die_with_parent()
        if isolated:
            isolation.enter_session()
            pid = isolation.fork()
            if pid != 0:
                os.close(fd)
                os.waitpid(pid, 0)
                os._exit(0)
            isolation.die_with_parent()
        keeper(socket.socket(fileno=fd), Path(provided), isolated, scratch).serve()
        code = 0
    except BrokenPipeError:
        pass
    finally:
        os._exit(code)


def _reap_finished() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "1")

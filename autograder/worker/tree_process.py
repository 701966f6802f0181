"""The process that imports a student's tree once, and forks another one for each test. Only here does student code run.

Nothing that it says is believed. The keeper learns from the kernel which process answers, and watches, limits, measures
and ends it from outside.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import struct
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import Any

from autograder.worker import isolation, plain
from autograder.worker.limits import Limits, apply

MAX_TEXT = 4000
HELLO = struct.Struct(">I")  # the process's own id, which counts only where the kernel doesn't add it


def run(
    tree: str, modules: list[str], private: str, isolated: bool, limits: Limits, orders: socket.socket, output_fd: int
) -> None:
    """Import modules of a tree, then fork a process for each test that is ordered; never returns.

    Args:
        tree: folder that holds ``minisgl/``.
        modules: names of the modules to import.
        private: an empty folder for the process's files.
        isolated: whether namespaces shut the process in.
        limits: what it may use, and each test too.
        orders: where orders arrive: a folder's path, and descriptors for the answers and for what is printed.
        output_fd: where standard output and error go.
    """
    try:
        _shut_in(tree, isolated, output_fd, orders.fileno())
        _move_to(private)
        apply(limits)
        for name in modules:
            with suppress(BaseException):  # the test's process meets the same error, and describes it
                importlib.import_module(name)
        gc.freeze()
        while True:
            folder, fds, _, _ = socket.recv_fds(orders, 4096, 2)
            if not folder:
                return
            if isolation.fork_sibling() == 0:
                _answer_test(tree, folder.decode(), *fds)
            for fd in fds:
                os.close(fd)
    finally:
        os._exit(0)


def _answer_test(tree: str, private: str, channel_fd: int, output_fd: int) -> None:
    """Answer a test's questions until their channel closes; never returns."""
    try:
        isolation.set_dumpable(True)  # otherwise its entries in /proc belong to root, and nobody may measure it
        _keep_only(channel_fd, output_fd)
        _move_to(private)
        channel = socket.socket(fileno=channel_fd)
        channel.sendall(HELLO.pack(os.getpid()))
        while (request := plain.receive(channel)) is not None:
            channel.sendall(plain.frame(*_answer(request[0], tree)))
    finally:
        os._exit(0)


def _shut_in(tree: str, isolated: bool, output_fd: int, orders_fd: int) -> None:
    """Give up everything that student code must not have: descriptors, capabilities, environment; set the path."""
    _keep_only(orders_fd, output_fd)
    if isolated:
        isolation.drop_capabilities()
        isolation.forbid_hidden_memory()
    else:
        isolation.take_turns()
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    os.environ["PYTHONBREAKPOINT"] = "0"  # a left-over breakpoint() would wait for a debugger that nobody has
    sys.argv = ["test"]
    sys.path.insert(0, tree)
    if "minisgl" in sys.modules:  # imported before the fork, with its light provided modules
        sys.modules["minisgl"].__path__ = [os.path.join(tree, "minisgl")]


def _keep_only(channel_fd: int, output_fd: int) -> None:
    """Close all descriptors but one; nothing comes in, and what is printed goes to ``output_fd``."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output_fd, 1), (output_fd, 2)):
        os.dup2(source, target)
    os.closerange(3, channel_fd)
    os.closerange(channel_fd + 1, 4096)


def _move_to(private: str) -> None:
    """Make a folder the home, the folder for temporary files and the current one."""
    os.chdir(private)
    os.environ.update(HOME=private, TMPDIR=private)
    tempfile.tempdir = private


def _answer(request: dict[str, Any], tree: str) -> tuple[dict[str, Any], bytes]:
    module, _, name = request["probe"].rpartition(".")
    header: dict[str, Any] = {"number": request["number"]}
    try:
        question = getattr(importlib.import_module(f"autograder.probes.{module}"), name)
        value = question(**request["args"])
        text, blob = plain.encode(value, request["answer_bytes"])
    except BaseException as error:  # also SystemExit and KeyboardInterrupt, which student code may raise
        return header | {"error": _described(error, tree)}, b""
    return header | {"answer": text.decode()}, blob


def _described(error: BaseException, tree: str) -> dict[str, Any]:
    try:
        message = str(error)[:MAX_TEXT]
    except BaseException as second:
        message = f"(an exception whose text can't be read: {type(second).__name__})"
    root = os.path.join(tree, "minisgl")
    places = [
        (item.filename, item.lineno, item.name, item.line)
        for item in traceback.extract_tb(error.__traceback__)
        if item.filename.startswith(root)
    ]
    if isinstance(error, SyntaxError) and str(error.filename).startswith(root):
        places.append((str(error.filename), error.lineno, "", error.text))
    frames = [
        {"file": os.path.relpath(file, root), "line": line or 0, "function": function, "text": (text or "")[:200]}
        for file, line, function, text in places
    ]
    bases = [base.__name__ for base in type(error).__mro__]
    return {
        "kind": "not_plain" if isinstance(error, plain.NotPlain) else "raised",
        "type": type(error).__name__,
        "bases": bases,
        "message": message,
        "frames": frames[-12:],
    }

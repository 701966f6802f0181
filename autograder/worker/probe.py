"""The process of one question or of a conversation: import the tree, ask, answer, end. Only here does student code run."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from autograder.worker import isolation, plain
from autograder.worker.limits import Limits, apply

MAX_TEXT = 4000
MEASURED_FILE_MIB = 1


def run(
    request: dict[str, Any], tree: str, private: str, isolated: bool, answer_fd: int, output_fd: int, go_fd: int
) -> None:
    """Answer one question from a clean fork and leave; never returns.

    Args:
        request: ``number``, ``probe``, ``args``, ``limits``, ``measure``.
        tree: folder that holds ``minisgl/``.
        private: an empty folder for the probe's files.
        isolated: whether namespaces are there to shut the process in.
        answer_fd: where one frame goes.
        output_fd: where standard output and error go.
        go_fd: a byte arrives here once the watcher has noted the memory in use (only with ``measure``).
    """
    try:
        isolation.set_dumpable(True)  # else its own /proc entries belong to root
        if request.get("measure"):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
            if isolated:
                isolation.freeze_proc()  # and can't be made to start again by the code that is measured
        shut_in(tree, private, isolated, output_fd, keep=(answer_fd, go_fd))
        if request.get("measure"):
            os.write(answer_fd, b"M")
            os.read(go_fd, 1)
        _answer_alone(request, tree, private, answer_fd, go_fd if request.get("measure") else None)
    finally:
        os._exit(0)


def _answer_alone(
    request: dict[str, Any], tree: str, private: str, answer_fd: int, linger_fd: int | None = None
) -> None:
    """Answer; with ``linger_fd`` wait afterwards, until the peak of memory was read and the process is killed."""
    limits = Limits.from_plain(request["limits"])
    if linger_fd is not None:  # nothing may lie in files, shared memory included, where the measure doesn't look
        limits = limits.changed({"file_mib": MEASURED_FILE_MIB})
    _settle(private, limits)
    header, blob = _answer(request, tree, limits)
    _write_all(answer_fd, plain.frame(header, blob))
    if linger_fd is not None:
        os.read(linger_fd, 1)


def converse(
    tree: str,
    private: str,
    isolated: bool,
    limits: Limits,
    answer_fd: int,
    output_fd: int,
    questions: socket.socket,
) -> None:
    """Answer the questions that arrive on a socket, until it closes, and leave; never returns."""
    try:
        isolation.set_dumpable(True)
        shut_in(tree, private, isolated, output_fd, keep=(answer_fd, questions.fileno()))
        _settle(private, limits)
        while (request := plain.receive(questions)) is not None:
            header, blob = _answer(request[0], tree, limits)
            _write_all(answer_fd, plain.frame(header, blob))
    finally:
        os._exit(0)


def _settle(private: str, limits: Limits) -> None:
    """Move into the folder for the process's files, and put the limits on."""
    os.chdir(private)
    os.environ.update(HOME=private, TMPDIR=private)
    tempfile.tempdir = private
    apply(limits)


def shut_in(tree: str, private: str, isolated: bool, output_fd: int, keep: tuple[int, ...]) -> None:
    """Give up everything that student code must not have: descriptors, capabilities, environment; set the path."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output_fd, 1), (output_fd, 2)):
        os.dup2(source, target)
    kept = sorted(fd for fd in keep if fd > 2)
    for low, high in zip([3, *[fd + 1 for fd in kept]], [*kept, 4096], strict=True):
        os.closerange(low, high)
    if isolated:
        isolation.drop_capabilities()
        isolation.forbid_hidden_memory()
    else:
        isolation.take_turns()
    os.environ.clear()
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    sys.argv = ["probe"]
    sys.path.insert(0, tree)
    if "minisgl" in sys.modules:  # imported before the fork, with its light provided modules
        sys.modules["minisgl"].__path__ = [os.path.join(tree, "minisgl")]


def _answer(request: dict[str, Any], tree: str, limits: Limits) -> tuple[dict[str, Any], bytes]:
    module, _, name = request["probe"].rpartition(".")
    question = getattr(importlib.import_module(f"autograder.probes.{module}"), name)
    header: dict[str, Any] = {"number": request["number"]}
    try:
        value = question(**request["args"])
        text, blob = plain.encode(value, limits.answer_mib << 20)
    except plain.NotPlain as error:
        return header | {"kind": "error", "error": _described(error, tree) | {"not_plain": True}}, b""
    except MemoryError as error:
        return header | {"kind": "memory", "error": _described(error, tree)}, b""
    except BaseException as error:  # also SystemExit and KeyboardInterrupt, which student code may raise
        described = _described(error, tree)
        kind = "memory" if "can't allocate memory" in described["message"] else "error"
        return header | {"kind": kind, "error": described}, b""
    return header | {"kind": "answer", "files": _loaded_files(tree), "answer": text.decode()}, blob


def _described(error: BaseException, tree: str) -> dict[str, Any]:
    try:
        message = str(error)[:MAX_TEXT]
    except BaseException as second:
        message = f"(an exception whose text can't be read: {type(second).__name__})"
    frames = []
    for item in traceback.extract_tb(error.__traceback__):
        if item.filename.startswith(tree):
            where = os.path.relpath(item.filename, os.path.join(tree, "minisgl"))
            frames.append(
                {"file": where, "line": item.lineno or 0, "function": item.name, "text": (item.line or "")[:200]}
            )
    if isinstance(error, SyntaxError) and str(error.filename).startswith(tree):
        where = os.path.relpath(str(error.filename), os.path.join(tree, "minisgl"))
        frames.append({"file": where, "line": error.lineno or 0, "function": "", "text": (error.text or "")[:200]})
    return {
        "type": type(error).__name__,
        "bases": [base.__name__ for base in type(error).__mro__],
        "message": message,
        "frames": frames[-12:],
    }


def _loaded_files(tree: str) -> list[str]:
    """Return which of the tree's own model files were imported, as paths below ``minisgl/``.

    Only their names are looked up: going through all of sys.modules would copy every page that a module lies on.
    """
    root = os.path.join(tree, "minisgl")
    found = []
    for path in sorted(os.listdir(os.path.join(root, "models"))):
        module = sys.modules.get(f"minisgl.models.{path.removesuffix('.py')}")
        if module is not None and getattr(module, "__file__", None) == os.path.join(root, "models", path):
            found.append(f"models/{path}")
    return found


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]

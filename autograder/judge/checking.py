"""What the check files in ``tests/checks/`` are written with.

A check is an ordinary pytest test that runs in a process without student code. It asks questions (probes) and
compares plain data::

    @pytest.mark.part("config.head_dim", weight=1)
    @pytest.mark.parametrize("case", cases("head_dim", visible=VISIBLE, draw=draw_head_dim))
    def test_explicit_head_dim_wins(subject, case):
        '''An explicit head_dim wins over hidden_size / heads.'''
        answer = subject.ask("config.head_dim", {"config": case["config"]})
        expect(answer, case["expected"], hint="Qwen3-0.6B has head_dim 128 though 1024 / 16 is 64.")

* The docstring's first line says the behaviour; it is shown on failure. Hints are constant strings: of a hidden case
  only the docstring and a hint that stands literally in the check's code are ever shown.
* ``subject.ask(probe, args, limits={...}, measure=False)`` returns the answer: ``probe`` is ``module.function`` of
  ``autograder/probes/``, ``args`` its keyword arguments (JSON values and paths below ``subject.folder(name)``).
  Tensors come back as tensors, tuples as lists, meta tensors as ``MetaTensor(shape, dtype)``.
  ``limits`` changes fields of ``autograder.worker.limits.Limits`` for this question.
* ``subject.refusal(probe, args)`` wants an exception and returns it as ``Refusal(type, bases, message)``.
* ``subject.outcome(probe, args, measure=True)`` returns the raw ``Outcome`` (``.status``, ``.value``, ``.measured``).
* ``subject.folder(name)`` is a new folder for files that the probe may read (made by the check, for instance with
  ``minisgl.checkpoint.make_checkpoint``); pass its path as an argument. It is removed after the test.
* ``expect(actual, expected, hint=..., what=..., tolerance=...)`` compares nested plain data and tensors exactly, or
  tensors and floats within a tolerance; ``expect_keys(actual, expected, hint=...)`` compares tables of tensors
  (name -> MetaTensor or tensor) and shows missing, extra and misshapen ones; ``expect_refusal(refusal, names=[...])``
  wants a ValueError whose message holds each of the names; ``wrong(message, hint=...)`` fails outright.
* ``cases(name, visible=[...], draw=function)``: ``visible`` is a list of dicts (with an optional ``"id"``); ``draw``
  takes a ``random.Random`` and returns one more dict. In an instructor's run hidden cases are added, drawn from the
  seed kept there, and those listed under the same name in ``*.json`` files beside the seed. ``randint``, ``randrange``
  and ``choices`` depend on the seed; ``choice``, ``sample`` and ``random`` don't: with them ``draw`` decides what kind
  of case it makes, so that the same work gets the same mark with any seed. What the answer hangs on has to be drawn
  with the former, or an answer could be known before.
* All questions of a test go to one process, which ends with the test (and after a measured question), so no question may
  tell what the answer to another one is: draw numbers for each.
* The mark ``part("config.head_dim", gist=True)`` is for the one behaviour that the part exists for: at least half of the
  part's points hang on it. The other checks share the rest by ``weight``, whatever the number of their cases; one that
  fails costs at least 15 % of the part.
* The mark ``part("config.together")`` is for tests that run all of the student's parts in one tree.
* Oracles are transformers, plain formulas and fixed figures, never the reference: a student kit has none.

Hints in layers for ``hint("config.rope")`` stand in ``autograder/student/hints/<chapter>.toml``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.judge.cases import Case, cases
from autograder.judge.compare import CheckFailed, expect, expect_keys, expect_refusal, expect_true, show, wrong
from autograder.worker.client import Tree, Worker
from autograder.worker.limits import Limits
from autograder.worker.outcome import Outcome
from autograder.worker.plain import MetaTensor

__all__ = [
    "Case",
    "CheckFailed",
    "MetaTensor",
    "Refusal",
    "Subject",
    "cases",
    "expect",
    "expect_keys",
    "expect_refusal",
    "expect_true",
    "wrong",
]

LIBRARY_MISSING = (
    "\nThis Python doesn't have that library. Use the standard library and what the course installs (python -m autograder "
    "doctor lists it), or ask your instructor to install it where the work is graded."
)


@dataclass(frozen=True)
class Refusal:
    """An exception that the code under judgement raised."""

    type: str
    bases: tuple[str, ...]
    message: str


@dataclass
class Subject:
    """The tree under judgement, as a check sees it.

    Attributes:
        own_lines: the lines that the student wrote, of which a failure may show one; None: all are.
        digests: a digest of each answer so far, in order: by them a known wrong solution is recognized.
        questions: each question so far, as probe and arguments.
    """

    tree: Tree
    worker: Worker
    limits: Limits = field(default_factory=Limits)
    own_lines: frozenset[str] | None = None
    digests: list[str] = field(default_factory=list)
    questions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _folders: list[Path] = field(default_factory=list)

    def outcome(
        self,
        probe: str,
        args: dict[str, Any] | None = None,
        *,
        limits: dict[str, Any] | None = None,
        measure: bool = False,
    ) -> Outcome:
        """Ask and return whatever came of it."""
        found = self.tree.ask(probe, args or {}, self.limits.changed(limits or {}), measure=measure)
        self.questions.append((probe, args or {}))
        self.digests.append(digest(found))
        return found

    def ask(
        self,
        probe: str,
        args: dict[str, Any] | None = None,
        *,
        limits: dict[str, Any] | None = None,
        measure: bool = False,
    ) -> Any:
        """Ask and return the answer.

        Raises:
            CheckFailed: no answer came; its status says why (an exception, a limit, a crash).
        """
        found = self.outcome(probe, args, limits=limits, measure=measure)
        if found.status != "answered":
            raise self.failure(found)
        return found.value

    def refusal(self, probe: str, args: dict[str, Any] | None = None, *, hint: str = "", **options: Any) -> Refusal:
        """Ask for something that must be refused and return the exception; ``hint`` is for an answer instead of one.

        Raises:
            CheckFailed: an answer came instead, or a limit or crash.
        """
        found = self.outcome(probe, args, **options)
        if found.status == "answered":
            raise CheckFailed(
                "this was to be refused with an error", "a ValueError", f"the answer {show(found.value)}", hint
            )
        if found.status != "error" or found.error["type"] == "NotImplementedError":
            raise self.failure(found)
        return Refusal(found.error["type"], tuple(found.error["bases"]), found.error["message"])

    def failure(self, found: Outcome) -> CheckFailed:
        """Turn an outcome without an answer into the failure that is shown."""
        return failure_of(found, self.own_lines)

    def folder(self, name: str = "files") -> Path:
        """Make an empty folder whose path may be passed as an argument; the probe can read it."""
        path = self.worker.scratch / f"{name}-{len(self._folders)}"
        path.mkdir(mode=0o755)
        self._folders.append(path)
        return path

    def clean(self) -> None:
        """End the process that answered the test's questions, and remove the folders that the test made."""
        import shutil

        self.tree.end_test()
        for path in self._folders:
            shutil.rmtree(path, ignore_errors=True)
        self._folders.clear()


def failure_of(found: Outcome, own_lines: frozenset[str] | None = None) -> CheckFailed:
    """Turn an outcome without an answer into the failure that is shown; see ``Subject.own_lines``."""
    if found.status != "error":
        words = {"time_limit": "time", "memory_limit": "memory", "output_limit": "output"}
        reason = f"limit on {words[found.status]}: " if found.status in words else ""
        return CheckFailed(f"{reason}{found.message}", status=found.status)
    error = found.error
    if error["type"] == "NotImplementedError" and error["frames"]:
        return CheckFailed(f"{error['frames'][-1]['function']} isn't written yet", status="not_written")
    text = f"your code raised {error['type']}: {error['message'][:600]}"
    text += LIBRARY_MISSING if error["type"] == "ModuleNotFoundError" else ""
    own = [frame for frame in error["frames"] if own_lines is None or frame["text"].strip() in own_lines]
    if own:
        last = own[-1]
        text += f"\nin {last['function'] or 'the file'} ({last['file']}, line {last['line']}): {last['text']}"
    if error["frames"] and error["frames"][-1] not in own:
        other = error["frames"][-1]["function"]
        text += f"\nraised in the course's own {other or 'file'}, which works with what your part gives"
    return CheckFailed(text)


def digest(found: Outcome) -> str:
    """Return a short text that is the same for the same answer, also where the last digits of tensors differ."""
    if found.status == "answered":
        return hashlib.sha256(_stable(found.value).encode()).hexdigest()[:16]
    if found.status == "error":
        return f"error:{found.error['type']}"
    return found.status


def _stable(value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        facts = f"{tuple(value.shape)} {value.dtype}"
        if value.numel() and value.dtype.is_floating_point:
            numbers = value.double().flatten()
            weights = torch.arange(1, numbers.numel() + 1, dtype=torch.float64).remainder(97.0)
            return f"tensor {facts} {numbers.abs().mean():.2e} {(numbers * weights).mean():.2e}"
        return f"tensor {facts} {hashlib.sha256(value.contiguous().flatten().view(torch.uint8).numpy().tobytes()).hexdigest()}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_stable(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_stable(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:.6e}"
    return f"{type(value).__name__} {value!r}"

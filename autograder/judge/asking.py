"""Short forms of the check files for questions whose only argument is a config."""

from __future__ import annotations

from typing import Any

from autograder.judge.checking import CheckFailed, Refusal, Subject, expect, expect_refusal

# Numbers that a config holds are passed on, not computed: 1e6 and 1000000 are the same, and nothing else is.
EXACT = 1e-12


def ask_about(
    subject: Subject,
    probe: str,
    config: dict[str, Any],
    *,
    hint: str = "",
    bare: bool = True,
    **arguments: Any,
) -> Any:
    """Return the answer about a config; ``bare`` ones reach the code without what a library adds.

    Raises:
        CheckFailed: no answer came; where the code raised, with `hint` beside what it raised.
    """
    try:
        return subject.ask(probe, {"config": config, "bare": bare, **arguments})
    except CheckFailed as failure:
        if failure.status == "failed" and not failure.hint:
            failure.hint = hint
        raise


def gives(
    subject: Subject,
    probe: str,
    config: dict[str, Any],
    expected: Any,
    *,
    hint: str,
    bare: bool = True,
    **arguments: Any,
) -> None:
    """Want exactly this answer about a config."""
    answer = ask_about(subject, probe, config, hint=hint, bare=bare, **arguments)
    expect(answer, expected, hint=hint, tolerance=EXACT)


def accepts(subject: Subject, probe: str, config: dict[str, Any], *, hint: str, bare: bool = True) -> None:
    """Want a config to be let through: None, and no error."""
    found = subject.outcome(probe, {"config": config, "bare": bare})
    if found.status == "error" and "ValueError" in found.error["bases"]:
        expect(f"an error: {found.error['message']}", "no error", hint=hint)
    ask_about(subject, probe, config, hint=hint, bare=bare)


def refuses(
    subject: Subject,
    probe: str,
    config: dict[str, Any],
    *,
    names: list[str],
    hint: str,
    bare: bool = True,
    **arguments: Any,
) -> None:
    """Want a config to be refused with a ``ConfigError`` whose message holds all of `names`."""
    found = subject.outcome(probe, {"config": config, "bare": bare, **arguments})
    if found.status == "answered":
        expect(found.value, f"a ConfigError that names {', '.join(names)}", hint=hint)
    if found.status != "error" or found.error["type"] == "NotImplementedError":
        raise subject.failure(found)
    error = found.error
    refusal = Refusal(error["type"], tuple(error["bases"]), error["message"])
    expect_refusal(refusal, names=names, hint=hint, error="ConfigError")

"""What is said of a grader that failed, apart from the heavy imports of the judge."""

OTHER_PYTHON = (
    "This Python lacks what the course needs. Start the command with the environment's: .venv/bin/python -m autograder …, "
    "or `source .venv/bin/activate` first. `make setup` makes that environment, and completes it."
)


class JudgeError(RuntimeError):
    """Report that the grader itself failed: no verdict may be drawn from it."""


def is_other_python(error: BaseException) -> bool:
    """Return whether a package that isn't the course's own is missing: this isn't the environment's Python."""
    own = ("autograder", "minisgl")
    return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] not in own


def failure_text(error: Exception) -> str:
    """Return what the commands say when the grader itself failed, with what to do where that is known."""
    text = f"the grader itself failed: {type(error).__name__}: {error}"
    return f"{text}\n{OTHER_PYTHON}" if is_other_python(error) else text

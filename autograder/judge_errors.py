"""The exception of a grader that failed, apart from the heavy imports of the judge."""


class JudgeError(RuntimeError):
    """Report that the grader itself failed: no verdict may be drawn from it."""

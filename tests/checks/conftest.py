"""Give every check its ``subject``: the reference by default, a student's tree under the autograder."""

from autograder.judge.subject import subject, subject_worker  # noqa: F401

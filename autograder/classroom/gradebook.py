"""Write graded rows into nbgrader's gradebook, which stays the system of record."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from autograder import paths
from autograder.parts import BY_ID, grade_id

ATTEMPTS = 6


def write_rows(rows: Iterable[dict[str, Any]], url: str = "") -> None:
    """Write each row's points as automatic scores; manual scores and comments stay as they are.

    Args:
        rows: rows of the report.
        url: the gradebook's database; the course's own when empty.

    Raises:
        ValueError: a chapter isn't in the gradebook yet.
    """
    from autograder.classroom.nbgrader import expect_unsaved_rows  # brings nbconvert: only where there is a gradebook

    # nbgrader calls `alembic` by name when it makes a gradebook; it lies beside this Python
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    expect_unsaved_rows()
    database = url or f"sqlite:///{paths.HOME / 'gradebook.db'}"
    for row in rows:
        if row["chapter"]:
            _write_row(database, row)


def _write_row(database: str, row: dict[str, Any]) -> None:
    """Write one row; again when another grader made the same student or submission just then."""
    from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
    from sqlalchemy.exc import IntegrityError, OperationalError

    for attempt in range(1, ATTEMPTS + 1):
        try:
            with Gradebook(database) as gradebook:
                try:
                    gradebook.find_notebook(row["chapter"], row["chapter"])
                except MissingEntry:
                    raise ValueError(
                        f"the gradebook doesn't know {row['chapter']} yet; run: "
                        f"nbgrader generate_assignment {row['chapter']} --force"
                    ) from None
                gradebook.update_or_create_student(row["student"])
                gradebook.update_or_create_submission(row["chapter"], row["student"])
                _write_scores(gradebook, row)
            return
        except (InvalidEntry, IntegrityError, OperationalError):
            if attempt == ATTEMPTS:
                raise
            time.sleep(0.1 * attempt)


def _write_scores(gradebook: Any, row: dict[str, Any]) -> None:
    notebook = gradebook.find_submission_notebook(row["chapter"], row["chapter"], row["student"])
    earned = {grade_id(BY_ID[part["id"]]): part for part in row["parts"]}
    for grade in notebook.grades:
        part = earned.get(grade.cell.name)
        share = part["points"] / part["max_points"] if part and part["max_points"] else 0.0
        grade.auto_score = round(float(grade.cell.max_score) * share, 2)
        grade.needs_manual_grade = grade.manual_score is not None
    gradebook.db.commit()

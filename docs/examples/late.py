"""A late penalty of a tenth of the points for each day begun; see docs/instructor.md for how it is switched on."""

from __future__ import annotations

import math
from typing import Any

from nbgrader.plugins import LateSubmissionPlugin


class TenthADay(LateSubmissionPlugin):
    """Take a tenth of what was reached for each day that has begun."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> Any:
        """Return the points to take off; nbgrader never takes more than the score."""
        return round(score * min(10, math.ceil(total_seconds_late / 86400)) / 10, 2)

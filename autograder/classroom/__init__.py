"""A class of submissions: read, schedule, grade, report, and keep in nbgrader's gradebook."""

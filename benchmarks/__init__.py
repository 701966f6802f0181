"""Measure loading, grading and the labs against other ways to do the same."""

"""Make the course: chapters, student kit, flash cards, wrong solutions, the red team."""

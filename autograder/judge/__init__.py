"""Run the checks on a student's work, compare the answers, explain what is wrong."""

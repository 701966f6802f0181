"""What a student calls: the notebook's magic and functions, the shell's commands, the workspace."""

"""The worker: the only processes that ever run a student's code.

``client`` (trusted) starts one ``zygote`` process, inside bubblewrap or not. The zygote imports torch and transformers
once and forks a ``keeper`` for each tree. The keeper runs no student code: it starts the tree's process
(``tree_process``), which imports the tree once and forks a process for each test, and it watches, limits, measures and
ends all of them from outside. ``plain`` is the data that may cross.
"""

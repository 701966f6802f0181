"""The worker: the only processes that ever run a student's code.

``client`` (trusted) starts one ``zygote`` process, inside bubblewrap or not. The zygote imports torch and transformers
once and forks a ``session`` for each tree; the session runs no student code, forks a ``probe`` for each question,
watches its limits and passes its answer on. ``plain`` is the data that may cross.
"""

"""The questions that the checks may ask: functions that run in the worker, beside the student's code.

``subject.ask("config.head_dim", {"config": {...}})`` calls ``head_dim(config={...})`` of ``probes/config.py`` in a
fresh process whose ``minisgl`` is the tree under judgement. A probe imports from ``minisgl`` inside the function,
calls the student's code and returns plain data: None, bool, int, float, str, list, dict with string keys, tensors,
dtypes. It holds no expectation and no answer: students may read it.
"""

"""The model and weight-loading part of a small LLM inference engine.

Importing the package loads neither torch nor transformers: the names below are looked up on first use, so that
`python -m minisgl --help` and tools that only need the errors start at once.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "CheckpointError": "minisgl.errors",
    "ConfigError": "minisgl.errors",
    "Engine": "minisgl.engine",
    "MinisglError": "minisgl.errors",
    "ModelConfig": "minisgl.models",
    "create_model": "minisgl.models",
    "load_weight": "minisgl.models",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it, on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazy names beside the loaded ones."""
    return sorted({*globals(), *__all__})

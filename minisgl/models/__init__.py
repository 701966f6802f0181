"""Model code and weight loading: the part of the engine that students write.

``config.py`` describes a model, ``utils.py`` and ``decoder.py`` compute it, ``register.py`` finds its
class, ``weight.py`` streams its weights. Names are imported on first use, so that a module that is not
written yet doesn't stand in the way of the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minisgl.models.config import ModelConfig, RotaryConfig
    from minisgl.models.register import create_model
    from minisgl.models.weight import load_weight

_HOME_OF = {
    "ModelConfig": "config",
    "RotaryConfig": "config",
    "create_model": "register",
    "load_weight": "weight",
}
__all__ = ["ModelConfig", "RotaryConfig", "create_model", "load_weight"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)

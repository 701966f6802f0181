"""Labs that make memory, merging and sharding visible, for notebooks (the optional extra ``viz``).

Each lab is a model class without widget code, with ``picture()``, ``static()`` and ``describe()``, and a panel of
ipywidgets around it. ipywidgets and matplotlib are imported when a panel is made, not before. A chapter shows a lab
in one line, as the last expression of a cell:

    viz.ConfigExplorer("Qwen3-0.6B")                      # 01: where each value of a config.json comes from
    viz.Switches("LlamaForCausalLM")                      # 02: three switches, four architectures
    viz.LoadMap(folder, {"your loader": loader})          # 03: watch loaders move bytes, step by step
    viz.Peaks(num_bytes)                                  # 03: what your own loaders hold, in one picture
    viz.MergeStepper("Qwen3, 2 layers")                   # 03: two ways of merging, tensor by tensor
    viz.ShardExplorer("Qwen3-0.6B", tp_size=4)            # 03: what each rank holds
    viz.MemoryRace("Qwen3-0.6B, 1.5 GB")                  # 04: four ways to load, in memory and time
    viz.BreakIt()                                         # 04: break the model and read what it says
    viz.MemoryRace("Llama-3-70B, 141 GB", tp_size=8, keep=False)   # 05: a 70B on a laptop

The same without a live lab, for a stored notebook: ``viz.ShardModel("Qwen3-0.6B", 4).static()``, or ``lab.static()`` in
the cell after it. ``lab.describe()`` says it in words, ``lab.model`` gives the numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME_OF = {
    "MemoryRace": "views.race",
    "LoadMap": "load_map",
    "Peaks": "peaks",
    "MergeStepper": "views.stepper",
    "ShardExplorer": "views.shards",
    "Switches": "views.switches",
    "ConfigExplorer": "views.configs",
    "BreakIt": "views.broken",
    "RaceModel": "race",
    "RaceSettings": "race_plan",
    "StepperModel": "stepper",
    "ShardModel": "shards",
    "SwitchesModel": "switches",
    "ConfigModel": "configs",
    "BreakItModel": "broken",
    "MissingWidgets": "needs",
    "NotWrittenYet": "needs",
}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a lab from its module, on first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    """List the labs beside what the module has."""
    return sorted({*globals(), *__all__})

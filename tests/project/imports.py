"""Read imports from source and hold them against the arrows of CONTRIBUTING.md."""

import graphlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.structure import imported_modules

NOTEBOOK_LIBRARIES = frozenset(
    {
        "IPython",
        "anywidget",
        "ipykernel",
        "ipywidgets",
        "jupyter",
        "jupyter_client",
        "jupyter_server",
        "jupyterlab",
        "matplotlib",
        "nbclient",
        "nbconvert",
        "nbformat",
        "nbgrader",
        "notebook",
        "traitlets",
    }
)


@dataclass(frozen=True)
class Rule:
    """``folder`` and files below it (but not below ``but``) import none of ``forbidden``, nor anything inside those."""

    folder: str
    forbidden: frozenset[str]
    but: str | None = None


# A room imports those before it, never those behind it.
ROOMS = {
    "autograder": ("text", "probes", "worker", "judge", "student", "classroom", "authoring"),
    "minisgl": ("errors", "names", "hf_fields", "_lazy", "tiny_models", "checkpoint", "utils", "distributed", "kv_cache",
                "core", "attention", "kernel", "layers", "models", "engine", "hub", "cli"),
}  # fmt: skip
RULES = (
    *(
        Rule(f"{house}/{room}", frozenset(f"{house}.{later}" for later in rooms[number:]))
        for house, rooms in ROOMS.items()
        for number, room in enumerate(rooms, 1)
    ),
    Rule("minisgl", frozenset({"autograder", "tests", "solutions", "notebooks", "benchmarks", "tools", "scripts"})),
    Rule("minisgl", NOTEBOOK_LIBRARIES | {"minisgl.viz"}, but="minisgl/viz"),
    Rule("autograder", frozenset({"minisgl.viz", "tests", "solutions", "notebooks", "benchmarks", "tools", "scripts"})),
    Rule("solutions", frozenset({"tests", "benchmarks", "tools", "scripts"})),
)


def circle_in(root: Path, files: Iterable[Path]) -> list[str]:
    """Return modules of one circle of imports, those inside functions included; empty where there is none."""
    modules = {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in files}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        package = ".".join(path.relative_to(root).parent.parts)
        found = set()
        for _, imported in imported_modules(path.read_text(encoding="utf-8"), package):
            while imported and imported not in modules:
                imported = imported.rpartition(".")[0]
            found.add(imported)
        graph[name] = found - {name, name.split(".")[0], ""}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def violations(root: Path, files: Iterable[Path]) -> list[str]:
    """Return one line for each import that a rule forbids, sorted."""
    found = set()
    for path in files:
        name = path.relative_to(root).as_posix()
        package = ".".join(path.relative_to(root).parent.parts)
        for rule in RULES:
            is_meant = name == f"{rule.folder}.py" or name.startswith(rule.folder + "/")
            if not is_meant or (rule.but and name.startswith(rule.but + "/")):
                continue
            for line, module in imported_modules(path.read_text(encoding="utf-8"), package):
                if any(module == word or module.startswith(word + ".") for word in rule.forbidden):
                    found.add(f"{name}:{line} imports {module}, against the arrows in CONTRIBUTING.md")
    return sorted(found)

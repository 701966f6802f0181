"""`import minisgl` is quick, and brings in nothing heavy before it is needed."""

import json
import subprocess
import sys
import time

import minisgl

HEAVY = ("torch", "transformers", "safetensors", "huggingface_hub", "numpy", "IPython", "ipywidgets", "matplotlib")


def seconds_of(code: str) -> float:
    """Return the quickest of three runs of `code` in a fresh interpreter."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def loaded_after(code: str) -> list[str]:
    report = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    result = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_the_package_alone_loads_nothing_heavy() -> None:
    assert loaded_after("import minisgl, minisgl.errors, minisgl.cli") == []


def test_models_layers_and_engine_do_without_transformers_and_notebooks() -> None:
    loaded = loaded_after("import minisgl.engine, minisgl.models, minisgl.layers, minisgl.utils")
    assert not {"transformers", "IPython", "ipywidgets", "matplotlib"} & set(loaded)


def test_importing_takes_under_half_of_what_transformers_takes() -> None:
    nothing = seconds_of("")
    assert seconds_of("import minisgl") - nothing < (seconds_of("import transformers") - nothing) / 2


def test_public_names_are_found_on_first_use() -> None:
    assert minisgl.Engine.__module__ == "minisgl.engine"
    assert set(minisgl.__all__) <= set(dir(minisgl))

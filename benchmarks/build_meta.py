"""Time the building of three models on the meta device, ours against transformers' in the same process.

    python benchmarks/build_meta.py [--repeat N]

Prints the quickest of N builds of each, the number of tensors, and the memory that our build took.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from minisgl.checkpoint.presets import PRESETS
from minisgl.models import ModelConfig, create_model
from minisgl.utils import torch_dtype

MODELS = ("Qwen3-0.6B", "Llama-3-70B", "Qwen3-235B-A22B")


def quickest(build: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Return the time of the quickest of `repeat` builds, in milliseconds, and what was built last."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        built = build()
        times.append(time.perf_counter() - start)
    return min(times) * 1000, built


def build_ours(config: ModelConfig) -> Any:
    """Build our model on the meta device in bfloat16."""
    with torch.device("meta"), torch_dtype(torch.bfloat16):
        return create_model(config)


def build_theirs(hf_config: Any) -> Any:
    """Build transformers' model on the meta device in bfloat16."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(hf_config, dtype=torch.bfloat16)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="builds of each; default: 5")
    repeat = parser.parse_args().repeat
    print(f"{'model':<18}{'ours':>10}{'transformers':>15}{'ratio':>8}{'tensors':>9}{'parameters':>13}")
    for name in MODELS:
        fields = PRESETS[name]
        hf_config = AutoConfig.for_model(**fields)
        config = ModelConfig.from_hf(hf_config)
        theirs, _ = quickest(lambda: build_theirs(hf_config), repeat)  # noqa: B023  called at once
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours, model = quickest(lambda: build_ours(config), repeat)  # noqa: B023
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        state = model.state_dict()
        billions = sum(tensor.numel() for tensor in state.values()) / 1e9
        row = f"{name:<18}{ours:>7.1f} ms{theirs:>12.1f} ms{theirs / ours:>7.0f}x{len(state):>9}{billions:>11.2f} B"
        print(f"{row}   peak memory grew by {grown / 1024:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

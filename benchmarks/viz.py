"""Measure the labs: how fast they answer, and how well the memory race's peaks are predicted.

    python benchmarks/viz.py                 both
    python benchmarks/viz.py --interaction   only the first (seconds)
    python benchmarks/viz.py --race          only the second: Qwen3-0.6B's shape, 1.5 GB (a minute)

Exits with 1 where an answer takes over 200 ms or a peak is over 5 % from its prediction.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from minisgl import viz
from minisgl.viz.race import THIS_TREE
from minisgl.viz.race_plan import RaceSettings

LIMIT_S, LIMIT_SHARE = 0.2, 0.05


def interactions() -> Iterator[tuple[str, Callable[[int], None]]]:
    """Name what a user does, and give a function that does it through the lab's own control."""
    for model in ("Qwen3, 2 layers", "Qwen3-0.6B"):
        stepper = viz.MergeStepper(model)
        yield f"merge stepper, {model}: one step", lambda i, lab=stepper: setattr(lab._slider, "value", i + 1)
    orders = ("files shuffled", "groups torn apart", "as saved")
    stepper = viz.MergeStepper("Qwen3-0.6B")
    yield (
        "merge stepper, Qwen3-0.6B: other file order",
        lambda i: stepper._do(lambda: stepper._again(order=orders[i % 3])),
    )
    for model in ("Qwen3-0.6B", "Qwen3-235B-A22B"):
        shards = viz.ShardExplorer(model, tp_size=16)
        yield f"shard explorer, {model}: other rank", lambda i, lab=shards: setattr(lab._rank, "value", (i + 1) % 16)
    sizes = (1, 2, 4, 8, 16)
    yield "shard explorer, Qwen3-235B-A22B: other TP size", lambda i: setattr(shards._size, "value", sizes[i % 5])
    switches = viz.Switches()
    yield "switches: flip one", lambda i: setattr(switches._boxes["is_moe"], "value", i % 2 == 0)
    names = ("Qwen2ForCausalLM", "LlamaForCausalLM")
    yield "switches: choose an architecture", lambda i: switches._do(lambda: switches._choose(names[i % 2]))
    configs = viz.ConfigExplorer()
    known = viz.ConfigModel.choices
    yield "config explorer: other config", lambda i: configs._do(lambda: configs._choose(known[i % len(known)]))


def measure_interaction(repeats: int) -> bool:
    """Print how long the kernel takes to answer each; return whether all stay below the limit."""
    print(f"{'what the user does':<55} {'median':>9} {'slowest':>9}   (ms, limit {1000 * LIMIT_S:.0f})")
    good = True
    for name, act in interactions():
        act(repeats)  # the first time imports and traces
        times = []
        for index in range(repeats):
            start = time.perf_counter()
            act(index)
            times.append(time.perf_counter() - start)
        good &= max(times) < LIMIT_S
        print(f"{name:<55} {1000 * statistics.median(times):>9.1f} {1000 * max(times):>9.1f}")
    return good


def measure_race(checkpoint: str, tp_size: int) -> bool:
    """Race all strategies; print predicted and measured peaks; return whether they agree."""
    good = True
    with viz.RaceModel(RaceSettings(checkpoint, tp_size=tp_size), student_tree=THIS_TREE) as model:
        model.start()
        model.wait()
        assert model.stored is not None
        size = f"{model.stored.num_bytes:,} bytes of tensors"
        print(f"\n{checkpoint}, rank 0 of {tp_size}: {size}. Peaks in MiB, above the start.")
        heads = f"{'predicted':>10} {'anonymous':>10} {'off':>7} {'counted':>9} | {'predicted':>10} {'resident':>9} {'off':>7}"
        print(f"{'strategy':<24} {heads} {'seconds':>8}")
        for row in model.results:
            if row["status"] != "finished":
                print(f"{row['strategy']:<24} {row['status']}")
                good = False
                continue
            off, kernel_off = row["measured"] / row["predicted"] - 1, row["kernel"] / row["kernel_predicted"] - 1
            good &= abs(off) < LIMIT_SHARE and abs(kernel_off) < LIMIT_SHARE
            print(
                f"{row['strategy']:<24} {row['predicted'] / 2**20:>10.1f} {row['measured'] / 2**20:>10.1f} {off:>+7.2%} "
                f"{row['counted'] / 2**20:>9.1f} | {row['kernel_predicted'] / 2**20:>10.1f} {row['kernel'] / 2**20:>9.1f} "
                f"{kernel_off:>+7.2%} {row['seconds']:>8.1f}"
            )
    return good


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interaction", action="store_true")
    parser.add_argument("--race", action="store_true")
    parser.add_argument("--checkpoint", default="Qwen3-0.6B, 1.5 GB", choices=viz.RaceModel.shapes)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    both = options.interaction == options.race
    good = True
    if both or options.interaction:
        good &= measure_interaction(options.repeats)
    if both or options.race:
        for tp_size in (1, 4):
            good &= measure_race(options.checkpoint, tp_size)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Print the largest difference between our logits and transformers' for every model of the parity grid.

    python benchmarks/parity.py [--filter TEXT]

Differences are relative to the largest logit. The last column says whether 32 greedy tokens of each prompt are equal,
which half-precision models aren't held to. Exits with 1 if a case is beyond its bound.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from minisgl.engine import Engine
from tests.engine.oracle import DTYPES, difference, logits_of, make_oracle, prompts_for, relative_tolerance, tokens_of
from tests.engine.parity_cases import CASES, Case

NUM_STEPS = 32


def measure(case: Case) -> tuple[float, bool]:
    """Return one case's largest relative difference, and whether the greedy tokens are equal."""
    with tempfile.TemporaryDirectory() as folder:
        oracle = make_oracle(case, Path(folder))
        engine = Engine(folder, dtype=case.computed, device="cpu", progress=False)
        prompts = prompts_for(case)
        apart = difference(engine.logits(prompts), logits_of(oracle, prompts))
        return apart, engine.generate(prompts, NUM_STEPS) == tokens_of(oracle, prompts, NUM_STEPS)


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", metavar="TEXT", help="only cases with this in their name")
    wanted = parser.parse_args().filter
    # The models are so small that a second thread costs more than it gives.
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, prompts of unequal lengths")
    print(f"{'case':<36}{'computed in':<13}{'difference':>11}{'bound':>10}  {NUM_STEPS} tokens")
    worst: dict[str, tuple[float, str]] = {}
    num_failed = 0
    for case in (case for case in CASES if wanted in str(case)):
        apart, is_same = measure(case)
        bound = relative_tolerance(DTYPES[case.computed])
        num_failed += apart >= bound or (case.computed == "float32" and not is_same)
        worst[case.computed] = max(worst.get(case.computed, (0.0, "")), (apart, str(case)))
        print(
            f"{case!s:<36}{case.computed:<13}{apart:>11.1e}{bound:>10.1e}  {'equal' if is_same else 'differ'}",
            flush=True,
        )
    for dtype, (apart, name) in worst.items():
        print(f"largest in {dtype}: {apart:.1e} ({name})")
    return int(num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())

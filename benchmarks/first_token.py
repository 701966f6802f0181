"""Time a whole process on one GPU, from its start to the first token: ours and transformers', in turn.

    python benchmarks/first_token.py FOLDER          # a checkpoint folder; its files should be in the page cache

Each process imports what it needs, loads the checkpoint and computes the token that follows a prompt of eight.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
OURS = """
import sys; sys.path.insert(0, {root!r})
from minisgl.engine import Engine
engine = Engine({folder!r}, dtype="bfloat16", device={device!r}, progress=False)
print(int(engine.logits([[1, 2, 3, 4, 5, 6, 7, 8]])[0].argmax()))
"""
TRANSFORMERS = """
import torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained({folder!r}, dtype=torch.bfloat16, device_map={{"": {device!r}}})
with torch.inference_mode():
    print(int(model(torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]], device={device!r})).logits[0, -1].argmax()))
"""


def seconds(program: str, folder: Path, device: str) -> float:
    """Run a program in a new interpreter, from start to end."""
    code = program.format(root=str(ROOT), folder=str(folder), device=device)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Run both in turn and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        ours.append(seconds(OURS, arguments.folder, arguments.device))
        theirs.append(seconds(TRANSFORMERS, arguments.folder, arguments.device))
    for name, times in (("ours", ours), ("transformers", theirs)):
        print(f"{name:13} " + " ".join(f"{value:.1f}" for value in times) + f" s, median {median(times):.1f} s")
    print(f"ours / transformers: {median(ours) / median(theirs):.2f} (target: at most 0.6)")


if __name__ == "__main__":
    main()

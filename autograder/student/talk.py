"""Let a real model answer a prompt through the reference package, from a notebook whose `minisgl` is the student's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 300


def talk(prompt: str, max_new_tokens: int = 16, model: str | None = None) -> None:
    """Print `prompt` and what the model says next, or how to get a model where there is none.

    The reference runs in a process of its own, started in the course's folder, so that the student's package of the
    same name can't be imported by mistake.

    Args:
        prompt: what the model continues.
        max_new_tokens: how many tokens it may add.
        model: a checkpoint folder; the one that ``python -m minisgl fetch`` brought when left out.
    """
    if not (ROOT / "minisgl" / "models" / "config.py").is_file():
        print("This kit holds no reference model code: in chapter 04 your own package will talk.")
        return
    folder = model or fetched_model()
    if folder is None:
        print("There is no model on this machine yet. In a terminal, in the course's folder, run\n")
        print("    python -m minisgl fetch\n\n(93 MB, once) and run this cell again. The chapter works without it.")
        return
    command = [sys.executable, "-m", "minisgl", "generate", "--model", folder, "--prompt", prompt]
    command += ["--max-new-tokens", str(max_new_tokens)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    if run.returncode:
        print(f"The model could not answer: {run.stderr.strip()[-500:]}")
    else:
        print(f"{prompt} ▸{run.stdout.rstrip()}")


def fetched_model() -> str | None:
    """Return the folder of the model that ``python -m minisgl fetch`` brought, or None; nothing is downloaded."""
    cache = Path(os.environ.get("MINISGL_CACHE") or Path.home() / ".cache" / "minisgl").expanduser()
    folder = cache / "SmolLM2-135M-Instruct"
    return str(folder) if (folder / "config.json").is_file() else None

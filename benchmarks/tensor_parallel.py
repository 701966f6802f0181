"""Compare a model cut over several processes with the same model in one process.

    python benchmarks/tensor_parallel.py [--ranks 2 4] [--backend gloo|nccl] [--json]

For each number of ranks the processes load their own slices, compute logits and greedy tokens together, and every rank's
answers are compared with one process's. NCCL needs a GPU for each rank. Exits with 1 if anything differs.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing

from minisgl.checkpoint.maker import make_checkpoint
from minisgl.distributed import close_tensor_parallel, init_tensor_parallel
from minisgl.engine import Engine

# Sums over ranks add the same float32 numbers in another order.
BOUND = 1e-5
NUM_STEPS = 12
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [7], [1, 129, 64, 33, 100]]
SIZES = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    # 131 is prime: padded for every number of ranks.
    "vocab_size": 131,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
MOE = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
MODELS: dict[str, dict[str, Any]] = {
    "llama, biases everywhere": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "llama, tied": {"model_type": "llama", "tie_word_embeddings": True},
    "qwen2, 2 kv heads": {"model_type": "qwen2", "num_key_value_heads": 2},
    "qwen3, 1 kv head": {"model_type": "qwen3", "num_key_value_heads": 1},
    "qwen3_moe, 2 kv heads": {"model_type": "qwen3_moe", "num_key_value_heads": 2, **MOE},
    "qwen3_moe, a dense layer": {"model_type": "qwen3_moe", **MOE, "mlp_only_layers": [0]},
}
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}


def answers_of(folder: Path, device: torch.device) -> tuple[torch.Tensor, list[list[int]]]:
    """Return the logits, on the CPU, and the greedy tokens of one model."""
    engine = Engine(folder, device=device, progress=False)
    return engine.logits(PROMPTS).cpu(), engine.generate(PROMPTS, NUM_STEPS)


def run_rank(rank: int, size: int, backend: str, models: Path, meeting: str, out: Path) -> None:
    """Answer with every model as one rank of `size`."""
    torch.set_num_threads(1)
    device = init_tensor_parallel(rank, size, backend=backend, init_method=meeting, timeout_seconds=120)
    answers = [answers_of(models / str(index), device) for index in range(len(MODELS))]
    torch.save(answers, out / f"{rank}.pt")
    close_tensor_parallel()


def measure(ranks: int, backend: str, models: Path) -> Iterator[dict[str, Any]]:
    """Run all models over `ranks` processes and compare them with one process."""
    device = torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")
    expected = [answers_of(models / str(index), device) for index in range(len(MODELS))]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        start = time.perf_counter()
        arguments = (ranks, backend, models, f"file://{out / 'meeting'}", out)
        torch.multiprocessing.spawn(run_rank, args=arguments, nprocs=ranks)
        seconds = time.perf_counter() - start
        found = [torch.load(out / f"{rank}.pt", weights_only=True) for rank in range(ranks)]
    for index, name in enumerate(MODELS):
        logits, tokens = expected[index]
        apart = max(((answers[index][0] - logits).abs().max() / logits.abs().max()).item() for answers in found)
        is_same = all(answers[index][1] == tokens for answers in found)
        yield {
            "model": name,
            "ranks": ranks,
            "backend": backend,
            "difference": apart,
            "tokens_equal": is_same,
            "seconds_of_all": seconds,
        }


def make_models(folder: Path) -> None:
    """Write a random float32 checkpoint of every model."""
    for index, fields in enumerate(MODELS.values()):
        config = {**SIZES, "architectures": [ARCHITECTURES[fields["model_type"]]], **fields}
        make_checkpoint(folder / str(index), config, dtype="float32", seed=index)


def main() -> int:
    """Print the comparison and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], metavar="N", help="default: 2 4")
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_models(Path(folder))
        rows = [row for ranks in options.ranks for row in measure(ranks, options.backend, Path(folder))]
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"{'model':<26}{'ranks':>6}{'backend':>9}{'difference':>12}  {NUM_STEPS} tokens")
        for row in rows:
            tokens = "equal" if row["tokens_equal"] else "differ"
            print(f"{row['model']:<26}{row['ranks']:>6}{row['backend']:>9}{row['difference']:>12.1e}  {tokens}")
    return int(any(row["difference"] > BOUND or not row["tokens_equal"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

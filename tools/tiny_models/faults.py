"""Single faults of a loader or a model, injected into a checkpoint folder, and perplexity.

Each fault is a mistake that loads without an error. What it does to the perplexity says how much a
model depends on the part that it breaks.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

Tensors = dict[str, torch.Tensor]
DEFAULT_ROPE_THETA = 10000.0


def read_checkpoint(folder: Path) -> tuple[Tensors, dict]:
    """Return all tensors and the config of a checkpoint folder."""
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    return tensors, json.loads((folder / "config.json").read_text(encoding="utf-8"))


def merge_in_wrong_order(tensors: Tensors, config: dict) -> None:
    """Take k's rows before q's, as a merge in k, q, v order would."""
    for key in [key for key in tensors if ".q_proj." in key]:
        other = key.replace(".q_proj.", ".k_proj.")
        sizes = [len(tensors[key]), len(tensors[other])]
        q, k = torch.cat([tensors[other], tensors[key]]).split(sizes)
        tensors[key], tensors[other] = q.clone(), k.clone()


def swap_gate_and_up(tensors: Tensors, config: dict) -> None:
    """Exchange gate and up of every MLP and every expert."""
    for key in [key for key in tensors if ".gate_proj." in key]:
        other = key.replace(".gate_proj.", ".up_proj.")
        tensors[key], tensors[other] = tensors[other], tensors[key]


def drop_biases(tensors: Tensors, config: dict) -> None:
    """Forget the q, k and v biases."""
    for key in [key for key in tensors if key.endswith("_proj.bias")]:
        tensors[key] = torch.zeros_like(tensors[key])


def order_experts_as_strings(tensors: Tensors, config: dict) -> None:
    """Put the experts in string order: 0, 1, 10, 11, ..., 2."""
    order = sorted(range(config["num_experts"]), key=str)
    before = dict(tensors)
    for key in before:
        head, found, tail = key.partition(".experts.")
        if found:
            place, rest = tail.split(".", 1)
            tensors[key] = before[f"{head}.experts.{order[int(place)]}.{rest}"]


def forget_rope_theta(tensors: Tensors, config: dict) -> None:
    """Rotate with the library's default base instead of the config's."""
    config["rope_theta"] = DEFAULT_ROPE_THETA


def flatten_qk_norm(tensors: Tensors, config: dict) -> None:
    """Normalize q and k but leave their weights at one."""
    for key in [key for key in tensors if key.endswith(("q_norm.weight", "k_norm.weight"))]:
        tensors[key] = torch.ones_like(tensors[key])


def drop_qk_norm(model: torch.nn.Module) -> None:
    """Leave q and k as they are, without their norm."""
    for layer in model.model.layers:
        layer.self_attn.q_norm, layer.self_attn.k_norm = torch.nn.Identity(), torch.nn.Identity()


FAULTS: dict[str, Callable[[Tensors, dict], None]] = {
    "q_k_merged_in_wrong_order": merge_in_wrong_order,
    "gate_up_swapped": swap_gate_and_up,
    "rope_theta_forgotten": forget_rope_theta,
}
_OWN_FAULTS: dict[str, dict[str, Callable]] = {
    "qwen2": {"biases_dropped": drop_biases},
    "qwen3": {"qk_norm_dropped": drop_qk_norm, "qk_norm_weights_as_ones": flatten_qk_norm},
    "qwen3_moe": {
        "qk_norm_dropped": drop_qk_norm,
        "qk_norm_weights_as_ones": flatten_qk_norm,
        "experts_in_string_order": order_experts_as_strings,
    },
}


def faults_of(model_type: str) -> dict[str, Callable]:
    """Return the faults that a model of this type can have, by name."""
    return FAULTS | _OWN_FAULTS.get(model_type, {})


def load_with_fault(folder: Path, fault: Callable | None = None) -> torch.nn.Module:
    """Load a checkpoint with ``transformers`` in float32, with one fault or none."""
    if fault is None or fault is drop_qk_norm:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        if fault is not None:
            fault(model)
        return model
    tensors, config = read_checkpoint(folder)
    fault(tensors, config)
    with tempfile.TemporaryDirectory() as broken:
        for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(folder / name, broken)
        (Path(broken) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        contiguous = {key: tensor.clone().contiguous() for key, tensor in tensors.items()}
        save_file(contiguous, Path(broken) / "model.safetensors", metadata={"format": "pt"})
        return AutoModelForCausalLM.from_pretrained(broken, dtype=torch.float32).eval()


@torch.inference_mode()
def perplexity(model: torch.nn.Module, stories: list[list[int]], batch_size: int = 16) -> float:
    """Return exp of the mean next-token loss.

    Args:
        stories: Token ids of each story, begin and end tokens included.
    """
    total, count = 0.0, 0
    ordered = sorted(stories, key=len)
    for at in range(0, len(ordered), batch_size):
        batch = ordered[at : at + batch_size]
        width = max(map(len, batch))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in batch], device=model.device)
        labels = torch.tensor([row + [-100] * (width - len(row)) for row in batch], device=model.device)
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float()
        total += F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum").item()
        count += sum(len(row) - 1 for row in batch)
    return math.exp(total / count)

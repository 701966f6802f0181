"""Train one model: next-token loss, AdamW, warm-up and a cosine."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType

import numpy as np
import torch
import torch.nn.functional as F
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

from tiny_models.architectures import build_model, compute_all_experts

WARMUP_STEPS = 100
WEIGHT_DECAY = 0.1
FINAL_SHARE = 0.03


def parameter_groups(model: torch.nn.Module) -> list[dict]:
    """Split the parameters: weight decay for matrices only, none for norms and biases."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]


def rate_share(step: int, num_steps: int) -> float:
    """Return the share of the peak learning rate at a step."""
    warmup = min(WARMUP_STEPS, num_steps // 10 + 1)
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, num_steps - warmup)
    return FINAL_SHARE + (1 - FINAL_SHARE) * 0.5 * (1 + math.cos(math.pi * progress))


def layer_balance(config, router_logits: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the mean over the layers of each one's own load-balancing loss, at best ``num_experts_per_tok``."""
    sizes = config.num_experts, config.num_experts_per_tok
    return sum(load_balancing_loss_func((logits,), *sizes) for logits in router_logits) / len(router_logits)


def make_loss(model: torch.nn.Module, balance_each_layer: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from token ids [batch_size, window] to the loss to minimize.

    A MoE's load-balancing loss is added: the library's own, over all layers together, or each layer's.
    """
    config, device_type = model.config, model.device.type
    is_moe = hasattr(config, "num_experts")

    def loss_of(ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device_type, dtype=torch.bfloat16, enabled=device_type == "cuda"):
            output = model(input_ids=ids, use_cache=False, **({"output_router_logits": True} if is_moe else {}))
        loss = F.cross_entropy(output.logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        if not is_moe:
            return loss
        balance = layer_balance(config, output.router_logits) if balance_each_layer else output.aux_loss
        return loss + config.router_aux_loss_coef * balance

    return loss_of


@contextmanager
def all_experts_at_once(model: torch.nn.Module) -> Iterator[None]:
    """Let a MoE on a GPU train with ``compute_all_experts``; leave other models as they are."""
    experts = [layer.mlp.experts for layer in model.model.layers if hasattr(layer.mlp, "experts")]
    if model.device.type != "cuda":
        experts = []
    for module in experts:
        module.forward = MethodType(compute_all_experts, module)
    yield
    for module in experts:
        del module.forward


def train_model(
    name: str,
    tokens: np.ndarray,
    starts: np.ndarray,
    *,
    num_steps: int,
    batch_size: int,
    window: int,
    learning_rate: float,
    device: str,
    seed: int = 0,
    compile_step: bool = False,
    balance_each_layer: bool = False,
) -> torch.nn.Module:
    """Train ``CONFIGS[name]`` and return it in float32 on the CPU.

    Args:
        tokens: All stories in one array (uint16); ``starts`` where each begins.
        batch_size: Windows a step; every window of ``window`` tokens begins at a story's first token.
        balance_each_layer: See ``make_loss``; evening out over all layers lets an expert of one layer fall out of use.
    """
    model = build_model(name, seed).to(device).train()
    data = torch.from_numpy(tokens.astype(np.int32)).to(device)
    begins = torch.from_numpy(starts[starts + window < len(tokens)]).to(device)
    if len(begins) == 0:
        raise ValueError(f"the corpus has {len(tokens)} tokens; a window of {window} doesn't fit: write more stories")
    loss_of = make_loss(model, balance_each_layer)
    step_loss = torch.compile(loss_of) if compile_step else loss_of
    fused = model.device.type == "cuda"
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=learning_rate, betas=(0.9, 0.95), fused=fused)
    generator = torch.Generator(device).manual_seed(seed)
    offsets, began = torch.arange(window, device=device), time.monotonic()
    with all_experts_at_once(model):
        for step in range(num_steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * rate_share(step, num_steps)
            chosen = begins[torch.randint(len(begins), (batch_size,), generator=generator, device=device)]
            loss = step_loss(data[chosen[:, None] + offsets].long())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step % 200 == 0 or step == num_steps - 1:
                print(f"{name} step {step} loss {loss.item():.3f} {time.monotonic() - began:.1f} s", flush=True)
    return model.eval().cpu()

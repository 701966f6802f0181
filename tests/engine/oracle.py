"""transformers as the oracle: build a random model, save it, and say what it answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from tests.engine.parity_cases import BASE, MOE, PROMPT_LENGTHS, Case

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

IS_TRANSFORMERS_5 = int(transformers.__version__.split(".")[0]) >= 5
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def relative_tolerance(dtype: torch.dtype) -> float:
    """Say how far logits may be apart, relative to the largest of them.

    float32: both sides do the same sums in another order at most; 1e-4 is the project's bound, 1e-6 is usual.
    Half precisions: a value that falls on the other side of a rounding step differs by one step (2**-8 for bfloat16,
    2**-11 for float16) and passes through three layers of residual sums.
    """
    return {torch.float32: 1e-4, torch.bfloat16: 4 * 2.0**-8, torch.float16: 4 * 2.0**-11}[dtype]


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Return the largest difference relative to the scale of `theirs`."""
    ours, theirs = ours.float(), theirs.float()
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def config_fields(case: Case) -> dict[str, Any]:
    """Return the case's config in the layout of the installed transformers."""
    fields = BASE | (MOE if case.model_type == "qwen3_moe" else {}) | case.fields
    if IS_TRANSFORMERS_5:
        fields["rope_parameters"] = {"rope_type": "default"} | (case.rope or {}) | {"rope_theta": case.theta}
    else:
        fields |= {"rope_theta": case.theta, "rope_scaling": case.rope and dict(case.rope)}
    return {name: value for name, value in fields.items() if value is not None}


def make_oracle(case: Case, folder: Path, seed: int = 0, **more_fields: Any) -> Any:
    """Save a random model of `case` into `folder` and return it, in the dtype to compute in.

    Norms and biases are random too: ones and zeros, which transformers starts with, would hide a norm or a bias that
    is missing. The other weights are large enough for attention to be far from uniform.
    """
    torch.manual_seed(seed)
    specials = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": None}
    config = AutoConfig.for_model(case.model_type, **{**config_fields(case), **specials, **more_fields})
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            parameter.copy_(1 + 0.3 * noise if "norm" in name else 0.3 * noise if name.endswith("bias") else noise / 5)
    model.to(DTYPES[case.stored]).save_pretrained(folder)
    return model.to(DTYPES[case.computed])


def prompts_for(case: Case, lengths: Sequence[int] = PROMPT_LENGTHS, seed: int = 1) -> list[list[int]]:
    """Return random prompts of unequal lengths."""
    generator = torch.Generator().manual_seed(seed)
    vocab_size = (BASE | case.fields)["vocab_size"]
    return [torch.randint(vocab_size, (length,), generator=generator).tolist() for length in lengths]


def fresh(model: Any) -> Any:
    """Make the model forget the longest sequence it has seen, which its dynamic RoPE remembers between calls."""
    rotary = model.model.rotary_emb
    model.model.rotary_emb = type(rotary)(config=model.config).to(model.device)
    return model


@torch.no_grad()
def logits_of(model: Any, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the oracle's logits at each prompt's last position, each prompt alone: [batch, vocab_size]."""
    return torch.stack([fresh(model)(torch.tensor([prompt])).logits[0, -1] for prompt in prompts])


@torch.no_grad()
def tokens_of(model: Any, prompts: Sequence[Sequence[int]], num_tokens: int) -> list[list[int]]:
    """Return the oracle's greedy continuations, each prompt alone."""
    answers = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        mask = torch.ones_like(ids)
        out = fresh(model).generate(ids, attention_mask=mask, max_new_tokens=num_tokens, do_sample=False)
        answers.append(out[0, len(prompt) :].tolist())
    return answers


@torch.no_grad()
def tokens_of_batch(
    model: Any, prompts: Sequence[Sequence[int]], num_tokens: int, eos_token_id: int | None = None
) -> list[list[int]]:
    """Return the oracle's greedy continuations of one left-padded batch, cut behind the first end-of-sequence token."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    out = model.generate(ids, attention_mask=mask, max_new_tokens=num_tokens, do_sample=False, pad_token_id=0)
    answers = out[:, longest:].tolist()
    return [answer[: answer.index(eos_token_id) + 1] if eos_token_id in answer else answer for answer in answers]

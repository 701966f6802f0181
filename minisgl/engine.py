"""Run a model: from a folder and token ids to logits and continuations."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch

from minisgl.attention import KVCache
from minisgl.checkpoint import open_checkpoint, standard_tensors
from minisgl.core import Batch, forward_context
from minisgl.distributed import check_tp_size, get_tp_info, local_num_kv_heads
from minisgl.errors import CheckpointError, MinisglError
from minisgl.layers import set_rope_device
from minisgl.layers.rope_types import longest_sequence
from minisgl.models import ModelConfig, create_model, load_weight
from minisgl.utils import cached_load_hf_config, download_hf_weight, dtype_name, parse_dtype, torch_dtype
from minisgl.utils.generation_config import eos_token_ids_of
from minisgl.utils.hf_config import HFConfig


class Engine:
    """Hold a loaded model and answer for batches of token lists.

    With a tp size above 1 (see minisgl.distributed), every rank builds its own Engine, makes the same calls, and gets
    the same answers.

    Attributes:
        config: what the model's config.json says.
        model: the model, with its weights.
        dtype: of weights, activations and KV cache.
        device: where they are.
        eos_token_ids: token ids that end a continuation; empty if the folder names none.
        max_seq_len: tokens that a prompt and its continuation may have together, or None for no limit.
    """

    def __init__(
        self,
        model_path: str | Path,
        dtype: torch.dtype | str | None = None,
        device: torch.device | str | None = None,
        *,
        progress: bool = True,
    ) -> None:
        """Read the config, build the model without memory, then stream the weights into it.

        Args:
            model_path: a model folder, a hub id, or the name of a built-in tiny model.
            dtype: what to convert the weights to, one by one as they come; None for the dtype of the files.
            device: where to run; None for this rank's GPU where there is one, else the CPU.
            progress: whether the primary rank shows a progress bar on stderr.

        Raises:
            ConfigError: the config can't be read or isn't computed here.
            CheckpointError: the files are damaged, incomplete, or of several dtypes while `dtype` is None.
            MinisglError: there is no such model, or it can't be divided over the ranks.
        """
        folder = download_hf_weight(model_path)
        hf_config = cached_load_hf_config(folder)
        self.config = ModelConfig.from_hf(hf_config)
        check_tp_size(self.config, get_tp_info().size)
        self.dtype = _stored_dtype(folder, hf_config) if dtype is None else parse_dtype(dtype)
        self.device = _default_device() if device is None else torch.device(device)
        self.eos_token_ids = eos_token_ids_of(folder, hf_config)
        self.max_seq_len = longest_sequence(self.config.rotary_config)
        self._local_num_kv_heads = local_num_kv_heads(self.config.num_qo_heads, self.config.num_kv_heads)
        set_rope_device(self.device)
        with torch.device("meta"), torch_dtype(self.dtype):
            self.model = create_model(self.config)
        weights = load_weight(folder, self.device, progress=progress)
        self.model.load_state_dict({name: tensor.to(self.dtype) for name, tensor in weights})

    @torch.no_grad()
    def logits(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Score every token of the vocabulary as the next one of each prompt.

        Args:
            prompts: token ids of each request; lengths may differ.

        Returns:
            [batch_size, vocab_size] in the engine's dtype, for the last position of each prompt.

        Raises:
            MinisglError: a prompt is empty, too long, or has a token id outside the vocabulary.
        """
        batch = Batch.prefill(self._checked(prompts, num_new_tokens=0), self.device)
        with forward_context(batch):
            return self.model.forward()

    @torch.no_grad()
    def generate(
        self, prompts: Sequence[Sequence[int]], max_new_tokens: int, *, ignore_eos: bool = False
    ) -> list[list[int]]:
        """Continue each prompt greedily: always the token with the largest logit.

        A continuation ends with the first of `eos_token_ids`, which it includes, or after `max_new_tokens`: the
        same tokens as transformers' `generate(do_sample=False)` adds to each prompt, without its padding.

        Args:
            prompts: token ids of each request; lengths may differ.
            max_new_tokens: at most this many tokens for each request.
            ignore_eos: go on after an end-of-sequence token.

        Returns:
            The new tokens of each request, in the order of `prompts`.

        Raises:
            MinisglError: a prompt is empty, too long together with its continuation, or has a token id outside the
                vocabulary; or `max_new_tokens` is not an int from 0.
        """
        if type(max_new_tokens) is not int or max_new_tokens < 0:
            raise MinisglError(f"max_new_tokens is {max_new_tokens!r}; expected an int from 0.")
        batch = Batch.prefill(self._checked(prompts, max_new_tokens), self.device)
        answers: list[list[int]] = [[] for _ in prompts]
        if max_new_tokens == 0:
            return answers
        stop_at = frozenset() if ignore_eos else self.eos_token_ids
        cache = self._new_cache(batch, max_new_tokens)
        running = list(range(batch.size))
        while True:
            with forward_context(batch, cache):
                next_tokens = self.model.forward().argmax(dim=-1)
            for request, token in zip(running, next_tokens.tolist(), strict=True):
                answers[request].append(token)
            going_on = [slot for slot, request in enumerate(running) if not _ended(answers[request], stop_at)]
            if not going_on or len(answers[running[going_on[0]]]) == max_new_tokens:
                return answers
            if len(going_on) < len(running):
                cache.keep(going_on)
                next_tokens = next_tokens[going_on]
                running = [running[slot] for slot in going_on]
            batch = Batch.decode(next_tokens, [batch.seq_lens[slot] for slot in going_on])

    def _new_cache(self, batch: Batch, max_new_tokens: int) -> KVCache:
        """Take room for the longest prompt and its continuation, for every request."""
        return KVCache(
            num_layers=self.config.num_layers,
            num_requests=batch.size,
            num_kv_heads=self._local_num_kv_heads,
            # The last new token is never read by a later one.
            capacity=max(batch.seq_lens) + max_new_tokens - 1,
            head_dim=self.config.head_dim,
            dtype=self.dtype,
            device=self.device,
        )

    def _checked(self, prompts: Sequence[Sequence[int]], num_new_tokens: int) -> list[list[int]]:
        """Return the prompts as lists of ints, or refuse all that is wrong with them at once."""
        if isinstance(prompts, str) or len(prompts) == 0:
            raise MinisglError(f"prompts is {prompts!r}; expected a list with at least one list of token ids.")
        checked = []
        problems = []
        for index, prompt in enumerate(prompts):
            tokens = _as_token_ids(prompt)
            problem = self._problem_of(prompt, tokens, num_new_tokens)
            if problem:
                problems.append(f"prompt {index} {problem}")
            checked.append(tokens or [])
        if problems:
            limit = "" if self.max_seq_len is None else f", at most {self.max_seq_len} tokens with its continuation"
            raise MinisglError(
                f"{'; '.join(problems)}. Expected each prompt to be a non-empty list of token ids "
                f"from 0 to {self.config.vocab_size - 1}{limit}. Use the model's own tokenizer and shorten the text."
            )
        return checked

    def _problem_of(self, prompt: object, tokens: list[int] | None, num_new_tokens: int) -> str | None:
        if tokens is None:
            return f"is {prompt!r}, not a list of token ids" if isinstance(prompt, str | int) else "holds no token ids"
        if not tokens:
            return "is empty"
        outside = sorted({token for token in tokens if not 0 <= token < self.config.vocab_size})
        if outside:
            return f"has token ids outside the vocabulary: {', '.join(map(str, outside[:5]))}"
        if self.max_seq_len is not None and len(tokens) + num_new_tokens > self.max_seq_len:
            return f"is too long: {len(tokens)} tokens and {num_new_tokens} new ones"
        return None


def _as_token_ids(prompt: object) -> list[int] | None:
    """Return a prompt (a list, an array, a tensor) as a list of ints, or None if it isn't one."""
    if isinstance(prompt, str | bytes):
        return None
    try:
        return [operator.index(token) for token in prompt]  # type: ignore[attr-defined]
    except TypeError:
        return None


def _ended(answer: list[int], stop_at: frozenset[int]) -> bool:
    return answer[-1] in stop_at


def _stored_dtype(folder: Path, hf_config: HFConfig) -> torch.dtype:
    """Return the dtype of the files, and say so where config.json names another one.

    Raises:
        CheckpointError: the files hold tensors of several dtypes.
    """
    tensors = standard_tensors(open_checkpoint(folder))
    example: dict[torch.dtype, str] = {}
    for key, tensor in tensors.items():
        example.setdefault(tensor.dtype, key)
    if len(example) > 1:
        found = ", ".join(sorted(f"{dtype_name(dtype)} ({key})" for dtype, key in example.items()))
        raise CheckpointError(
            f"{folder} holds tensors of several dtypes: {found}; expected one. "
            "Say which one to compute in with dtype=, such as dtype='bfloat16'."
        )
    stored = next(iter(example))
    promised = getattr(hf_config, "dtype", None) or getattr(hf_config, "torch_dtype", None)
    if promised is not None and str(promised).removeprefix("torch.") != dtype_name(stored):
        warnings.warn(
            f"{folder / 'config.json'} says {str(promised).removeprefix('torch.')} but the files hold "
            f"{dtype_name(stored)}; computing in {dtype_name(stored)}. Pass dtype= for another one.",
            stacklevel=3,
        )
    return stored


def _default_device() -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())

"""Turn a quantized GGUF file into an ordinary checkpoint folder.

transformers unpacks the 4-bit blocks and brings names and row order of Llama's q and k back to those of Hugging Face
checkpoints. The values are kept in float32: a block's values are `scale * number + minimum` with a scale and a minimum in
float16, which neither bfloat16 (up to 1.4e-3 of a tensor's norm is lost) nor float16 (2e-4) can hold.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The embedding alone has 113 MB; about five shards show what loading a model of several files means.
MAX_SHARD_SIZE = "120MB"

_SPECIAL_TOKENS = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
}


def save_as_safetensors(gguf: Path, folder: Path, progress: bool) -> None:
    """Write config.json, safetensors shards with their index, and the tokenizer of `gguf` into `folder`.

    Args:
        gguf: a GGUF file of SmolLM2.
        folder: where to write; must exist.
        progress: whether transformers shows its progress bars on stderr.
    """
    with _quiet_transformers(), _progress_bars(progress):
        _save_model(gguf, folder)
        _save_tokenizer(gguf, folder)


def _save_model(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, **_dequantize_option()
    )
    rope_theta = _rope_theta(model.config)
    model.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)
    # transformers 4 reads the base from the top level only, transformers 5 from rope_parameters: write both.
    _edit_json(
        folder / "config.json",
        {"rope_theta": rope_theta},
        drop=("_model_name_or_path", "_name_or_path", "quantization_config"),
    )


def _dequantize_option() -> dict[str, Any]:
    """Ask transformers 5 for plain weights; transformers 4 knows nothing else."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _rope_theta(hf_config: Any) -> float:
    parameters = getattr(hf_config, "rope_parameters", None)
    return float(parameters["rope_theta"] if parameters else hf_config.rope_theta)


def _save_tokenizer(gguf: Path, folder: Path) -> None:
    """Save the tokenizer so that both lines of transformers read it and neither puts a token before the text."""
    from tokenizers import decoders, processors
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    converted = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    backend = converted.backend_tokenizer
    # The file says add_bos_token false; transformers 4 adds one all the same, in its post-processor.
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, clean_up_tokenization_spaces=False, model_max_length=8192, **_SPECIAL_TOKENS
    )
    tokenizer.chat_template = converted.chat_template
    tokenizer.save_pretrained(folder)
    _edit_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}, drop=())


def _edit_json(file: Path, fields: dict[str, Any], drop: tuple[str, ...]) -> None:
    content = {name: value for name, value in json.loads(file.read_text()).items() if name not in drop}
    file.write_text(json.dumps(content | fields, indent=2, sort_keys=True) + "\n")


@contextmanager
def _progress_bars(shown: bool) -> Iterator[None]:
    """Let transformers show its progress bars, or not."""
    from transformers.utils import logging as transformers_logging

    if shown:
        yield
        return
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.enable_progress_bar()


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Keep transformers' remarks off stderr; what matters becomes an error of our own."""
    logger = logging.getLogger("transformers")
    before = logger.level
    if before >= logging.ERROR:  # quiet already; to set a level empties the cache of every logger
        yield
        return
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)

"""Load a model and print its greedy continuation of a text."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from minisgl.cli.arguments import positive_int
from minisgl.errors import MinisglError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the text, and how far and where to go on."""
    parser.add_argument("--model", required=True, metavar="PATH", help="model folder, hub id, or tiny model's name")
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="the text to continue")
    parser.add_argument("--max-new-tokens", type=positive_int, default=64, metavar="N", help="default: 64")
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], help="default: that of the files")
    parser.add_argument("--device", metavar="DEVICE", help="such as cpu or cuda:0; default: a GPU if there is one")


def run(arguments: argparse.Namespace) -> None:
    """Print the continuation, and nothing else, on stdout.

    Raises:
        MinisglError: the model or its tokenizer can't be loaded, or the text is empty or too long.
    """
    from minisgl.engine import Engine
    from minisgl.models.config import ModelConfig
    from minisgl.utils import cached_load_hf_config, download_hf_weight

    folder = download_hf_weight(arguments.model)
    ModelConfig.from_hf(cached_load_hf_config(folder))  # a folder of something else is named as such, whatever else it lacks
    tokenizer = _load_tokenizer(folder)
    prompt = tokenizer(arguments.prompt).input_ids
    if not prompt:  # before the weights are read, which may take minutes
        raise MinisglError(f"--prompt {arguments.prompt!r} gives no token with this model; expected some text to continue.")
    engine = Engine(folder, dtype=arguments.dtype, device=arguments.device)
    (answer,) = engine.generate([prompt], arguments.max_new_tokens)
    print(tokenizer.decode(answer, skip_special_tokens=True))


def _load_tokenizer(folder: Path) -> Any:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # transformers raises many types here, down to ImportError
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise MinisglError(
            f"{folder} has no tokenizer that transformers can read ({reason}); expected tokenizer.json beside "
            "config.json. Download the whole folder of the model."
        ) from error

"""Recognize what a folder is that isn't a model in the Hugging Face safetensors layout, and say what would make it one."""

import os
from collections.abc import Callable
from pathlib import Path

from minisgl.checkpoint._fault import listed

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_CONVERT = "AutoModelForCausalLM.from_pretrained(folder{}).save_pretrained(new_folder)"


def _ending(names: list[str], *endings: str) -> list[str]:
    return [name for name in names if name.endswith(endings)]


def _adapter(names: list[str], folder: Path) -> str | None:
    marks = [name for name in names if name in ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")]
    return f"an adapter's folder ({listed(marks)}): it holds changes to a model, not a model" if marks else None


def _hub_cache(names: list[str], folder: Path) -> str | None:
    if {"refs", "snapshots"} <= set(names) or {"blobs", "snapshots"} <= set(names):
        return "the top of a model in the hub's cache, not one of its snapshots"
    models = [name for name in names if name.startswith("models--")]
    return f"the hub's cache of models ({listed(models)}), not one model" if models else None


def _interrupted(names: list[str], folder: Path) -> str | None:
    beside = folder / ".cache" / "huggingface" / "download"
    unfinished = _ending(names, ".incomplete", ".part", ".crdownload", ".aria2") + _ending(_names(beside), ".incomplete")
    return f"an interrupted download ({listed(unfinished)})" if unfinished else None


def _gguf(names: list[str], folder: Path) -> str | None:
    return f"only GGUF files: {listed(_ending(names, '.gguf'))}" if _ending(names, ".gguf") else None


def _original_llama(names: list[str], folder: Path) -> str | None:
    parts = [name for name in names if name.startswith("consolidated.") and name.endswith((".pth", ".safetensors"))]
    if parts and "params.json" in names:
        return f"weights in the original layout of their maker: {listed(['params.json', *parts])}"
    return None


def _distributed(names: list[str], folder: Path) -> str | None:
    parts = _ending(names, ".distcp") or [name for name in names if name.startswith(("global_step", "zero_pp_rank_"))]
    return f"a distributed training checkpoint: {listed(parts)}" if parts else None


def _pipeline(names: list[str], folder: Path) -> str | None:
    return "a pipeline of several models (model_index.json)" if "model_index.json" in names else None


def _pickled(names: list[str], folder: Path) -> str | None:
    pickles = [name for name in _ending(names, *_PICKLES) if name != "training_args.bin"]
    return f"only pickled weights, which are never loaded here: {listed(pickles)}" if pickles else None


def _one_level_down(names: list[str], folder: Path) -> str | None:
    below = [name for name in names if (folder / name / "config.json").is_file()]
    return f"no model by itself, but there is one in each of {listed(below)}" if below else None


# Asked in this order: what it looks like, and what to do then.
_KINDS: tuple[tuple[Callable[[list[str], Path], str | None], str], ...] = (
    (_adapter, "merge it into its base model (peft: merge_and_unload, then save_pretrained) and load the result"),
    (_hub_cache, "pass the model's folder below snapshots/, or the hub id"),
    (_interrupted, "start the download again and let it finish"),
    (_pipeline, "pass the folder of its language model"),
    (_original_llama, "get the model's version for transformers, which has a config.json and model*.safetensors"),
    (
        _gguf,
        "get the model's safetensors files, or convert with transformers: " + _CONVERT.format(", gguf_file=..."),
    ),
    (_distributed, "merge it with the tool that wrote it (torch.distributed.checkpoint, DeepSpeed's zero_to_fp32.py)"),
    (_pickled, "convert them once, where you trust them, with transformers: " + _CONVERT.format("")),
    (_one_level_down, "pass that folder"),
)


def what_else(folder: Path) -> tuple[str, str] | None:
    """Say what a folder without a usable config.json or without safetensors files is, and what to do.

    Returns:
        What was found and the advice, for an error; None where nothing is recognized. Nothing but names is looked at.
    """
    names = _names(folder)
    for found_in, advice in _KINDS:
        if (found := found_in(names, folder)) is not None:
            return found, advice
    return None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []

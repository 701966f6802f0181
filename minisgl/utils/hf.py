"""Find a Hugging Face model folder, by path, name or hub id, and read its config."""

from __future__ import annotations

import copy
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from minisgl.errors import MinisglError
from minisgl.utils.hf_config import build_hf_config, read_config_file

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TINY_NAME = re.compile(r"tiny-[a-z0-9-]+")


def cached_load_hf_config(path: str | Path) -> PretrainedConfig:
    """Read a model's config.json as transformers' config class of its model type.

    What the file doesn't say and can't be guessed (a size) is None in the result, instead of that class's default;
    a missing `num_key_value_heads` is `num_attention_heads`. A config of another architecture comes back as a bare
    PretrainedConfig with the file's own fields.

    Args:
        path: a model folder, the name of a built-in tiny model, or a hub id (of which only JSON files are fetched).

    Returns:
        A copy that may be changed; the file is read again only after it has changed.

    Raises:
        ConfigError: config.json is missing, can't be read, isn't JSON, isn't an object, or contradicts itself.
        MinisglError: the folder doesn't exist and can't be downloaded.
    """
    file = (resolve_model_folder(path, json_only=True) / "config.json").resolve()
    return copy.deepcopy(_load(file, _stamp(file)))


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes with the file; None where it can't be told, and reading it will say why."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=32)
def _load(file: Path, stamp: tuple[int, int] | None) -> PretrainedConfig:
    """Build the config of `file`; `stamp` makes a changed file another cache entry."""
    return build_hf_config(read_config_file(file), file)


def download_hf_weight(path_or_hub_id: str | Path) -> Path:
    """Return a model's folder, after downloading it where it is a hub id.

    Only safetensors and JSON files are fetched: no pickles, no code.

    Args:
        path_or_hub_id: a local folder (returned as it is), the name of a built-in tiny model, or a hub id.

    Raises:
        MinisglError: there is no such folder, and it isn't a model that can be downloaded.
    """
    return resolve_model_folder(path_or_hub_id, json_only=False)


def resolve_model_folder(path_or_hub_id: str | Path, json_only: bool) -> Path:
    """Return a model's folder; of a hub id, download it (only its JSON files if `json_only`).

    Raises:
        MinisglError: there is no such folder, and it isn't a model that can be downloaded.
    """
    name = str(path_or_hub_id)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise MinisglError(
            f"{folder} is a file; expected a model folder with config.json and safetensors files. Pass the folder."
        )
    if _TINY_NAME.fullmatch(name) and find_spec("minisgl.tiny_models") is not None:
        from minisgl.tiny_models import tiny_model_path

        return Path(tiny_model_path(name))
    if not _HUB_ID.fullmatch(name):
        raise MinisglError(
            f"there is no folder {name!r}; expected a model folder or a hub id such as Qwen/Qwen3-0.6B. "
            "Check the path, or run `python -m minisgl fetch` for a small model and its folder."
        )
    return _download(name, ["*.json"] if json_only else ["*.json", "*.safetensors"])


def _download(hub_id: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # the hub client's errors have no common base that both of its lines share
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise MinisglError(
            f"there is no folder {hub_id!r}, and the hub model of that name could not be downloaded: {reason}. "
            "Expected a model folder or a reachable hub id. Check the spelling and the network, or use a local folder."
        ) from error

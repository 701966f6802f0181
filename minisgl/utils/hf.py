"""Find a Hugging Face model folder, by path, name or hub id, and read its config."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from minisgl.checkpoint._fault import quoted
from minisgl.errors import MinisglError
from minisgl.utils.hf_config import HFConfig, build_hf_config, read_config_file

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TINY_NAME = re.compile(r"tiny-[a-z0-9-]+")


def cached_load_hf_config(path: str | Path) -> HFConfig:
    """Read a model's config.json, as an object with the attribute names of transformers' config classes.

    What the file doesn't say has the default of transformers' class for the architecture, except sizes, which can't be
    guessed: those are None. A missing `num_key_value_heads` is `num_attention_heads`. RoPE's fields stay in the layout of
    the file. A config of another architecture comes back with just the file's own fields.

    Fields that nobody knows are named in one warning. The file is read anew by each call (the name is older than the
    reader, which takes a fraction of a millisecond), so the result may be changed, and a changed file is never missed.

    Args:
        path: a model folder, the name of a built-in tiny model, or a hub id (of which only JSON files are fetched).

    Raises:
        ConfigError: config.json is missing or can't be trusted, contradicts itself, or turns on what isn't computed here.
        MinisglError: the folder doesn't exist and can't be downloaded.
    """
    file = resolve_model_folder(path, json_only=True) / "config.json"
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
    if (folder := _local_folder(name)) is not None:
        return folder
    if _TINY_NAME.fullmatch(name) and find_spec("minisgl.tiny_models") is not None:
        from minisgl.tiny_models import tiny_model_path

        return Path(tiny_model_path(name))
    if not _HUB_ID.fullmatch(name):
        raise MinisglError(
            f"there is no folder {quoted(name)}; expected a model folder or a hub id such as Qwen/Qwen3-0.6B. "
            "Check the path, or run `python -m minisgl fetch` for a small model and its folder."
        )
    return _download(name, ["*.json"] if json_only else ["*.json", "*.safetensors"])


def _local_folder(name: str) -> Path | None:
    """Return the folder of this name, or None where nothing has it.

    Raises:
        MinisglError: it is a file, or a part of its path can't be entered.
    """
    if not name:
        return None  # as a path this would be the current folder
    try:
        folder = Path(name).expanduser()
        if folder.is_dir():
            return folder
        exists = folder.exists()
    except PermissionError:
        raise MinisglError(
            f"{quoted(name)} can't be looked at (permission denied); expected a readable model folder. "
            "Check the permissions of the folders in its path."
        ) from None
    except (OSError, RuntimeError, ValueError):  # too long a name, no such user's home, a zero byte
        return None
    if exists:
        raise MinisglError(
            f"{folder} is a file; expected a model folder with config.json and safetensors files. Pass the folder."
        )
    return None


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

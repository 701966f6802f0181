"""Four small trained checkpoints, one an architecture, that travel with the package.

Each is an ordinary Hugging Face folder of several shard files; its README.md is its model card.
``tools/train_tiny_models.py`` made them.
"""

from pathlib import Path

from minisgl.errors import MinisglError

TINY_MODELS = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe")


def tiny_model_path(name: str) -> Path:
    """Return the folder of one of ``TINY_MODELS``.

    Raises:
        MinisglError: If there is no tiny model of that name, or its files were not installed.
    """
    if name not in TINY_MODELS:
        raise MinisglError(
            f"there is no tiny model named {name!r}; expected one of {', '.join(TINY_MODELS)}; "
            "give one of these names, or the path of a model folder"
        )
    folder = Path(__file__).resolve().parent / name
    if not (folder / "config.json").is_file():
        raise MinisglError(
            f"the files of {name} are not in {folder}; expected config.json and its shards there; "
            "install the package again, from a complete clone or wheel"
        )
    return folder

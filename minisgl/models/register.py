"""Find the model class that a config names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minisgl.errors import ConfigError
from minisgl.models.decoder import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM

if TYPE_CHECKING:
    from minisgl.models.base import BaseLLMModel
    from minisgl.models.config import ModelConfig

MODEL_CLASSES = {
    "LlamaForCausalLM": LlamaForCausalLM,
    "Qwen2ForCausalLM": Qwen2ForCausalLM,
    "Qwen3ForCausalLM": Qwen3ForCausalLM,
    "Qwen3MoeForCausalLM": Qwen3MoeForCausalLM,
}


def create_model(config: ModelConfig) -> BaseLLMModel:
    """Build the model that ``config.architectures[0]`` names, with uninitialized parameters.

    Build it under ``torch.device("meta")`` to take no memory, and under ``torch_dtype(dtype)`` to give
    its parameters the checkpoint's dtype.

    Raises:
        ConfigError: The architecture isn't one of the known ones, which are listed.
    """
    architecture = config.architectures[0] if config.architectures else None
    if architecture not in MODEL_CLASSES:
        raise ConfigError(
            f"architecture {architecture!r} is not supported. Expected one of {', '.join(sorted(MODEL_CLASSES))}. "
            f"Choose a checkpoint of one of these."
        )
    return MODEL_CLASSES[architecture](config)

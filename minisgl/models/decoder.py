"""One decoder for four architectures.

They differ in three switches of the config: biases on q, k and v (``attention_bias``), QK-norm
(``has_qk_norm``), and experts in the place of the dense MLP (``is_sparse_layer``).
Shapes: T tokens of the whole batch, laid end to end; H hidden_size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minisgl.core import get_global_ctx
from minisgl.layers import BaseOP, OPList, ParallelLMHead, RMSNorm, VocabParallelEmbedding
from minisgl.models.base import BaseLLMModel
from minisgl.models.utils import GatedMLP, MoEMLP, RopeAttn

if TYPE_CHECKING:
    import torch

    from minisgl.models.config import ModelConfig


class DecoderLayer(BaseOP):
    """Add attention and then an MLP to the residual stream, each after a norm."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = RopeAttn(config, layer_id)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MoEMLP(config) if config.is_sparse_layer(layer_id) else GatedMLP(config)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Map [T, H] to [T, H]."""
        normed = self.input_layernorm.forward(hidden_states)
        hidden_states = hidden_states + self.self_attn.forward(normed)
        normed = self.post_attention_layernorm.forward(hidden_states)
        return hidden_states + self.mlp.forward(normed)


class DecoderModel(BaseOP):
    """Turn token ids into final hidden states: embedding, layers, last norm."""

    def __init__(self, config: ModelConfig) -> None:
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.layers = OPList([DecoderLayer(config, layer_id) for layer_id in range(config.num_layers)])
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Map token ids [T] (int64) to hidden states [T, H]."""
        hidden_states = self.embed_tokens.forward(input_ids)
        for layer in self.layers.op_list:
            hidden_states = layer.forward(hidden_states)
        return self.norm.forward(hidden_states)


class CausalLM(BaseLLMModel):
    """Put an LM head on the decoder. With tied embeddings the head uses the embedding's weight."""

    def __init__(self, config: ModelConfig) -> None:
        self.model = DecoderModel(config)
        self.lm_head = ParallelLMHead(
            config.vocab_size,
            config.hidden_size,
            tied_embedding=self.model.embed_tokens if config.tie_word_embeddings else None,
        )

    def forward(self) -> torch.Tensor:
        """Compute logits [batch_size, vocab_size] for the global context's batch."""
        hidden_states = self.model.forward(get_global_ctx().batch.input_ids)
        return self.lm_head.forward(hidden_states)


class LlamaForCausalLM(CausalLM):
    """Llama and what shares its architecture (SmolLM2, TinyLlama, CodeLlama): all three switches off."""


class Qwen2ForCausalLM(CausalLM):
    """Qwen2 and Qwen2.5: biases on q, k and v."""


class Qwen3ForCausalLM(CausalLM):
    """Qwen3: QK-norm in the place of Qwen2's biases."""


class Qwen3MoeForCausalLM(CausalLM):
    """Qwen3-MoE: QK-norm, and experts in most layers or all."""

"""Save a trained model as an ordinary Hugging Face folder: config, shards with an index, tokenizer."""

import json
from pathlib import Path

import torch
from huggingface_hub import save_torch_state_dict
from tokenizers import Tokenizer

from tiny_models.architectures import CONFIGS
from tiny_models.text_tokenizer import BOS_ID, EOS_ID, save_tokenizer

NUM_SHARDS = 4


def checkpoint_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the model's tensors as bfloat16 under the keys that Hub checkpoints use.

    Packed experts become one tensor an expert and projection; a tied head is left out.
    """
    tensors = {}
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        tensor = tensor.to(torch.bfloat16)
        head, found, packed = key.partition(".experts.")
        if not found:
            tensors[key] = tensor
            continue
        for expert, weight in enumerate(tensor):
            halves = dict(zip(("gate_proj", "up_proj"), weight.chunk(2), strict=True))
            for part, value in (halves if packed == "gate_up_proj" else {"down_proj": weight}).items():
                tensors[f"{head}.experts.{expert}.{part}.weight"] = value.contiguous()
    # In sorted order, as many Hub checkpoints are: k, o, q, v, so that a shard's end often falls between q, k and v.
    return {key: tensors[key].clone() for key in sorted(tensors)}


def save_model(model: torch.nn.Module, name: str, tokenizer: Tokenizer, folder: Path) -> None:
    """Write everything of one model but its card."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.safetensors"), *folder.glob("*.index.json")]:
        old.unlink()
    tensors = checkpoint_tensors(model)
    num_bytes = sum(tensor.nbytes for tensor in tensors.values())
    # The splitter opens a new file before one would overflow, hence a little room in each.
    room = max(tensor.nbytes for tensor in tensors.values())
    save_torch_state_dict(tensors, folder, max_shard_size=num_bytes // NUM_SHARDS + room // 4)
    for shard in folder.glob("*.safetensors"):
        shard.chmod(0o644)  # the library writes files that only their owner may read
    config = CONFIGS[name]
    _write_json(folder / "config.json", config)
    generation = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "pad_token_id": EOS_ID, "do_sample": False}
    _write_json(folder / "generation_config.json", generation)
    save_tokenizer(tokenizer, folder)


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

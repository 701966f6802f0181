"""The tokenizer that the four models share: byte-level BPE with 2048 tokens."""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCAB_SIZE = 2048
BOS, EOS = "<|begin|>", "<|end|>"
BOS_ID, EOS_ID = 0, 1


def train_tokenizer(stories: list[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Train a byte-level BPE whose encodings begin with ``BOS``."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, BOS_ID)]
    )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Save the tokenizer the way that every ``transformers`` release since 4 reads it."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": EOS,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    special = {key: value for key, value in settings.items() if key.endswith("_token")}
    (folder / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n", encoding="utf-8")


def encode_stories(tokenizer: Tokenizer, stories: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Encode stories into one flat array.

    Returns:
        Token ids (uint16, each story as BOS, text, EOS) and the offset at which each story begins (int64).
    """
    encoded = [np.array([*item.ids, EOS_ID], dtype=np.uint16) for item in tokenizer.encode_batch_fast(stories)]
    starts = np.cumsum([0] + [len(ids) for ids in encoded[:-1]])
    return np.concatenate(encoded), starts

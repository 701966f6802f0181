"""The parts of ``tools/train_tiny_models.py``: text, tokenizer, training, faults and saving."""

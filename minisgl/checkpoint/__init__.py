"""The files behind a model: open a checkpoint folder, read slices of its tensors, make checkpoints of any shape.

The maker isn't imported here, being a tool beside the loader: ``from minisgl.checkpoint.maker import make_checkpoint``.
"""

from minisgl.checkpoint.files import Checkpoint, StoredTensor, open_checkpoint
from minisgl.checkpoint.layouts import standard_tensors
from minisgl.checkpoint.reader import Filled, Piece, Reader, open_reader

__all__ = [
    "Checkpoint",
    "Filled",
    "Piece",
    "Reader",
    "StoredTensor",
    "open_checkpoint",
    "open_reader",
    "standard_tensors",
]

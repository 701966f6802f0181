"""The files behind a model: open a checkpoint folder, read slices of its tensors, make checkpoints of any shape.

The maker isn't imported here, being a tool beside the loader: ``from minisgl.checkpoint.maker import make_checkpoint``.
"""

from typing import TYPE_CHECKING

from minisgl._lazy import on_first_use
from minisgl.checkpoint.files import Checkpoint, StoredTensor, open_checkpoint
from minisgl.checkpoint.layouts import standard_tensors

if TYPE_CHECKING:
    from minisgl.checkpoint._slices import ParameterPlan, Piece
    from minisgl.checkpoint.devices import open_reader
    from minisgl.checkpoint.reader import Reader

__all__ = [
    "Checkpoint",
    "ParameterPlan",
    "Piece",
    "Reader",
    "StoredTensor",
    "open_checkpoint",
    "open_reader",
    "standard_tensors",
]
# The rest can be asked about without torch.
_HOMES = {"ParameterPlan": "_slices", "Piece": "_slices", "Reader": "reader", "open_reader": "devices"}
__getattr__ = on_first_use(__name__, _HOMES)

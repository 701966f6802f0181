"""Stream a checkpoint into the tensors that the model wants: sharded, merged, packed.

The headers of the files say what is stored where, so everything is checked and planned before a byte of
weights is read. The plan then goes parameter by parameter: allocate it, read its parts from wherever they
lie straight into place, hand it out. Only one parameter is ever under construction (a few on CUDA, to keep
the copies busy), however the checkpoint is cut into files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

import torch

from minisgl.checkpoint import Filled, Piece, Reader, StoredTensor, open_checkpoint, open_reader, standard_tensors
from minisgl.checkpoint.progress import tqdm
from minisgl.distributed import check_tp_size, get_tp_info, use_tp_info
from minisgl.errors import CheckpointError
from minisgl.models.config import ModelConfig
from minisgl.models.register import create_model
from minisgl.utils import cached_load_hf_config, div_ceil, download_hf_weight

# The dimension that tensor parallelism splits, by projection. What isn't here stays whole.
SPLIT_DIM = dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "embed_tokens", "lm_head"), 0)
SPLIT_DIM |= dict.fromkeys(("o_proj", "down_proj"), 1)

# What the model holds as one matrix, and the projections that the checkpoint stores, in row order.
MERGED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}

Shape = tuple[int, ...]


def shard_slice(key: str, shape: Shape, config: ModelConfig, tp_rank: int, tp_size: int) -> tuple[slice, ...]:
    """Say which part of a stored tensor one rank holds: one slice for each dimension.

    Of the vocabulary the last ranks may get fewer rows, or none. Ranks that outnumber the kv heads share them.
    """
    whole = tuple(slice(0, size) for size in shape)
    projection = key.split(".")[-2]
    dim = SPLIT_DIM.get(projection, len(shape))
    if dim >= len(shape):  # norms, the router, and the biases of o_proj and down_proj
        return whole
    share_index, num_shares = tp_rank, tp_size
    if projection in ("k_proj", "v_proj") and tp_size > config.num_kv_heads:
        num_shares = config.num_kv_heads
        share_index = tp_rank * num_shares // tp_size
    share = div_ceil(shape[dim], num_shares)
    start, stop = min(share_index * share, shape[dim]), min((share_index + 1) * share, shape[dim])
    return whole[:dim] + (slice(start, stop),) + whole[dim + 1 :]


def shard_tensor(key: str, tensor: torch.Tensor, config: ModelConfig, tp_rank: int, tp_size: int) -> torch.Tensor:
    """Give one rank's slice of a whole tensor: a view, or a zero-padded copy of a short vocabulary shard."""
    shard = tensor[shard_slice(key, tuple(tensor.shape), config, tp_rank, tp_size)]
    if key.split(".")[-2] in ("embed_tokens", "lm_head"):
        num_missing_rows = div_ceil(tensor.shape[0], tp_size) - shard.shape[0]
        if num_missing_rows:
            return torch.nn.functional.pad(shard, (0, 0, 0, num_missing_rows))
    return shard


def parts_of(param_name: str, shape: Shape, config: ModelConfig) -> list[tuple[str, Shape]]:
    """List the checkpoint's tensors that make up one parameter, in row order, with their whole shapes.

    ``shape`` is the parameter's at one rank: [rows], [rows, columns] or [num_experts, rows, columns].
    """
    if ".experts." in param_name:
        path, merged = param_name.rsplit(".", 1)
        projections = MERGED.get(merged, (merged,))
        part_shape = (shape[1] // len(projections), shape[2])
        experts = range(config.num_experts)
        return [(f"{path}.{expert}.{name}.weight", part_shape) for expert, name in product(experts, projections)]
    stem, kind = param_name.rsplit(".", 1)
    path, merged = stem.rsplit(".", 1) if "." in stem else ("", stem)
    if merged not in MERGED:
        return [(param_name, shape)]
    rows = [shape[0] // 2] * 2
    if merged == "qkv_proj":
        rows = [heads * config.head_dim for heads in (config.num_qo_heads, config.num_kv_heads, config.num_kv_heads)]
    return [(f"{path}.{name}.{kind}", (num_rows, *shape[1:])) for name, num_rows in zip(MERGED[merged], rows)]


def check_complete(stored: dict[str, StoredTensor], wanted: dict[str, list[tuple[str, Shape]]]) -> None:
    """Refuse a checkpoint that isn't exactly the wanted parts of each parameter; report all that is wrong.

    Raises:
        CheckpointError: A part is missing, unknown or of the wrong shape, or a parameter's parts differ in dtype.
    """
    wanted_shapes = {key: shape for parts in wanted.values() for key, shape in parts}
    problems = [f"{key} in {stored[key].file} is unknown to the model" for key in stored.keys() - wanted_shapes.keys()]
    for param_name, parts in wanted.items():
        found = [stored[key] for key, _ in parts if key in stored]
        problems += [f"{key} is missing, a part of {param_name}" for key, _ in parts if key not in stored]
        dtypes = {str(tensor.dtype) for tensor in found}
        if len(dtypes) > 1:
            problems.append(f"{param_name} has parts of different dtypes: {', '.join(sorted(dtypes))}")
        for key, shape in parts:
            if (tensor := stored.get(key)) and tensor.shape != shape:
                problems.append(f"{key} in {tensor.file} has shape {list(tensor.shape)}, expected {list(shape)}")
    if problems:
        shown = sorted(problems)[:20] + ["…"] * (len(problems) > 20)
        raise CheckpointError(
            f"the checkpoint and its config disagree in {len(problems)} places: {'; '.join(shown)}. Expected exactly "
            f"the tensors that config.json describes. Download or convert the checkpoint again."
        )


def model_shapes(config: ModelConfig, tp_rank: int, tp_size: int) -> dict[str, Shape]:
    """Ask a model on the meta device, which takes no memory, for the shapes of one rank's parameters."""
    with use_tp_info(tp_rank, tp_size), torch.device("meta"):
        return {name: tuple(param.shape) for name, param in create_model(config).state_dict().items()}


@dataclass(frozen=True)
class ParameterPlan:
    """Say how one parameter comes about: its local shape and the pieces of files that fill its rows."""

    name: str
    shape: Shape
    dtype: torch.dtype
    pieces: list[Piece]


def plan_load(stored: dict[str, StoredTensor], config: ModelConfig, tp_rank: int, tp_size: int) -> list[ParameterPlan]:
    """Plan one rank's load: which bytes of which files go to which rows of which parameter.

    Raises:
        CheckpointError: The checkpoint isn't what the config describes.
        ConfigError: The model can't be shared by that many ranks.
    """
    check_tp_size(config, tp_size)
    whole_shapes, local_shapes = model_shapes(config, 0, 1), model_shapes(config, tp_rank, tp_size)
    if config.tie_word_embeddings and "lm_head.weight" in stored:
        for shapes in (whole_shapes, local_shapes):
            shapes["lm_head.weight"] = shapes["model.embed_tokens.weight"]
    wanted = {name: parts_of(name, shape, config) for name, shape in whole_shapes.items()}
    check_complete(stored, wanted)
    plans = []
    for name, parts in wanted.items():
        pieces, num_rows = [], 0
        for key, shape in parts:  # the parts' rows lie end to end, the experts' too
            source_slice = shard_slice(key, shape, config, tp_rank, tp_size)
            first_row, num_rows = num_rows, num_rows + source_slice[0].stop - source_slice[0].start
            pieces.append(Piece(stored[key], source_slice, (slice(first_row, num_rows),)))
        plans.append(ParameterPlan(name, local_shapes[name], pieces[0].source.dtype, pieces))
    file_order = {key: index for index, key in enumerate(stored)}
    return sorted(plans, key=lambda plan: min(file_order[key] for key, _ in wanted[plan.name]))


def start_parameter(plan: ParameterPlan, reader: Reader, device: torch.device) -> tuple[str, torch.Tensor, Filled]:
    """Allocate a parameter and have its pieces read into their rows; a short vocabulary shard ends in zeros."""
    tensor = reader.empty(plan.shape, plan.dtype, device, plan.pieces)
    rows = tensor.flatten(0, -2) if tensor.dim() == 3 else tensor
    rows[plan.pieces[-1].slot[0].stop :].zero_()
    return plan.name, tensor, reader.fill(rows, plan.pieces)


def finish_parameter(name: str, tensor: torch.Tensor, filled: Filled, bar: tqdm) -> tuple[str, torch.Tensor]:
    """Wait until every piece of a parameter is in place."""
    filled.wait()
    bar.update(tensor.nbytes)
    return name, tensor


def load_weight(
    model_path: str | Path, device: torch.device | str, *, progress: bool = True
) -> Iterator[tuple[str, torch.Tensor]]:
    """Stream the weights of this rank, each under the model's name for it, as soon as it is complete.

    Args:
        model_path: A checkpoint folder or a hub id.
        device: Where the tensors go.
        progress: Whether the primary rank shows a progress bar, in bytes.

    Yields:
        The name and the tensor, in the checkpoint's dtype. Beyond what it has handed out, the loader holds one
        parameter at most (``reader.lookahead`` more on CUDA). A stored tied ``lm_head.weight`` is among them.

    Raises:
        CheckpointError: The checkpoint is damaged, incomplete or not what the config describes.
        ConfigError: The config is unusable, or can't be shared by this many ranks.
    """
    folder = download_hf_weight(model_path)
    config = ModelConfig.from_hf(cached_load_hf_config(folder))
    tp = get_tp_info()
    plans = plan_load(standard_tensors(open_checkpoint(folder)), config, tp.rank, tp.size)
    num_bytes = sum(prod(plan.shape) * plan.dtype.itemsize for plan in plans)
    hidden = not (progress and tp.is_primary())
    with open_reader(device) as reader, tqdm(total=num_bytes, unit="B", unit_scale=True, disable=hidden) as bar:
        in_flight: deque[tuple[str, torch.Tensor, Filled]] = deque()
        while plans or in_flight:
            while plans and len(in_flight) <= reader.lookahead:
                in_flight.append(start_parameter(plans.pop(0), reader, torch.device(device)))
            yield finish_parameter(*in_flight.popleft(), bar)

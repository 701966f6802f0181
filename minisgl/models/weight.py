"""Stream a checkpoint's tensors into the parameters that the model wants: sharded, merged, packed.

``merge_stream`` takes tensors as they come and keeps the parts of unfinished groups. ``load_weight`` plans first: headers say
what is stored where, so all is checked before a weight is read, and one parameter at a time is built, whatever the files.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import torch

from minisgl.checkpoint import ParameterPlan, Piece, StoredTensor, open_checkpoint, open_reader, standard_tensors
from minisgl.distributed import check_tp_size, get_tp_info, use_tp_info
from minisgl.errors import CheckpointError
from minisgl.models.config import ModelConfig
from minisgl.models.register import create_model
from minisgl.names import MERGED, SPLIT_DIM
from minisgl.utils import cached_load_hf_config, div_ceil, download_hf_weight

Shape = tuple[int, ...]
NamedTensors = Iterator[tuple[str, torch.Tensor]]


def model_shapes(config: ModelConfig, tp_rank: int, tp_size: int) -> dict[str, Shape]:
    """Ask a model on the meta device, which takes no memory, for the shapes of one rank's parameters."""
    with use_tp_info(tp_rank, tp_size), torch.device("meta"):
        shapes = {name: tuple(param.shape) for name, param in create_model(config).state_dict().items()}
    shapes.setdefault("lm_head.weight", shapes["model.embed_tokens.weight"])  # tied, yet a checkpoint may store it
    return shapes


def wanted_parts(config: ModelConfig) -> dict[str, dict[str, Shape]]:
    """List the parts of every parameter of the model, and of a tied ``lm_head.weight``."""
    return {name: parts_of(name, shape, config) for name, shape in model_shapes(config, 0, 1).items()}


def parts_of(param_name: str, shape: Shape, config: ModelConfig) -> dict[str, Shape]:
    """List the stored tensors that make up a whole parameter of this shape, in row order, with their whole shapes."""
    if ".experts." in param_name:  # [experts, rows, columns]
        path, merged = param_name.rsplit(".", 1)
        names = MERGED.get(merged, (merged,))
        part_shape = (shape[1] // len(names), shape[2])
        return {f"{path}.{i}.{name}.weight": part_shape for i, name in product(range(config.num_experts), names)}
    *words, merged, kind = param_name.split(".")
    if merged not in MERGED:
        return {param_name: shape}
    rows = [shape[0] // 2] * 2
    if merged == "qkv_proj":
        rows = [heads * config.head_dim for heads in (config.num_qo_heads, config.num_kv_heads, config.num_kv_heads)]
    return {".".join([*words, name, kind]): (num, *shape[1:]) for name, num in zip(MERGED[merged], rows, strict=True)}


def merge_stream(stream: NamedTensors, config: ModelConfig) -> NamedTensors:
    """Merge stored tensors, in any order, whole or each cut to one rank's share, into the parameters of the model.

    A parameter comes as soon as its last part is there. Its parts wait in memory until then, as many as the order brings.

    Raises:
        CheckpointError: A tensor is unknown to the model or comes twice, or some haven't come when the stream ends.
    """
    waiting: dict[str, dict[str, torch.Tensor]] = {}
    wanted = wanted_parts(config)
    name_of = {key: name for name, parts in wanted.items() for key in parts}
    for key, tensor in stream:
        if key not in name_of:
            raise CheckpointError(f"{key} is unknown to the model, or came twice. Expected each of its tensors once.")
        name = name_of.pop(key)
        waiting.setdefault(name, {})[key] = tensor
        if len(waiting[name]) == len(wanted[name]):
            group = waiting.pop(name)
            merged = torch.cat([group.pop(key) for key in wanted[name]]) if len(group) > 1 else tensor
            yield name, merged.unflatten(0, (config.num_experts, -1)) if ".experts." in name else merged
    missing = sorted(name_of.keys() - {"lm_head.weight"} if config.tie_word_embeddings else name_of)
    if missing:
        raise CheckpointError(f"{len(missing)} tensors didn't come: {', '.join(missing[:20])}. Read all of the files.")


def shard_slice(key: str, shape: Shape, config: ModelConfig, tp_rank: int, tp_size: int) -> tuple[slice, ...]:
    """Say which part of a stored tensor one rank holds, dimension by dimension; the last words' rank may hold fewer rows."""
    slices = [slice(0, size) for size in shape]
    projection = key.split(".")[-2]
    dim = SPLIT_DIM.get(projection, len(shape))
    if dim < len(shape):  # norms, the router, and the biases of o_proj and down_proj stay whole
        share_index, num_shares = tp_rank, tp_size
        if projection in ("k_proj", "v_proj") and tp_size > config.num_kv_heads:  # neighbours share a head
            share_index, num_shares = tp_rank * config.num_kv_heads // tp_size, config.num_kv_heads
        share = div_ceil(shape[dim], num_shares)
        slices[dim] = slice(min(share_index * share, shape[dim]), min((share_index + 1) * share, shape[dim]))
    return tuple(slices)


def check_complete(stored: dict[str, StoredTensor], wanted: dict[str, dict[str, Shape]]) -> None:
    """Refuse a checkpoint that isn't exactly the wanted parts of each parameter, with all that is wrong in one error.

    Raises:
        CheckpointError: A part is missing, unknown or of the wrong shape, or a parameter's parts differ in dtype.
    """
    keys = {key for parts in wanted.values() for key in parts}
    problems = [f"{key} in {tensor.file} is unknown to the model" for key, tensor in stored.items() if key not in keys]
    for name, parts in wanted.items():
        for key, shape in parts.items():
            if (tensor := stored.get(key)) is None:
                problems.append(f"{key} is missing, a part of {name}")
            elif tensor.shape != shape:
                problems.append(f"{key} in {tensor.file} has shape {list(tensor.shape)}, expected {list(shape)}")
        dtypes = sorted({str(stored[key].dtype) for key in parts if key in stored})
        if len(dtypes) > 1:
            problems.append(f"{name} has parts of different dtypes: {', '.join(dtypes)}")
    if problems:
        raise CheckpointError(
            f"the checkpoint and its config disagree in {len(problems)} places: {'; '.join(sorted(problems)[:20])}. "
            f"Expected exactly the tensors that config.json describes. Download or convert the checkpoint again."
        )


def plan_load(stored: dict[str, StoredTensor], config: ModelConfig, tp_rank: int, tp_size: int) -> list[ParameterPlan]:
    """Plan one rank's load, in file order: which slices of which stored tensors fill the rows of each parameter.

    Raises:
        CheckpointError: The checkpoint isn't what the config describes.
        ConfigError: The model can't be shared by that many ranks.
    """
    check_tp_size(config, tp_size)
    wanted, local_shapes = wanted_parts(config), model_shapes(config, tp_rank, tp_size)
    if config.tie_word_embeddings and "lm_head.weight" not in stored:
        del wanted["lm_head.weight"]
    check_complete(stored, wanted)
    name_of = {key: name for name, parts in wanted.items() for key in parts}
    pieces = {key: Piece(t, shard_slice(key, t.shape, config, tp_rank, tp_size)) for key, t in stored.items()}
    in_file_order = dict.fromkeys(name_of[key] for key in stored)
    return [ParameterPlan(name, local_shapes[name], [pieces[key] for key in wanted[name]]) for name in in_file_order]


def load_weight(model_path: str | Path, device: torch.device | str, *, progress: bool = True) -> NamedTensors:
    """Stream this rank's weights from a folder or a hub id; the primary rank shows a bar, in bytes, if ``progress`` is on.

    Yields:
        The model's name and the tensor, complete, in the checkpoint's dtype; a stored tied ``lm_head.weight`` is among them.
        Beyond what it has handed out, the loader holds one parameter at most (on CUDA a few more).

    Raises:
        CheckpointError: The checkpoint is damaged, incomplete or not what the config describes.
        ConfigError: The config is unusable, or can't be shared by this many ranks.
    """
    folder, tp = download_hf_weight(model_path), get_tp_info()
    config = ModelConfig.from_hf(cached_load_hf_config(folder))
    plans = plan_load(standard_tensors(open_checkpoint(folder)), config, tp.rank, tp.size)
    with open_reader(device) as reader:
        yield from reader.read(plans, progress=progress and tp.is_primary())

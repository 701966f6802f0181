"""Show what a model's config and file headers say, without reading weights."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from minisgl.cli.arguments import positive_int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the number of ranks, and the form of the answer."""
    parser.add_argument("path", metavar="PATH", help="model folder, hub id (only its JSON is fetched), or tiny model")
    parser.add_argument("--tp", type=positive_int, default=1, metavar="N", help="ranks to divide it over; default: 1")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(arguments: argparse.Namespace) -> None:
    """Print the description on stdout.

    Raises:
        MinisglError: the model can't be found, read, computed, or divided over that many ranks.
    """
    from minisgl.cli.description import describe_model

    description = describe_model(arguments.path, arguments.tp)
    if arguments.json:
        print(json.dumps(description, indent=2))
    else:
        print("\n".join(_lines(description)))


def _lines(description: dict[str, Any]) -> Iterator[str]:
    yield description["folder"]
    yield ""
    yield from _aligned(_config_rows(description["config"]))
    yield ""
    yield from _aligned(_tensor_rows(description))
    yield ""
    yield from _shape_lines(description["model_tensors"]["shapes"])
    if len(description["ranks"]) > 1:
        yield ""
        yield from _rank_lines(description["ranks"])


def _config_rows(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rotary = config["rotary_config"]
    yield "architecture", config["architectures"][0]
    yield "layers", str(config["num_layers"])
    yield "query heads", str(config["num_qo_heads"])
    yield "kv heads", str(config["num_kv_heads"])
    yield "head_dim", str(config["head_dim"])
    yield "hidden size", str(config["hidden_size"])
    yield "intermediate size", str(config["intermediate_size"])
    yield "vocabulary", str(config["vocab_size"])
    yield "rope base", f"{rotary['base']:,.0f}" if rotary["base"] >= 1 else str(rotary["base"])
    yield "rope scaling", _scaling_text(rotary["scaling"])
    yield "max position", f"{rotary['max_position']:,}"
    yield "tied embeddings", _yes(config["tie_word_embeddings"])
    for name, label in {"attention_bias": "q/k/v bias", "attention_out_bias": "o bias", "mlp_bias": "MLP bias"}.items():
        yield label, _yes(config[name])
    if config["num_experts"]:
        yield "experts", f"{config['num_experts']}, {config['num_experts_per_tok']} a token"
        yield "expert size", str(config["moe_intermediate_size"])
        yield "norm_topk_prob", _yes(config["norm_topk_prob"])


def _tensor_rows(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    tensors, files = description["model_tensors"], description["checkpoint"]
    yield "model tensors", str(tensors["count"])
    if files is None:
        yield "checkpoint", "no weights in this folder"
    else:
        yield "out of the loader", f"{files['tensors_out_of_loader']} tensors"
        yield "checkpoint", f"{files['tensors']} tensors, {_files(files['files'])}, {files['bytes']:,} bytes"
    yield "parameters", f"{tensors['parameters']:,}"
    yield "weights", f"{tensors['bytes']:,} bytes in {description['dtype']}"
    yield "KV cache", f"{description['kv_bytes_per_token']:,} bytes a token in {description['dtype']}"
    yield "tp sizes", ", ".join(map(str, description["supported_tp_sizes"]))


def _shape_lines(shapes: list[dict[str, Any]]) -> Iterator[str]:
    """Name each kind of tensor once, with the number of layers that have it."""
    width = max(len(entry["name"]) for entry in shapes)
    for entry in shapes:
        times = f"  × {entry['count']}" if entry["count"] > 1 else ""
        yield f"{entry['name']:<{width}}  {tuple(entry['shape'])}{times}"


def _rank_lines(ranks: list[dict[str, Any]]) -> Iterator[str]:
    """Show each rank's share, then the shapes, which are the same on all ranks."""
    header = ("rank", "q heads", "kv heads", "vocabulary rows", "padding", "weight bytes", "KV bytes/token")
    rows: list[tuple[str, ...]] = [header]
    for rank in ranks:
        spans = [
            f"{first}–{end - 1}" if end > first else "none"
            for first, end in (rank["qo_heads"], rank["kv_heads"], rank["vocab_rows"])
        ]
        sizes = [str(rank["vocab_padding"]), f"{rank['bytes']:,}", f"{rank['kv_bytes_per_token']:,}"]
        rows.append((str(rank["rank"]), *spans, *sizes))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    yield ""
    yield "On each rank:"
    yield from _shape_lines(ranks[0]["shapes"])


def _aligned(rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    for label, value in rows:
        yield f"{label:<18}{value}"


def _scaling_text(scaling: dict[str, Any] | None) -> str:
    if scaling is None:
        return "none"
    return " ".join([scaling["rope_type"], *(f"{k}={v}" for k, v in scaling.items() if k != "rope_type")])


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"

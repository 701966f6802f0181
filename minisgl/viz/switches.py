"""The switches' model: three switches turn one decoder into four architectures; see which keys and shapes change."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from minisgl.checkpoint.maker import stored_shapes
from minisgl.viz.drawing import GREEN, VERMILLION, Picture, lines_of
from minisgl.viz.known import Config
from minisgl.viz.layout import parameters_of
from minisgl.viz.needs import NotWrittenYet, need_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shape = tuple[int, ...]
SWITCHES = {"attention_bias": "q, k, v biases", "has_qk_norm": "QK-norm", "is_moe": "experts"}
ARCHITECTURES = {
    "LlamaForCausalLM": (False, False, False),
    "Qwen2ForCausalLM": (True, False, False),
    "Qwen3ForCausalLM": (False, True, False),
    "Qwen3MoeForCausalLM": (False, True, True),
}
_MODEL_TYPES = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}
_WIDTH, _ROW = 900, 24

# One size for all, so that only the switches differ.
SIZES: Config = {
    "vocab_size": 1024, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 32, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "max_position_embeddings": 2048, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "num_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 192, "norm_topk_prob": True, "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One key in the comparison; a shape is None where the key doesn't exist."""

    key: str
    before: Shape | None
    after: Shape | None

    @property
    def change(self) -> str:
        """What happened: "added", "removed", "reshaped" or "" for nothing."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "" if self.before == self.after else "reshaped"


class SwitchesModel:
    """Set the switches and compare with one of the architectures.

    Attributes:
        switches: name of ``SWITCHES`` -> on or off.
        base: The architecture to compare with.
    """

    def __init__(self, base: str = "LlamaForCausalLM", **switches: bool) -> None:
        self.base = base
        self.switches = dict(zip(SWITCHES, ARCHITECTURES[base], strict=True)) | switches

    def choose(self, architecture: str) -> None:
        """Set the switches as one architecture has them."""
        self.switches = dict(zip(SWITCHES, ARCHITECTURES[architecture], strict=True))

    @property
    def architecture(self) -> str | None:
        """The architecture that has these switches, or None for a combination that nobody published."""
        values = tuple(self.switches.values())
        return next((name for name, wanted in ARCHITECTURES.items() if wanted == values), None)

    def shapes(self, switches: dict[str, bool] | None = None) -> dict[str, Shape]:
        """Give parameter -> shape for the given switches (default: those that are set)."""
        switches = self.switches if switches is None else switches
        stored = stored_shapes(config_of("Qwen3MoeForCausalLM" if switches["is_moe"] else "LlamaForCausalLM"))
        shapes = {
            name: _merged_shape(name, [stored[part] for part in parts]) for name, parts in parameters_of(stored).items()
        }
        result: dict[str, Shape] = {}
        for name, shape in shapes.items():
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                continue  # put in below, where the switch says so
            result[name] = shape
            if name.endswith("qkv_proj.weight") and switches["attention_bias"]:
                result[name.replace("weight", "bias")] = shape[:1]
            if name.endswith("o_proj.weight") and switches["has_qk_norm"]:
                head = name.removesuffix("o_proj.weight")
                result |= {f"{head}{norm}.weight": (SIZES["head_dim"],) for norm in ("q_norm", "k_norm")}
        return result

    @property
    def base_shapes(self) -> dict[str, Shape]:
        """Give parameter -> shape of the architecture to compare with."""
        return self.shapes(dict(zip(SWITCHES, ARCHITECTURES[self.base], strict=True)))

    def rows(self, *, layer: int | None = 0) -> list[Row]:
        """Compare key by key; only layer ``layer`` and what lies outside the layers, or all with None."""
        before, after = self.base_shapes, self.shapes()
        keys = list(dict.fromkeys([*after, *before]))
        if layer is not None:
            keys = [key for key in keys if ".layers." not in key or f".layers.{layer}." in key]
        rows = [Row(key, before.get(key), after.get(key)) for key in keys]
        order = {key: index for index, key in enumerate(keys)}
        return sorted(rows, key=lambda row: (_place(row.key), order[row.key]))

    def num_params(self, shapes: dict[str, Shape] | None = None) -> int:
        """Count the numbers in all parameters."""
        return sum(prod(shape) for shape in (self.shapes() if shapes is None else shapes).values())

    def compare_with_model(self) -> str:
        """Build the architecture with the model classes of this package, on the meta device, and compare keys and shapes.

        Returns:
            What was found, in one sentence.

        Raises:
            NotWrittenYet: The model classes aren't ready.
        """
        if self.architecture is None:
            return "no architecture has these switches, so there is no class to compare with"
        actual = model_shapes(self.architecture)
        expected = self.shapes()
        missing, extra = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
        reshaped = [f"{key} {list(actual[key])}" for key in expected if key in actual and actual[key] != expected[key]]
        problems = [f"{word}: {', '.join(keys[:4])}" for word, keys in
                    (("missing", missing), ("unexpected", extra), ("other shape", reshaped)) if keys]  # fmt: skip
        if problems:
            return f"your {self.architecture} differs: {'; '.join(problems)}"
        return f"your {self.architecture} has exactly these {len(actual)} keys and shapes"

    def summary(self) -> str:
        """Say the state in one line."""
        on = [label for name, label in SWITCHES.items() if self.switches[name]]
        shapes = self.shapes()
        difference = self.num_params(shapes) - self.num_params(self.base_shapes)
        changes = [row.change for row in self.rows(layer=None)]
        counts = ", ".join(f"{changes.count(word)} {word}" for word in ("added", "removed", "reshaped"))
        return (
            f"{' + '.join(on) or 'all switches off'} = {self.architecture or 'none of the four'}: {len(shapes)} keys, "
            f"{self.num_params(shapes):,} parameters ({difference:+,} against {self.base}; {counts})"
        )

    def describe(self) -> str:
        """Say in words what the picture shows."""
        lines = [self.summary() + ". Layer 0 and what lies outside the layers:"]
        lines += [f"{row.key}: {_text(row.before)} -> {_text(row.after)} {row.change}".rstrip() for row in self.rows()]
        return "\n".join(lines)

    def picture(self) -> Picture:
        """Draw the comparison as a table: added rows with a plus sign, removed ones with a minus."""
        rows = self.rows()
        picture = Picture(_WIDTH, 91 + _ROW * len(rows) + 8, self.summary())
        picture.text(8, 20, self.architecture or "none of the four architectures", size=16, bold=True)
        for number, line in enumerate(lines_of(self.summary(), _WIDTH - 16, 12.5)):
            picture.text(8, 42 + 17 * number, line, size=12.5)
        for x, head in (
            (34, "key (layer 0)"),
            (445, self.base),
            (630, self.architecture or "these switches"),
            (820, "change"),
        ):
            picture.text(x, 81, head, size=12, bold=True)
        for index, row in enumerate(rows):
            y = 89 + index * _ROW
            if row.change:
                color = VERMILLION if row.change == "removed" else GREEN
                picture.rect(2, y + 1, _WIDTH - 4, _ROW - 2, None, edge=color, edge_width=2)
                picture.rect(2, y + 1, 24, _ROW - 2, color, edge=color)
                sign = {"added": "+", "removed": "−", "reshaped": "≠"}[row.change]
                picture.text(14, y + 17, sign, size=15, anchor="middle", bold=True, color="#ffffff")
            picture.text(34, y + 16, row.key, size=12.5, bold=bool(row.change))
            picture.text(445, y + 16, _text(row.before), size=12.5)
            picture.text(630, y + 16, _text(row.after), size=12.5)
            picture.text(820, y + 16, row.change, size=12.5)
        return picture

    def static(self) -> Figure:
        """Give the picture as a matplotlib figure."""
        return self.picture().to_figure()


def config_of(architecture: str) -> Config:
    """Give a config.json of the shared sizes for one architecture."""
    config = {**SIZES, "architectures": [architecture], "model_type": _MODEL_TYPES[architecture]}
    return (
        config
        if architecture == "Qwen3MoeForCausalLM"
        else {k: v for k, v in config.items() if "exp" not in k and "moe" not in k}
    )


def model_shapes(architecture: str) -> dict[str, Shape]:
    """Build one architecture on the meta device, with ``minisgl.models``, and list its keys and shapes.

    Raises:
        NotWrittenYet: The model classes aren't ready.
    """
    import torch

    model_config: Any = need_written("models.config", "ModelConfig")
    create_model = need_written("models.register", "create_model")
    from transformers import PretrainedConfig

    fields = config_of(architecture)
    try:
        with torch.device("meta"):
            model = create_model(model_config.from_hf(PretrainedConfig.from_dict(fields)))
        return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    except Exception as error:  # whatever a half-written model raises
        raise NotWrittenYet(
            f"building {architecture} stopped with {type(error).__name__}: {error}. Expected a model of its class. "
            f"Run the checks of chapter 02, then compare again."
        ) from error


def _merged_shape(name: str, shapes: list[Shape]) -> Shape:
    if ".experts." in name:
        num_experts = SIZES["num_experts"]
        per_expert = len(shapes) // num_experts
        return (num_experts, per_expert * shapes[0][0], shapes[0][1])
    return (sum(shape[0] for shape in shapes), *shapes[0][1:]) if len(shapes) > 1 else shapes[0]


def _place(key: str) -> int:
    return next(
        (
            place
            for place, word in enumerate(("embed", ".self_attn.", ".mlp.", "layernorm", "model.norm"))
            if word in key
        ),
        5,
    )


def _text(shape: Shape | None) -> str:
    return "—" if shape is None else "[" + ", ".join(f"{size:,}" for size in shape) + "]"

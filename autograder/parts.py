"""The chapters and the parts that students write: the single list that everything else reads.

A *part* is one function or class of a graded module (or one such with its constants). Its id is
``<file stem>.<part>``, as in ``config.rope``. A part whose ``names`` are empty has no source of its own: it is
judged on all of the student's parts together. ``package.together``, of a chapter in which nothing is written, wants
every part of the course.
"""

from __future__ import annotations

from dataclasses import dataclass

TOGETHER = "together"


@dataclass(frozen=True)
class Part:
    """One graded piece of work.

    Attributes:
        id: ``<file stem>.<part>``.
        chapter: the chapter's folder name, as in ``01_config``.
        module: path of the file below ``minisgl/``, as in ``models/config.py``.
        names: top-level names that the part defines, in file order; empty for a "together" part.
        points: full marks.
        difficulty: 1 (easy) to 5 (hard).
        importance: 1 (nice to have) to 5 (everything later needs it).
        minutes: estimated time for a newcomer.
        depends: ids of the parts that this one calls.
    """

    id: str
    chapter: str
    module: str
    names: tuple[str, ...]
    points: float
    difficulty: int
    importance: int
    minutes: int
    depends: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The part's own name, without the module: ``rope`` in ``config.rope``."""
        return self.id.split(".", 1)[1]

    @property
    def together(self) -> bool:
        """Whether the part judges all of the student's work in one tree."""
        return not self.names


def _rows(chapter: str, module: str, *rows: tuple) -> tuple[Part, ...]:
    stem = module.rsplit("/", 1)[-1].removesuffix(".py")
    return tuple(Part(f"{stem}.{row[0]}", chapter, module, *row[1:]) for row in rows)


# name, top-level names, points, difficulty, importance, minutes, depends
_CONFIG = _rows(
    "01_config",
    "models/config.py",
    ("architecture", ("architecture_of",), 2, 2, 4, 10),
    ("sizes", ("sizes_of",), 3, 2, 4, 15),
    ("head_dim", ("head_dim_of",), 2, 1, 5, 5),
    ("rope_parameters", ("rope_parameters_of",), 4, 3, 5, 20),
    ("rope", ("rotary_config_of",), 3, 3, 5, 15, ("config.head_dim", "config.rope_parameters")),
    ("biases", ("biases_of",), 2, 2, 4, 10),
    ("moe", ("moe_fields_of",), 2, 2, 3, 10),
    ("refusals", ("refuse_uncomputed",), 3, 3, 3, 15),
    (
        "model_config",
        ("ModelConfig",),
        4,
        3,
        5,
        20,
        tuple(f"config.{name}" for name in ("architecture", "sizes", "head_dim", "rope", "biases", "moe", "refusals")),
    ),
    ("kv_bytes", ("kv_bytes_per_token",), 1, 1, 3, 5, ("config.model_config",)),
    (TOGETHER, (), 2, 1, 3, 5),
)
_DECODER = (
    *_rows("02_decoder", "models/base.py", ("base_llm_model", ("BaseLLMModel",), 1, 1, 3, 5)),
    *_rows(
        "02_decoder",
        "models/utils.py",
        ("rope_attn", ("RopeAttn",), 4, 4, 5, 25, ("config.model_config",)),
        ("gated_mlp", ("GatedMLP",), 2, 2, 5, 10, ("config.model_config",)),
        ("moe_mlp", ("MoEMLP",), 2, 3, 4, 15, ("config.model_config",)),
    ),
    *_rows(
        "02_decoder",
        "models/decoder.py",
        ("layer", ("DecoderLayer",), 3, 3, 5, 15, ("utils.rope_attn", "utils.gated_mlp", "utils.moe_mlp")),
        ("model", ("DecoderModel",), 3, 2, 5, 15, ("decoder.layer",)),
        ("causal_lm", ("CausalLM",), 3, 3, 5, 15, ("base.base_llm_model", "decoder.model")),
        (
            "architectures",
            ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
            2,
            2,
            4,
            10,
            ("decoder.causal_lm",),
        ),
    ),
    *_rows(
        "02_decoder", "models/register.py", ("create_model", ("create_model",), 1, 1, 4, 5, ("decoder.architectures",))
    ),
    *_rows("02_decoder", "models/decoder.py", (TOGETHER, (), 2, 1, 3, 5)),
)
_WEIGHT = _rows(
    "03_weight",
    "models/weight.py",
    ("parts", ("parts_of",), 3, 3, 5, 20, ("config.model_config",)),
    ("merge", ("merge_stream",), 4, 3, 5, 25, ("weight.parts", "register.create_model")),
    ("shard_slice", ("shard_slice",), 4, 4, 5, 25, ("config.model_config",)),
    ("complete", ("check_complete",), 3, 3, 4, 20),
    (
        "plan",
        ("plan_load",),
        3,
        4,
        5,
        20,
        ("weight.parts", "weight.shard_slice", "weight.complete", "register.create_model"),
    ),
    ("load", ("load_weight",), 4, 3, 5, 15, ("weight.plan",)),
    (TOGETHER, (), 2, 1, 3, 5),
)
_PACKAGE = (Part("package.together", "04_into_the_model", "models/weight.py", (), 8, 2, 5, 10),)

PARTS: tuple[Part, ...] = (*_CONFIG, *_DECODER, *_WEIGHT, *_PACKAGE)
BY_ID: dict[str, Part] = {part.id: part for part in PARTS}
CHAPTERS: tuple[str, ...] = (
    "00_orientation",
    "01_config",
    "02_decoder",
    "03_weight",
    "04_into_the_model",
    "05_beyond",
)
GRADED_MODULES: tuple[str, ...] = (
    "models/config.py",
    "models/base.py",
    "models/utils.py",
    "models/decoder.py",
    "models/register.py",
    "models/weight.py",
)


def parts_of_module(module: str) -> tuple[Part, ...]:
    """Return the parts with source of a graded module, in file order."""
    return tuple(part for part in PARTS if part.module == module and not part.together)


def parts_of_chapter(chapter: str) -> tuple[Part, ...]:
    """Return a chapter's parts in the order in which they are written."""
    return tuple(part for part in PARTS if part.chapter == chapter)


def parts_judged_with(part: Part) -> tuple[Part, ...]:
    """Return the parts with source that a "together" part judges: its chapter's, or all where its chapter has none."""
    written = tuple(other for other in PARTS if not other.together)
    return tuple(other for other in written if other.chapter == part.chapter) or written


def is_whole_package(chapter: str) -> bool:
    """Tell whether a chapter is graded although nothing is written in it: on the parts of all other chapters."""
    return bool(parts_of_chapter(chapter)) and all(part.together for part in parts_of_chapter(chapter))


def select(target: str | None) -> tuple[Part, ...]:
    """Return the parts that a word names: a part id, a chapter, a chapter's number, or a module's stem.

    Args:
        target: ``config.rope``, ``01_config``, ``01``, ``config``; ``None`` or ``all`` for every part.

    Raises:
        ValueError: nothing has this name; the message lists what could have been meant.
    """
    if target in (None, "", "all"):
        return PARTS
    word = str(target).strip().removesuffix(".ipynb")
    if word in BY_ID:
        return (BY_ID[word],)
    chapters = [chapter for chapter in CHAPTERS if word in (chapter, chapter.split("_")[0])]
    if chapters:
        return parts_of_chapter(chapters[0])
    found = tuple(part for part in PARTS if part.id.split(".")[0] == word)
    if found:
        return found
    known = ", ".join(sorted({part.chapter for part in PARTS}))
    raise ValueError(
        f"there is no chapter or part called {word!r}; chapters with graded parts: {known}; "
        f"a part is named like {PARTS[0].id!r} (see them all with: python -m autograder status)"
    )


def grade_id(part: Part) -> str:
    """Return the nbgrader id of a part's grade cell."""
    return "check-" + part.id.replace(".", "-")


def part_of_grade_id(cell_id: str) -> Part | None:
    """Return the part that a grade cell judges, or None for a cell of another kind."""
    for part in PARTS:
        if grade_id(part) == cell_id:
            return part
    return None

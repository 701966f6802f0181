"""What every right parts_of, check_complete and plan_load does."""

import random

import pytest
import torch

from autograder.judge.checking import cases, expect, expect_keys, expect_refusal, expect_true
from autograder.judge.oracles import parameters, small, stored_tensors
from minisgl.checkpoint import open_checkpoint
from minisgl.checkpoint.maker import make_checkpoint

QWEN3 = small("qwen3", tie_word_embeddings=True)
BIASED = small("llama", attention_bias=True, mlp_bias=True)
MIXTURE = small("qwen3_moe", num_experts=13)
ATTENTION, MLP = "model.layers.1.self_attn", "model.layers.1.mlp"


def expect_parts(subject, config, expected, hint):
    """Compare the parts of some parameters; `expected` is name -> (the parameter's shape, its parts)."""
    args = {"config": config, "shapes": {name: shape for name, (shape, _) in expected.items()}}
    found = subject.ask("weight.parts_of", args)
    expect(found, {name: parts for name, (_, parts) in expected.items()}, what="the parts", hint=hint)


@pytest.mark.part("weight.parts", weight=2, gist=True)
def test_qkv_is_made_of_q_k_and_v_in_this_order(subject):
    """The three projections with their whole shapes, for the weight and for the bias."""
    hint = "q, k, v in the order of MERGED; q has num_qo_heads * head_dim rows, k and v num_kv_heads * head_dim"
    weights = [[f"{ATTENTION}.{name}_proj.weight", [rows, 32]] for name, rows in (("q", 64), ("k", 32), ("v", 32))]
    expect_parts(subject, QWEN3, {f"{ATTENTION}.qkv_proj.weight": ([128, 32], weights)}, hint)
    biases = [[f"{ATTENTION}.{name}_proj.bias", [rows]] for name, rows in (("q", 32), ("k", 16), ("v", 16))]
    expect_parts(subject, BIASED, {f"{ATTENTION}.qkv_proj.bias": ([64], biases)}, hint)


@pytest.mark.part("weight.parts")
def test_gate_up_is_made_of_two_halves(subject):
    """gate, then up, each with half of the rows."""
    expected = {
        f"{MLP}.gate_up_proj.weight": (
            [96, 32],
            [[f"{MLP}.gate_proj.weight", [48, 32]], [f"{MLP}.up_proj.weight", [48, 32]]],
        ),
        f"{MLP}.gate_up_proj.bias": ([96], [[f"{MLP}.gate_proj.bias", [48]], [f"{MLP}.up_proj.bias", [48]]]),
    }
    expect_parts(
        subject, BIASED, expected, hint="gate before up, half of the rows each; a bias is merged like its weight"
    )


@pytest.mark.part("weight.parts", weight=2)
@pytest.mark.parametrize("num_experts", [1, 13, 101], ids="{}-experts".format)
def test_experts_are_listed_by_number(subject, num_experts):
    """Expert 2 comes before expert 10; each expert's gate before its up."""
    config = small("qwen3_moe", num_experts=num_experts, num_experts_per_tok=1)
    hint = "count the experts: 0, 1, 2 ... 10; sorted as text, 10 comes before 2. Each expert's gate, then its up"
    path, experts = f"{MLP}.experts", range(num_experts)
    gates_and_ups = [[f"{path}.{number}.{name}_proj.weight", [24, 32]] for number in experts for name in ("gate", "up")]
    downs = [[f"{path}.{number}.down_proj.weight", [32, 24]] for number in experts]
    expected = {
        f"{path}.gate_up_proj": ([num_experts, 48, 32], gates_and_ups),
        f"{path}.down_proj": ([num_experts, 32, 24], downs),
    }
    expect_parts(subject, config, expected, hint)


@pytest.mark.part("weight.parts")
def test_what_is_not_merged_is_its_own_only_part(subject):
    """Norms, the router, o_proj, the embedding and the head come as they are stored."""
    singles = {
        "model.embed_tokens.weight": [96, 32],
        "lm_head.weight": [96, 32],
        "model.norm.weight": [32],
        f"{ATTENTION}.o_proj.weight": [32, 64],
        f"{ATTENTION}.q_norm.weight": [16],
        f"{MLP}.gate.weight": [13, 32],
    }
    expected = {name: (shape, [[name, shape]]) for name, shape in singles.items()}
    hint = "only the names in MERGED are merged, and only whole words: mlp.gate is the router, not gate_proj"
    expect_parts(subject, MIXTURE, expected, hint)


WANTED = {
    "a.qkv_proj.weight": [["a.q_proj.weight", [4, 2]], ["a.k_proj.weight", [2, 2]], ["a.v_proj.weight", [2, 2]]],
    "a.norm.weight": [["a.norm.weight", [2]]],
    "b.experts.down_proj": [[f"b.experts.{expert}.down_proj.weight", [2, 3]] for expert in range(12)],
}


def stored_of(changes=()):
    """Store exactly what is wanted, then apply changes: key -> None (missing) or [dtype, shape, file]."""
    found = {key: ["float32", shape, "one.safetensors"] for rows in WANTED.values() for key, shape in rows}
    found |= dict(changes)
    return {key: value for key, value in found.items() if value is not None}


def refused(subject, changes, names, hint):
    """Want a CheckpointError that names all of these."""
    refusal = subject.refusal("weight.check_complete", {"stored": stored_of(changes), "wanted": WANTED}, hint=hint)
    expect_refusal(refusal, names=names, hint=hint)
    expect_true("CheckpointError" in refusal.bases, f"a {refusal.type} was raised, not a CheckpointError", hint=hint)


@pytest.mark.part("weight.complete")
def test_an_exact_checkpoint_is_accepted(subject):
    """Nothing is raised for exactly the wanted tensors, in any order of the file."""
    stored = dict(reversed(stored_of().items()))
    found = subject.ask("weight.check_complete", {"stored": stored, "wanted": WANTED})
    expect(found, None, what="the result", hint="return nothing when all is well")


@pytest.mark.part("weight.complete", weight=2, gist=True)
def test_missing_parts_are_named(subject):
    """A part of a group, a whole parameter and an expert are each named as missing."""
    changes = {"a.k_proj.weight": None, "a.norm.weight": None, "b.experts.10.down_proj.weight": None}
    hint = "compare what is wanted with what is stored and name every missing key, also a single expert's"
    refused(subject, changes, list(changes), hint)


@pytest.mark.part("weight.complete", weight=2)
def test_unknown_tensors_are_named_with_their_file(subject):
    """A tensor that no parameter wants is refused, not ignored."""
    changes = {"a.q_norm.weight": ["float32", [2], "two.safetensors"]}
    hint = "a tensor that the model doesn't know means that model and checkpoint differ: never ignore it"
    refused(subject, changes, ["a.q_norm.weight", "two.safetensors"], hint)


@pytest.mark.part("weight.complete")
def test_wrong_shapes_are_named_with_both_shapes(subject):
    """The message has the key, the file, the shape that was found and the one expected."""
    changes = {"a.v_proj.weight": ["float32", [2, 7], "two.safetensors"]}
    hint = "compare shapes exactly: a transposed or differently sized tensor isn't the right one"
    refused(subject, changes, ["a.v_proj.weight", "two.safetensors", "7"], hint)
    changes = {"a.q_proj.weight": ["float32", [2, 4], "one.safetensors"]}
    refused(subject, changes, ["a.q_proj.weight"], hint)


@pytest.mark.part("weight.complete")
def test_mixed_dtypes_in_one_group_are_refused(subject):
    """q in bfloat16 beside k in float32 can't become one matrix; different dtypes of different parameters can stay."""
    hint = "the parts of one parameter must agree in dtype; different parameters needn't"
    changes = {"a.q_proj.weight": ["bfloat16", [4, 2], "one.safetensors"]}
    refused(subject, changes, ["a.qkv_proj.weight", "bfloat16", "float32"], hint)
    changes = {"a.norm.weight": ["bfloat16", [2], "one.safetensors"]}
    subject.ask("weight.check_complete", {"stored": stored_of(changes), "wanted": WANTED})


@pytest.mark.part("weight.complete")
def test_all_problems_come_at_once(subject):
    """A missing, an unknown and a misshapen tensor are in one message."""
    changes = {
        "a.k_proj.weight": None,
        "a.extra.weight": ["float32", [2], "two.safetensors"],
        "a.norm.weight": ["float32", [3], "one.safetensors"],
    }
    refused(subject, changes, list(changes), "collect all problems first, then raise once")


LAYOUTS = [
    {"id": "one-file", "config": QWEN3, "layout": {"files": 1}, "tp_size": 1},
    {"id": "biases-on-two-ranks", "config": BIASED, "layout": {"files": 3}, "tp_size": 2},
    {"id": "groups-torn-apart", "config": MIXTURE, "layout": {"files": 5, "layout": "torn"}, "tp_size": 4},
    {"id": "packed-experts", "config": MIXTURE, "layout": {"packed_experts": True}, "tp_size": 2},
    {"id": "odd-vocabulary", "config": small("qwen2", vocab_size=101), "layout": {"files": 2}, "tp_size": 4},
]


def draw_layout(source: random.Random):
    layout = {
        "files": source.choice([1, 4, 7]),
        "layout": source.choice(["torn", "shuffled"]),
        "seed": source.randrange(99),
    }
    family = source.choice(["llama", "qwen2", "qwen3_moe"])
    config = small(family, vocab_size=source.randint(50, 96), num_key_value_heads=source.choice([1, 2, 4]))
    return {"config": config, "layout": layout, "tp_size": source.choice([1, 2, 4])}


def checkpoint_of(subject, case, **options):
    folder = subject.folder("checkpoint")
    make_checkpoint(
        folder, case["config"], **{"data": "tagged", "dtype": "bfloat16", **case.get("layout", {}), **options}
    )
    return folder


def carried_out(plan, folder):
    """Do by hand what a plan says: the numbers of its pieces, end to end."""
    cuts = []
    for piece in plan["pieces"]:
        path, count = folder / piece["file"], torch.Size(piece["stored_shape"]).numel()
        stored = torch.from_file(str(path), size=path.stat().st_size, dtype=torch.uint8)
        stored = stored[piece["offset"] : piece["offset"] + 2 * count].view(torch.bfloat16).view(piece["stored_shape"])
        cuts.append(stored[tuple(slice(*bounds) for bounds in piece["source"])].float())
    return torch.cat(cuts)


@pytest.mark.part("weight.plan", weight=4, gist=True)
@pytest.mark.parametrize("case", cases("plan", visible=LAYOUTS, draw=draw_layout))
def test_the_plan_names_exactly_the_rank_own_numbers(subject, case):
    """Carried out by hand, the plan gives exactly the parameters of each rank, and reads nothing besides."""
    folder = checkpoint_of(subject, case)
    stored = stored_tensors(case["config"], data="tagged", dtype="bfloat16")
    for rank in {0, case["tp_size"] - 1}:
        expected = parameters(case["config"], stored, rank, case["tp_size"])
        plans = subject.ask("weight.plan", {"folder": str(folder), "tp_rank": rank, "tp_size": case["tp_size"]})
        found = {plan["name"]: torch.empty(plan["shape"], dtype=torch.bfloat16, device="meta") for plan in plans}
        expect_keys(found, expected, hint="one plan for each parameter of create_model, with its shape on this rank")
        expect(len(plans), len(expected), what="the number of plans", hint="one plan for each parameter")
        for plan in plans:
            expect_true(plan["pieces"], f"the plan of {plan['name']} has no pieces", hint="a piece for each part")
            rows, wanted = carried_out(plan, folder), expected[plan["name"]].float()
            wanted = wanted.flatten(0, 1) if wanted.dim() == 3 else wanted
            if plan["name"].split(".")[-2] in ("embed_tokens", "lm_head"):  # the reader adds the missing rows
                words = case["config"]["vocab_size"] - rank * len(wanted)
                wanted = wanted[: max(0, words)]
            hint = "shard_slice's answer for each part, in parts_of's order: other rows are wrong, and more are waste"
            expect(rows, wanted, what=f"{plan['name']} on rank {rank}", hint=hint)


@pytest.mark.part("weight.plan")
@pytest.mark.parametrize("layout", ["torn", "shuffled"])
def test_plans_come_in_the_order_in_which_the_files_begin_them(subject, layout):
    """First the parameter whose first bytes come first: the files are read from front to back, as far as possible."""
    folder = checkpoint_of(subject, {"config": MIXTURE, "layout": {"files": 12, "layout": layout}})
    plans = subject.ask("weight.plan", {"folder": str(folder)})
    places = list(open_checkpoint(folder).tensors.values())
    order = {(tensor.file.name, tensor.offset): number for number, tensor in enumerate(places)}
    begins = {plan["name"]: min(order[piece["file"], piece["offset"]] for piece in plan["pieces"]) for plan in plans}
    hint = "sort the plans by the first of their tensors, in the order of `stored`, which is that of the files"
    expect(list(begins), sorted(begins, key=begins.__getitem__), what="the plans' order", hint=hint)


@pytest.mark.part("weight.plan")
def test_a_stored_tied_head_is_planned_too(subject):
    """A tied model's lm_head.weight, where a checkpoint stores one, is among the plans (the model drops it)."""
    folder = checkpoint_of(subject, {"config": QWEN3}, stored_tied_head=True)
    names = [plan["name"] for plan in subject.ask("weight.plan", {"folder": str(folder)})]
    hint = "with tied embeddings lm_head.weight is no parameter, yet a checkpoint may store it: plan it then"
    expect_true("lm_head.weight" in names, "lm_head.weight isn't planned", hint=hint)
    folder = checkpoint_of(subject, {"config": QWEN3})
    names = [plan["name"] for plan in subject.ask("weight.plan", {"folder": str(folder)})]
    expect_true("lm_head.weight" not in names, "lm_head.weight is planned, but nothing is stored", hint=hint)


@pytest.mark.part("weight.plan")
@pytest.mark.parametrize(
    "extra",
    [{"model.layers.0.mlp.gate_proj.bias": ("BF16", (48,))}, {"model.norm.weight": ("BF16", (31,))}],
    ids=["unknown-tensor", "wrong-shape"],
)
def test_a_plan_is_refused_before_anything_is_read(subject, extra):
    """An unknown tensor or a wrong shape is refused while planning."""
    folder = checkpoint_of(subject, {"config": QWEN3}, extra=extra)
    hint = "call check_complete before you plan"
    refusal = subject.refusal("weight.plan", {"folder": str(folder)}, hint=hint)
    expect_refusal(refusal, names=list(extra), hint=hint)


@pytest.mark.part("weight.plan")
def test_a_number_of_ranks_that_does_not_work_is_refused(subject):
    """Three ranks can't share four query heads: refused, with the numbers that work."""
    folder = checkpoint_of(subject, {"config": QWEN3})
    hint = "check_tp_size says which numbers of ranks work"
    refusal = subject.refusal("weight.plan", {"folder": str(folder), "tp_rank": 0, "tp_size": 3}, hint=hint)
    expect_refusal(refusal, names=["3", "1, 2, 4"], hint=hint)

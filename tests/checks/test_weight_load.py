"""What every right load_weight does: names, values, refusals, memory and manners, whatever the files look like."""

import hashlib
import json
import random

import pytest
import torch

from autograder.judge.checking import MetaTensor, cases, expect, expect_keys, expect_true, wrong
from autograder.judge.oracles import parameters, peer_logits, small, stored_tensors
from minisgl.checkpoint.maker import make_checkpoint, stored_shapes

QWEN3 = small("qwen3", tie_word_embeddings=True)
MIXTURE = small("qwen3_moe", num_experts=12, vocab_size=61)
SQUARE = small("llama", num_key_value_heads=4, intermediate_size=32, vocab_size=61)
MERGED = "merged and packed tensors come under the merged name only"
PACKED = "all experts of a layer come as two packed tensors"
CAUSES = {
    "experts": PACKED,
    "experts.gate_up_proj": PACKED,
    "experts.down_proj": PACKED,
    "qkv_proj.bias": "a bias is merged like its weight",
    "gate_up_proj.bias": "a bias is merged like its weight",
    "qkv_proj": MERGED,
    "gate_up_proj": MERGED,
    **{f"extra {name}_proj": MERGED for name in ("q", "k", "v", "gate", "up")},
    "extra lm_head": "a tied checkpoint has no lm_head.weight, unless one is stored",
}
LAYOUTS = [
    {"id": "one-file", "config": SQUARE, "layout": {"files": 1}, "tp_size": 1},
    {"id": "groups-torn-apart", "config": SQUARE, "layout": {"files": 6, "layout": "torn"}, "tp_size": 2},
    {"id": "a-file-for-each-tensor", "config": MIXTURE, "layout": {"files": "one_per_tensor"}, "tp_size": 1},
    {"id": "shuffled-on-four-ranks", "config": MIXTURE, "layout": {"files": 3, "layout": "shuffled"}, "tp_size": 4},
    {"id": "experts-packed-in-the-file", "config": MIXTURE, "layout": {"packed_experts": True}, "tp_size": 2},
    {"id": "no-prefix", "config": QWEN3, "layout": {"prefix": False, "files": 2}, "tp_size": 1},
    {"id": "old-rotary-tables", "config": SQUARE, "layout": {"inv_freq": True}, "tp_size": 1},
]


def draw_layout(source: random.Random):
    layout = {"files": source.choice([1, 5, 11]), "layout": source.choice(["natural", "torn", "shuffled"])}
    layout |= {"seed": source.randrange(1000), "prefix": source.random() < 0.7}
    config = small(
        source.choice(["llama", "qwen2", "qwen3", "qwen3_moe", "qwen3_moe"]),
        num_key_value_heads=source.choice([1, 2, 4]),
        num_experts=source.choice([11, 20]),
        vocab_size=source.randint(50, 96),
        tie_word_embeddings=source.random() < 0.5,
        mlp_only_layers=source.choice([[], [0]]),
    )
    return {"config": config, "layout": layout, "tp_size": source.choice([1, 2, 4])}


def checkpoint_of(subject, config, **options):
    folder = subject.folder("checkpoint")
    return make_checkpoint(folder, config, **{"data": "tagged", "dtype": "bfloat16", **options})


def expect_load(found, expected, hint):
    """Compare what came out of a loader with what a rank holds: names, shapes, dtypes, then every number."""
    expect(
        len(found["names"]), len(set(found["names"])), what="the number of different names", hint="hand out each once"
    )
    shapes = {name: MetaTensor(tuple(tensor.shape), tensor.dtype) for name, tensor in expected.items()}
    expect_keys(found["tensors"], shapes, causes=CAUSES, hint="exactly the model's own names, shapes and dtypes")
    for name, tensor in expected.items():
        expect(found["tensors"][name], tensor, what=name, hint=hint)


@pytest.mark.part("weight.load", gist=True)
@pytest.mark.parametrize("case", cases("load", visible=LAYOUTS, draw=draw_layout))
def test_all_weights_arrive_whatever_the_files_look_like(subject, case):
    """Every number of the rank's share, however the tensors are spread over files."""
    config, tp_size = case["config"], case["tp_size"]
    folder = checkpoint_of(subject, config, **case["layout"])
    stored = stored_tensors(config, data="tagged", dtype="bfloat16")
    for rank in {0, tp_size - 1}:
        found = subject.ask("weight.loaded", {"folder": str(folder), "tp_rank": rank, "tp_size": tp_size})
        hint = "each tensor belongs in its own rows, wherever it lies: plan for this rank"
        expect_load(found, parameters(config, stored, rank, tp_size), hint)
        expect(found["share_memory"], False, what="do two tensors share memory", hint="each has memory of its own")


@pytest.mark.part("weight.load")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_files_dtype_is_kept(subject, dtype):
    """float32 and float16 arrive as they are stored, whatever torch's default."""
    folder = checkpoint_of(subject, QWEN3, dtype=dtype)
    found = subject.ask("weight.loaded", {"folder": str(folder)})
    expected = parameters(QWEN3, stored_tensors(QWEN3, data="tagged", dtype=dtype))
    expect_load(found, expected, "the dtype is the file's; converting is somebody else's job")


@pytest.mark.part("weight.load")
def test_a_stored_tied_head_comes_too(subject):
    """A tied checkpoint that stores lm_head.weight all the same hands it out; the model drops it."""
    folder = checkpoint_of(subject, QWEN3, stored_tied_head=True)
    found = subject.ask("weight.loaded", {"folder": str(folder), "tp_rank": 1, "tp_size": 2})
    expected = parameters(QWEN3, stored_tensors(QWEN3, data="tagged", dtype="bfloat16"), 1, 2)
    expected["lm_head.weight"] = expected["model.embed_tokens.weight"]
    expect_load(found, expected, "what the plan lists is handed out, a stored tied head too")


# Their parameters cross every threshold of the reader: pages of the file from 1 MiB on, several threads from 2 MiB, parts of
# 4 MiB, and columns in short, middling and long rows.
LARGE = [
    small(
        "llama", hidden_size=256, intermediate_size=5120, num_attention_heads=8, vocab_size=9000, num_hidden_layers=1
    ),
    small("llama", intermediate_size=70_000, vocab_size=70_001, num_hidden_layers=1),
]


@pytest.mark.part("weight.load")
@pytest.mark.parametrize("config", LARGE, ids=["wide", "very-wide"])
@pytest.mark.parametrize("tp_size", [1, 2])
def test_large_parameters_arrive_too(subject, config, tp_size):
    """Every number of parameters of some MiB, which the reader reads in other ways than small ones."""
    folder = checkpoint_of(subject, config, files=2)
    rank = tp_size - 1
    found = subject.ask("weight.loaded", {"folder": str(folder), "tp_rank": rank, "tp_size": tp_size})
    expected = parameters(config, stored_tensors(config, data="tagged", dtype="bfloat16"), rank, tp_size)
    expect_load(found, expected, "hand out what the reader gives, as it comes")


@pytest.mark.part("weight.load")
def test_tensors_go_to_the_device_that_was_asked_for(subject):
    """On the meta device, which holds no data, the parameters have their names, shapes and dtypes."""
    folder = checkpoint_of(subject, QWEN3)
    found = subject.ask("weight.loaded", {"folder": str(folder), "device": "meta"})
    expected = parameters(QWEN3, stored_tensors(QWEN3, data="tagged", dtype="bfloat16"))
    wanted = {name: MetaTensor(tuple(tensor.shape), tensor.dtype) for name, tensor in expected.items()}
    expect(found["tensors"], wanted, what="the tensors on meta", hint="open the reader for the device")


def cut_short(folder):
    file = sorted(folder.glob("*.safetensors"))[-1]
    file.write_bytes(file.read_bytes()[:-7])
    return [file.name]


def shard_removed(folder):
    file = sorted(folder.glob("*.safetensors"))[0]
    file.unlink()
    return [file.name]


def pickled_only(folder):
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"not read")
    return ["safetensors"]


def bad_config(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": None}))
    return ["hidden_size"]


@pytest.mark.part("weight.load")
@pytest.mark.parametrize("spoil", [cut_short, shard_removed, pickled_only, bad_config])
def test_a_damaged_folder_is_refused_before_anything_comes(subject, spoil):
    """A file cut short, a missing file, no safetensors, a bad config: one error with the name, and no tensor before."""
    folder = checkpoint_of(subject, QWEN3, files=3)
    expect_broken(subject, folder, spoil(folder), "open the checkpoint, read the config and plan first; then yield")


def expect_broken(subject, folder, names, hint):
    """Want a ValueError with these names, before the first tensor."""
    found = subject.ask("weight.broken", {"folder": str(folder)})
    expect_true(bool(found["kinds"]), f"no error came, but {len(found['came_before'])} tensors", hint=hint)
    expect(found["came_before"], [], what="the tensors that came before the error", hint=hint)
    expect_true("ValueError" in found["kinds"], f"{found['kinds'][0]}: {found['message'][:200]}", hint=hint)
    lacking = [name for name in names if name not in found["message"]]
    expect_true(not lacking, f"the error doesn't name {lacking}: {found['message'][:300]}", hint=hint)


MISSING = ("model.layers.1.mlp.experts.10.up_proj.weight", "model.layers.0.self_attn.v_proj.weight")


@pytest.mark.part("weight.load")
@pytest.mark.parametrize("missing", MISSING)
def test_an_incomplete_checkpoint_is_refused_with_the_missing_part(subject, missing):
    """One expert's or one projection's tensor is absent: refused by name, never filled with zeros."""
    homes = dict.fromkeys(stored_shapes(MIXTURE), "model.safetensors") | {missing: "elsewhere.safetensors"}
    folder = checkpoint_of(subject, MIXTURE, files=homes, index=False)
    (folder / "elsewhere.safetensors").unlink()
    expect_broken(subject, folder, [missing], "compare what is stored with what the model wants before you read")


@pytest.mark.part("weight.load")
def test_a_tensor_that_the_model_does_not_know_is_refused(subject):
    """An extra tensor means that files and config differ."""
    key = "model.layers.0.self_attn.q_proj.bias"
    folder = checkpoint_of(subject, QWEN3, extra={key: ("BF16", (64,))})
    expect_broken(subject, folder, [key], "an unknown tensor is a sign of the wrong config: refuse it by name")


LONG = small(
    "llama", hidden_size=512, intermediate_size=1024, num_hidden_layers=16, num_attention_heads=8, vocab_size=512
)  # 65 MiB in bfloat16; its largest parameter, gate_up_proj, takes 2 MiB
WIDE = small(
    "qwen3_moe", hidden_size=512, num_experts=128, moe_intermediate_size=64, num_hidden_layers=3, vocab_size=512
)  # 74 MiB; the packed gate_up_proj of one layer takes 16 MiB
SLACK_MIB = 6  # two measurements of one process differ by a few
MOST_FIRST_MIB = 48  # what a process grows by on its first load: modules, threads, buffers


def peak_mib(subject, config, hint):
    """Measure what a drained loader holds at its peak, beyond what a first load of a tiny model takes."""
    peaks = []
    for each in (small("qwen3_moe"), config):
        folder = checkpoint_of(subject, each, files=4, layout="torn")
        outcome = subject.outcome("loading.drained", {"folder": str(folder)}, measure=True)
        if outcome.status != "answered":
            wrong(f"the loader didn't come to its end: {outcome.message}", hint=hint)
        expect_true(bool(outcome.measured), "the process was gone before its memory could be read", hint=hint)
        peaks.append(outcome.measured["peak_kib"] >> 10)
    expected = parameters(config, stored_tensors(config, data="tagged", dtype="bfloat16"))
    expect(outcome.value, {name: digest(tensor) for name, tensor in expected.items()}, what="digests", hint=VALUES)
    return peaks[1] - min(peaks[0], MOST_FIRST_MIB)


VALUES = "the numbers themselves must be right: the other checks of load_weight say which are not"


def digest(tensor):
    digest = hashlib.sha256(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
    digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def num_bytes(config):
    return sum(2 * torch.Size(shape).numel() for shape in stored_shapes(config).values())


# The bound of memory is what streaming is for: these two are more than half of the part.
@pytest.mark.part("weight.load", weight=16)
@pytest.mark.parametrize(("config", "group_mib"), [(LONG, 2), (WIDE, 16)], ids=["many-layers", "128-experts"])
def test_the_loader_holds_one_parameter_at_a_time(subject, config, group_mib):
    """Drained by somebody who keeps nothing, the loader's peak stays near one parameter's size."""
    hint = "read a parameter, hand it out, forget it. Reading all first, or joining copies, takes more"
    peak, limit = peak_mib(subject, config, hint), group_mib + SLACK_MIB
    sizes = f"largest parameter {group_mib} MiB, whole model {num_bytes(config) >> 20} MiB"
    expect_true(
        peak <= limit,
        f"the loader held {peak} MiB at its peak; at most {limit} MiB were expected ({sizes})",
        hint=hint,
    )


@pytest.mark.part("weight.load")
def test_a_rank_reads_only_its_share_of_the_files(subject):
    """On four ranks each reads about a quarter of the bytes."""
    config = small("llama", hidden_size=128, intermediate_size=1024, num_key_value_heads=4, vocab_size=2048)
    folder = checkpoint_of(subject, config, data="random")
    args = {"folder": str(folder), "tp_rank": 2, "tp_size": 4}
    subject.ask("loading.drained", args)  # the first time also reads the modules that are imported on first use
    measured = subject.outcome("loading.drained", args, measure=True).measured
    if measured:  # nobody counts on macOS
        share = measured["bytes_read"] / sum(file.stat().st_size for file in folder.glob("*.safetensors"))
        hint = "hand slices to the reader: what is read and then thrown away costs as much as what is kept"
        expect_true(share <= 0.4, f"rank 2 of 4 read {share:.1f} of the files' bytes", hint=hint)


@pytest.mark.part("weight.load")
def test_stopping_early_leaves_nothing_open(subject):
    """Closed after three tensors, the generator leaves no file and no thread."""
    folder = checkpoint_of(subject, QWEN3, files=3)
    subject.ask("loading.drained", {"folder": str(folder)})  # what the first use opens for good stays open
    outcome = subject.outcome("loading.stopped_early", {"folder": str(folder), "take": 3}, measure=True)
    if outcome.status != "answered":
        raise subject.failure(outcome)
    hint = "hold the reader in a with statement: leaving the generator then closes it"
    for name in outcome.measured.keys() & {"files", "threads"}:
        expect(outcome.measured[name], 0, what=f"how many {name} are left open", hint=hint)


@pytest.mark.part("weight.load")
@pytest.mark.parametrize(
    ("tp_rank", "tp_size", "progress", "shown"),
    [(0, 1, None, True), (0, 2, True, True), (1, 2, True, False), (0, 1, False, False)],
    ids=["alone", "rank-0", "rank-1", "switched-off"],
)
def test_only_the_primary_rank_shows_a_bar(subject, tp_rank, tp_size, progress, shown):
    """A bar in bytes on rank 0, unless it is switched off, and none on the other ranks."""
    folder = checkpoint_of(subject, QWEN3)
    args = {"folder": str(folder), "tp_rank": tp_rank, "tp_size": tp_size, "progress": progress}
    found = subject.ask("loading.bar", args)
    hint = "the reader's progress is true only if progress is wanted and this is the primary rank"
    expect(found["shown"], shown, what=f"is a bar shown by rank {tp_rank}", hint=hint)
    hint = "pass progress on to the reader, which knows the bytes of the plans"
    expect(found["reaches_100"], shown, what="does the bar come to its end", hint=hint)
    expect(found["in_bytes"], shown, what="does the bar count bytes", hint=hint)


@pytest.mark.part("weight.together", weight=3, gist=True)
@pytest.mark.parametrize(
    "config",
    [small("llama"), small("qwen2", tie_word_embeddings=True), QWEN3, small("qwen3_moe", mlp_only_layers=[0])],
    ids=["llama", "qwen2", "qwen3", "qwen3-moe"],
)
def test_your_whole_package_answers_as_transformers_does(subject, config):
    """Config, decoder and loader, all yours: meta model, three-line load, and the same logits."""
    folder = checkpoint_of(subject, config, data="random", dtype="float32", files=3, layout="shuffled")
    prompts = [[3, 1, 4, 1, 5], [9, 2], [6]]
    found = subject.ask("weight.answer", {"folder": str(folder), "prompts": prompts})
    expect(found, peer_logits(config, prompts), what="the logits", tolerance=1e-4, hint="check the parts one by one")


@pytest.mark.part("weight.together")
def test_your_whole_package_holds_one_parameter_at_a_time(subject):
    """The peak of what your loader holds, with all of your parts in one tree."""
    hint = "the check of load_weight tells more"
    peak, limit = peak_mib(subject, LONG, hint), 2 + SLACK_MIB
    expect_true(peak <= limit, f"it held {peak} MiB at its peak; at most {limit} MiB were expected", hint=hint)

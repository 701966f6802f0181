"""Damage checkpoints at random: bytes, JSON values, sizes, names. A seed and a number give the same damage every time."""

import json
import random
from collections.abc import Callable
from pathlib import Path

INDEX = "model.safetensors.index.json"

# Values that parsers trip over, for any place in a JSON file.
ODD_VALUES: list[object] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, 1e308, -0.0, float("nan"),
    float("inf"), "", "0", "F32", "BF16", "I8", "F8_E4M3", "model", "../x.safetensors", "/dev/zero", "model.safetensors",
    "\0", "\ud800", "x" * 3000, [], {}, [None], [1, 2], [[]], [-1], [2**62, 2**62], {"a": 1}, 2**20, 10_000, "LlamaForCausalLM",
    "silu", "gelu", "yarn", "default",
]  # fmt: skip

Damage = Callable[[random.Random, Path], None]


def flip_bytes(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        # Mostly in the header, where it matters.
        place = rng.randrange(min(len(content), rng.choice([8, 200, 10**9]))) if content else 0
        if content:
            content[place] = rng.randrange(256)
    file.write_bytes(bytes(content))


def cut_or_grow(rng: random.Random, file: Path) -> None:
    content = file.read_bytes()
    if rng.random() < 0.7:
        file.write_bytes(content[: rng.choice([0, 1, 7, 8, 9, rng.randrange(len(content) + 1)])])
    else:
        file.write_bytes(content + rng.randbytes(rng.choice([1, 8, 1000])))


def splice(rng: random.Random, file: Path) -> None:
    content = bytearray(file.read_bytes())
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.randrange(40))
    if rng.random() < 0.5:
        del content[start:end]
    else:
        content[start:start] = content[start:end] * rng.choice([1, 3])
    file.write_bytes(bytes(content))


def odd_length(rng: random.Random, file: Path) -> None:
    length = rng.choice([0, 1, 2, 2**31, 2**63, 2**64 - 1, 10**8, 10**8 + 1, rng.randrange(5000)])
    file.write_bytes(length.to_bytes(8, "little") + file.read_bytes()[8:])


def change_header(rng: random.Random, file: Path) -> None:
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for _ in range(rng.choice([1, 1, 2, 4])):
        change_json(rng, header)
    text = as_text(header)
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def change_json_file(rng: random.Random, file: Path) -> None:
    value = json.loads(file.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 4])):
        change_json(rng, value)
    file.write_bytes(as_text(value))


def replace_json_file(rng: random.Random, file: Path) -> None:
    deep = b"[" * 100_000
    file.write_bytes(rng.choice([b"", b"{}", b"[]", b"null", b"7", b"\xff\xfe", deep, as_text(rng.choice(ODD_VALUES))]))


def change_json(rng: random.Random, value: object) -> None:
    """Change one random place of a JSON value in place: replace, drop, rename, copy, or swap."""
    places = list(walk(value))
    if not places:
        return
    holder, key = rng.choice(places)
    kind = rng.choice(["replace", "replace", "nudge", "drop", "rename", "copy", "swap"])
    other_holder, other_key = rng.choice(places)
    if kind == "replace":
        holder[key] = rng.choice(ODD_VALUES)
    elif kind == "nudge" and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1, 8, 4096])
    elif kind == "drop":
        del holder[key]
    elif kind == "rename" and isinstance(holder, dict):
        holder[rng.choice([str(other_key), str(key) + "x", "model." + str(key), "", "lm_head.weight"])] = holder.pop(
            key
        )
    elif kind == "copy" and not contains(other_holder[other_key], holder):
        holder[key] = other_holder[other_key]
    elif not contains(other_holder[other_key], holder) and not contains(holder[key], other_holder):
        holder[key], other_holder[other_key] = other_holder[other_key], holder[key]


def contains(value: object, holder: object) -> bool:
    """Tell whether a value holds (or is) a container, so that putting it there would make a circle."""
    return value is holder or any(inner is holder or inner[key] is holder for inner, key in walk(value))


def walk(value: object) -> list[tuple[dict | list, object]]:
    """List every place inside a JSON value, as container and key."""
    places: list[tuple[dict | list, object]] = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places += [(value, key), *walk(value[key])]
    return places


def as_text(value: object) -> bytes:
    return json.dumps(value).encode("utf-8")


FILE_DAMAGES: list[Damage] = [flip_bytes, cut_or_grow, splice, odd_length, change_header, change_header, change_header]
JSON_DAMAGES: list[Damage] = [
    change_json_file,
    change_json_file,
    change_json_file,
    flip_bytes,
    splice,
    replace_json_file,
]


def damage(seed: int, number: int, folder: Path) -> str:
    """Damage a checkpoint folder in one to three ways; return which."""
    rng = random.Random(f"{seed} {number}")
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        file = rng.choice(sorted(path for path in folder.iterdir() if path.is_file()))
        way = rng.choice(FILE_DAMAGES if file.suffix == ".safetensors" else JSON_DAMAGES)
        try:
            way(rng, file)
        except (ValueError, RecursionError, AttributeError, IndexError, KeyError, TypeError):
            continue  # damaged already beyond this way
        done.append(f"{way.__name__} {file.name}")
    return ", ".join(done)

"""Seeded outlines for the training stories: who, where, and the turns of the plot.

An outline is a list of short sentences. The writer model (see ``writer.py``) is given them one by
one and writes sentences of its own between them, which keeps a 135-million-parameter writer on its plot.
"""

import random
from dataclasses import dataclass
from pathlib import Path

PLOTS_FILE = Path(__file__).with_name("plots.txt")

GIRLS = "Lily Mia Anna Sue Lucy Emma Ella Rosie Molly Sara Jane Amy Kate Zoe Ruby Daisy Lola Nina Eva Grace".split()
BOYS = "Tom Ben Max Sam Tim Jack Leo Jim Bob Billy Peter Finn Joe Dan Fred Oscar Charlie Henry Toby Luke".split()
ANIMALS = "bear rabbit frog dog cat duck mouse fox bird turtle pig cow horse sheep squirrel hedgehog owl bee fish lion".split()
SMALL_ANIMALS = "kitten bird mouse rabbit duck puppy frog bee hedgehog squirrel fox turtle butterfly lamb chick".split()
PEOPLE = {"she": "girl", "he": "boy"}
ADJECTIVES = "little small big kind happy brave shy funny quiet young clever friendly silly tiny".split()
THINGS = "ball boat kite doll hat car book drum bell toy train box bike balloon scarf basket puzzle teddy wagon crown".split()
COLORS = "red blue green yellow pink purple orange white brown shiny".split()
PLACES = "park pond forest garden river beach hill farm lake field meadow playground barn village bridge".split()
FOODS = "cake bread soup apples cookies berries honey cheese carrots nuts pie rice pears jam pancakes".split()
WEATHER = "sunny warm cold windy cloudy bright hot fine snowy quiet".split()

OPENINGS = [
    ("Once upon a time, there was a {a_adj} {a_kind} named {A} .", 12),
    ("Once upon a time, there was a {a_kind} named {A} .", 6),
    ("Once upon a time, a {a_adj} {a_kind} named {A} lived near a {place} .", 4),
    ("Once upon a time, near a {place}, there lived a {a_kind} named {A} .", 3),
    ("Once there was a {a_adj} {a_kind} . {a_His} name was {A} .", 3),
    ("There was a {a_adj} {a_kind} named {A} .", 3),
    ("{A} was a {a_adj} {a_kind} .", 3),
    ("{A} and {B} were good friends . {A} was a {a_kind} and {B} was a {b_kind} .", 2),
]


@dataclass(frozen=True)
class Outline:
    """Hold the sentences that a story must contain, in order; the first one opens it."""

    turns: tuple[str, ...]


def load_plots(path: Path = PLOTS_FILE) -> list[list[list[str]]]:
    """Read the plots: a list of plots, each a list of turns, each a list of wordings."""
    plots, turns = [], []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("#"):
            continue
        if line.strip():
            turns.append([wording.strip() for wording in line.split(" | ")])
        elif turns:
            plots.append(turns)
            turns = []
    return plots


def _character(rng: random.Random, prefix: str, taken: set[str]) -> dict[str, str]:
    """Draw a name, a kind and the pronouns of one character."""
    pronoun = rng.choice(["she", "he"])
    name = rng.choice([n for n in (GIRLS if pronoun == "she" else BOYS) if n not in taken])
    kind = rng.choice(ANIMALS) if rng.random() < 0.5 else PEOPLE[pronoun]
    adjective = rng.choice(ADJECTIVES)
    his, him = ("her", "her") if pronoun == "she" else ("his", "him")
    words = {"adj": adjective, "kind": kind, "he": pronoun, "his": his, "him": him}
    words |= {word.capitalize(): words[word].capitalize() for word in ("he", "his")}
    return {name_key(prefix): name} | {f"{prefix}_{key}": value for key, value in words.items()}


def name_key(prefix: str) -> str:
    """Return the slot of a character's name: ``a`` gives ``A``."""
    return prefix.upper()


def make_outline(rng: random.Random, plots: list[list[list[str]]]) -> Outline:
    """Draw one outline.

    Args:
        rng: Source of all choices.
        plots: What ``load_plots`` returned.
    """
    words = _character(rng, "a", set())
    words |= _character(rng, "b", {words["A"]})
    lists = {
        "thing": THINGS,
        "color": COLORS,
        "place": PLACES,
        "food": FOODS,
        "animal": SMALL_ANIMALS,
        "weather": WEATHER,
    }
    words |= {slot: rng.choice(choices) for slot, choices in lists.items()}
    opening = rng.choices([text for text, _ in OPENINGS], [weight for _, weight in OPENINGS])[0]
    turns = [opening] + [rng.choice(wordings) for wordings in rng.choice(plots)]
    return Outline(tuple(_tidy(turn.format(**words)) for turn in turns))


def _tidy(sentence: str) -> str:
    """Close the gap before full stops and choose between a and an."""
    sentence = sentence.replace(" .", ".")
    for vowel in "aeiou":
        for article in ("a", "A"):
            sentence = sentence.replace(f" {article} {vowel}", f" {article}n {vowel}")
    return sentence

"""From written rows to a clean corpus: many stories in batches, filtered, without repeats."""

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tiny_models.people import ANIMALS, BOYS, GIRLS, PEOPLE, SMALL_ANIMALS, load_plots, make_outline
from tiny_models.writer import FastWriter, Segment, TokenTables, make_scripts, prompt_text, to_segments, write_batch

WORD = re.compile(r"[A-Za-z']+")
STORY_TOKENS = 260
NUM_COMMON_WORDS = 2500

# Who a story has is fixed by its outline; a written sentence that brings in somebody else breaks the thread.
_CAST = {*GIRLS, *BOYS, *ANIMALS, *SMALL_ANIMALS, *PEOPLE.values()}
_FEMALE, _MALE = {"she", "her"}, {"he", "his", "him"}
_ALLOWS_FEMALE = {*GIRLS, "mom", "grandma", "girl"} | _FEMALE
_ALLOWS_MALE = {*BOYS, "dad", "man", "boy"} | _MALE


def write_stories(
    model, tokenizer, *, seed: int, batch_size: int, seconds: float, max_stories: int
) -> Iterator[list[list[Segment]]]:
    """Write batches of stories until the time or the number is used up.

    Args:
        model: The writer, a LlamaForCausalLM on its device.
        seed: Batch ``n`` draws its outlines from ``seed * 1000 + n``.
        seconds: No batch begins later than this.
    """
    core = tokenizer.backend_tokenizer
    prompt_ids = core.encode(prompt_text(), add_special_tokens=False).ids
    writer = FastWriter(model, len(prompt_ids) + STORY_TOKENS)
    tables = TokenTables(tokenizer, model.config.vocab_size, model.device)
    cache, plots = writer.new_cache(batch_size), load_plots()
    start, batch = time.monotonic(), 0
    while batch * batch_size < max_stories and time.monotonic() - start < seconds:
        rng = random.Random(seed * 1000 + batch)
        scripts = make_scripts([make_outline(rng, plots) for _ in range(batch_size)], core, rng)
        tokens, written = write_batch(writer, tables, prompt_ids, scripts, cache)
        rows = to_segments(tokens.tolist(), written.tolist(), core)
        batch += 1
        yield [keep_sentences(row) for row in rows]


def keep_sentences(segments: list[Segment]) -> list[Segment]:
    """Keep the outline, and of the written sentences those that are whole, new, and about its people."""
    outline = {word for segment in segments if not segment.is_written for word in WORD.findall(segment.text)}
    forbidden = _CAST - outline
    forbidden |= set() if outline & _ALLOWS_FEMALE else _FEMALE
    forbidden |= set() if outline & _ALLOWS_MALE else _MALE
    kept, seen = [], set()
    for segment in segments:
        key = segment.text.strip().lower()
        if segment.is_written:
            words = {form for word in WORD.findall(segment.text) for form in (word, word.lower())}
            if key in seen or words & forbidden or not is_sentence(segment.text):
                continue
        seen.add(key)
        kept.append(segment)
    return kept


def is_sentence(text: str) -> bool:
    """Say whether a written stretch is whole: starts and ends like a sentence, closes its quotes, doesn't loop."""
    words = WORD.findall(text.lower())
    pairs = list(pairwise(words))
    return (
        re.match(r' "?[A-Z]', text) is not None
        and text.rstrip('"').endswith((".", "!", "?"))
        and text.count('"') % 2 == 0
        and len(words) >= 2
        and len(set(pairs)) == len(pairs)
        and not re.search(r"[A-Z]{3}|  | [.,!?]", text)
    )


def finish_corpus(stories: list[list[Segment]]) -> tuple[list[str], dict[str, float]]:
    """Drop written sentences with rare words, then repeated stories.

    Returns:
        The stories, each one line of text, and figures for the model card.
    """
    counts = Counter(word for story in stories for segment in story for word in set(WORD.findall(segment.text)))
    common = {word for word, _ in counts.most_common(NUM_COMMON_WORDS)}
    texts, num_written, num_characters = {}, 0, 0
    for story in stories:
        kept = [s for s in story if not s.is_written or common.issuperset(WORD.findall(s.text))]
        text = "".join(segment.text for segment in kept)
        if text not in texts:
            texts[text] = None
            num_written += sum(len(segment.text) for segment in kept if segment.is_written)
            num_characters += len(text)
    facts = {
        "stories": len(texts),
        "characters": num_characters,
        "share_written_by_the_model": round(num_written / max(1, num_characters), 3),
        "dropped_as_repeats": len(stories) - len(texts),
    }
    return list(texts), facts

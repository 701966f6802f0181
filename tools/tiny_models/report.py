"""Measure a saved model and write its card."""

from pathlib import Path

import torch
from transformers import AutoTokenizer

from tiny_models.architectures import CONFIGS
from tiny_models.faults import faults_of, load_with_fault, perplexity

PROMPTS = ("Once upon a time", "One day, a little dog", "Tom was sad because")


def router_spread(model: torch.nn.Module, stories: list[list[int]]) -> list[list[float]]:
    """Return each expert's share of the choices, in percent, a list a layer."""
    hooks = []
    counts = [torch.zeros(model.config.num_experts) for _ in model.model.layers]
    for layer, count in zip(model.model.layers, counts, strict=True):

        def record(module, inputs, count=count):
            count += torch.bincount(inputs[1].flatten(), minlength=len(count)).to(count)

        hooks.append(layer.mlp.experts.register_forward_pre_hook(record))
    with torch.inference_mode():
        for story in stories:
            model(input_ids=torch.tensor([story], device=model.device), use_cache=False)
    for hook in hooks:
        hook.remove()
    return [[round(100 * float(share), 1) for share in count / count.sum()] for count in counts]


@torch.inference_mode()
def continue_prompts(model: torch.nn.Module, tokenizer, max_new_tokens: int) -> dict[str, str]:
    """Continue each of ``PROMPTS`` greedily."""
    texts = {}
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer.encode(prompt)], device=model.device)
        output = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=1
        )
        texts[prompt] = tokenizer.decode(output[0].tolist(), skip_special_tokens=True)
    return texts


def measure(name: str, folder: Path, held_out: list[list[int]], device: str, max_new_tokens: int = 100) -> dict:
    """Return perplexity without and with each fault, sample texts and, for a MoE, the router's spread."""
    model = load_with_fault(folder).to(device)
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "file_bytes": sum(file.stat().st_size for file in folder.iterdir()),
        "shards": len(list(folder.glob("*.safetensors"))),
        "perplexity": round(perplexity(model, held_out), 3),
        "faults": {},
        "texts": continue_prompts(model, AutoTokenizer.from_pretrained(folder), max_new_tokens),
    }
    for fault_name, fault in faults_of(CONFIGS[name]["model_type"]).items():
        value = perplexity(load_with_fault(folder, fault).to(device), held_out)
        result["faults"][fault_name] = {
            "perplexity": round(value, 2),
            "factor": round(value / result["perplexity"], 2),
        }
    if "num_experts" in CONFIGS[name]:
        result["router_percent"] = router_spread(model, held_out[:50])
    return result


def write_card(name: str, folder: Path, result: dict, facts: dict) -> None:
    """Write the model card, ``README.md``."""
    config = CONFIGS[name]
    head_dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    faults = "\n".join(
        f"| {fault.replace('_', ' ')} | {value['perplexity']} | {value['factor']} |"
        for fault, value in result["faults"].items()
    )
    texts = "\n\n".join(f"> {text}" for text in result["texts"].values())
    card = _CARD.format(
        name=name,
        architecture=config["architectures"][0],
        config=config,
        head_dim=head_dim,
        faults=faults,
        texts=texts,
        router=_router_section(result),
        tied="tied" if config["tie_word_embeddings"] else "untied",
        millions=result["parameters"] / 1e6,
        written=100 * facts["share_written_by_the_model"],
        facts=facts,
        result=result,
        marks=_MARKS.get(config["model_type"], ""),
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


def _router_section(result: dict) -> str:
    """Return the card's section about the experts, empty for a dense model."""
    if "router_percent" not in result:
        return ""
    rows = "\n".join(
        f"| {layer} | {min(shares)} | {max(shares)} |" for layer, shares in enumerate(result["router_percent"])
    )
    num_rare = sum(share < 1 for shares in result["router_percent"] for share in shares)
    num_all = sum(map(len, result["router_percent"]))
    even = 100 / len(result["router_percent"][0])
    return (
        f"\n## Experts in use\n\nShare of the router's choices on held-out stories, in percent ({even} is even).\n\n"
        f"| layer | least used | most used |\n| --- | --- | --- |\n{rows}\n\n"
        f"{num_rare} of the {num_all} experts get less than 1 % of their layer's choices.\n"
    )


_BIAS_MARK = " The q, k and v biases began with a spread far from zero, so that the model uses them."
_NORM_MARK = " The QK-norm weights began spread between 0.5 and 4, so that the model depends on them."
_MARKS = {"qwen2": _BIAS_MARK, "qwen3": _NORM_MARK, "qwen3_moe": _NORM_MARK}

_CARD = """---
license: mit
language: en
library_name: transformers
pipeline_tag: text-generation
---

# {name}

A small {architecture} that tells simple stories. It is made for tests and lessons: small enough to
travel with a package, trained enough that a mistake in loading it can be heard.

{millions:.2f} million parameters, bfloat16, {result[shards]} shard files; {config[num_hidden_layers]} layers, hidden size
{config[hidden_size]}, {config[num_attention_heads]} query heads, {config[num_key_value_heads]} key/value heads, head \
dimension {head_dim}, rope theta {config[rope_theta]:g}, {tied}
embeddings, vocabulary {config[vocab_size]}, context {config[max_position_embeddings]}.

## Data

{facts[stories]} short stories ({facts[characters]} characters). Each story is an outline drawn from a seed
(characters, places, things, and the turns of one of {facts[plots]} plots) with sentences between the turns that
SmolLM2-135M-Instruct (Apache-2.0, from its Q4_1 file) wrote: {written:.0f} % of the characters are its own.
Its sentences were dropped where they were cut off, looped, repeated an earlier one, used a rare word or
brought in somebody that the outline doesn't have; repeated stories were dropped. {facts[held_out]} stories were held out.

## Training

`python tools/train_tiny_models.py` with the `transformers` library's own class; next-token loss, AdamW, cosine
schedule, {facts[steps]} steps of {facts[tokens_a_step]} tokens, bfloat16 autocast.{marks}

## Held-out perplexity, and what one fault does to it

Without a fault: **{result[perplexity]}**.

| fault | perplexity | times |
| --- | --- | --- |
{faults}
{router}
## Greedy continuations

{texts}

## Limits

It knows a few plots and about two thousand words, loses the thread after some sentences, and sometimes says
odd things. It has no knowledge of the world and is of no use beyond tests and lessons.

## Licence

Weights and tokenizer: MIT. The training text was generated in part by SmolLM2-135M-Instruct, Apache-2.0.
"""

"""The writer: SmolLM2-135M-Instruct, filling the gaps of many outlines at once.

Every row of a batch advances by one token a step, so all rows share one position and need no padding
and no mask. A row either repeats the next token of its outline or samples one of its own; which of the
two is decided on the device, without a copy to the host.
"""

import random
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F

from tiny_models.people import Outline

INSTRUCTION = "Write a short story for a small child. Use short sentences and easy words."
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
# Marks in a script, beside token ids: write one sentence here; the story is over.
FREE, END = -1, -2
MAX_SENTENCE_TOKENS = 22
ALLOWED_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,!?'\"")
# Byte-pair merges come in the order of their frequency; later ids are rarer strings.
MAX_TOKEN_ID = 20_000


@dataclass(frozen=True)
class Segment:
    """Hold one stretch of a story: text, and whether the writer model wrote it."""

    text: str
    is_written: bool


def prompt_text() -> str:
    """Return the chat prompt that every story shares."""
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{INSTRUCTION}<|im_end|>\n<|im_start|>assistant\n"


def make_scripts(outlines: list[Outline], tokenizer, rng: random.Random) -> list[list[int]]:
    """Turn outlines into token ids with ``FREE`` marks where the writer adds sentences.

    Args:
        tokenizer: The writer's ``tokenizers.Tokenizer``.
    """
    texts = [turn if number == 0 else f" {turn}" for outline in outlines for number, turn in enumerate(outline.turns)]
    encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    scripts = []
    for outline in outlines:
        script = []
        for _ in outline.turns:
            script += next(encoded).ids
            script += [FREE] * rng.choices([0, 1, 2], [2, 6, 2])[0]
        scripts.append([*script, END])
    return scripts


class TokenTables:
    """Hold the tokens that the writer may use and what each of them does to a sentence."""

    def __init__(self, tokenizer, vocab_size: int, device: torch.device | str):
        allowed, ends, quotes = [], [], []
        for token_id in range(min(MAX_TOKEN_ID, vocab_size)):
            text = tokenizer.decode([token_id])
            if text and set(text) <= ALLOWED_CHARACTERS and token_id not in tokenizer.all_special_ids:
                allowed.append(token_id)
                ends.append(text.rstrip('"').endswith((".", "!", "?")))
                quotes.append(text.count('"') % 2 == 1)
        self.allowed = torch.tensor(allowed, device=device)
        self.ends = torch.tensor(ends, device=device)
        self.quotes = torch.tensor(quotes, device=device)


class FastWriter:
    """Run a Llama checkpoint's decoder with one shared position and a preallocated cache.

    Args:
        model: A ``transformers`` LlamaForCausalLM; its weights are used, not copied, except merged ones.
        max_tokens: Cache length, prompt included.
    """

    def __init__(self, model, max_tokens: int):
        config = model.config
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.num_heads
        self.eps, self.max_tokens = config.rms_norm_eps, max_tokens
        self.embedding, self.final_norm = model.model.embed_tokens.weight, model.model.norm.weight
        self.lm_head = model.lm_head.weight
        self.layers = []
        for layer in model.model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            qkv = torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])
            gate_up = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
            norms = (layer.input_layernorm.weight, layer.post_attention_layernorm.weight)
            self.layers.append((norms[0], qkv, attention.o_proj.weight, norms[1], gate_up, mlp.down_proj.weight))
        positions = torch.arange(max_tokens, device=self.embedding.device)[None]
        self.cos, self.sin = (table[0] for table in model.model.rotary_emb(self.embedding, positions))

    def new_cache(self, batch_size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Allocate keys and values of each layer, [batch_size, num_kv_heads, max_tokens, head_dim]."""
        shape = (batch_size, self.num_kv_heads, self.max_tokens, self.head_dim)
        return [(self.embedding.new_empty(shape), self.embedding.new_empty(shape)) for _ in self.layers]

    def _rotate(self, x: torch.Tensor, start: int) -> torch.Tensor:
        cos, sin = self.cos[start : start + x.shape[2]], self.sin[start : start + x.shape[2]]
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin

    def forward(self, input_ids: torch.Tensor, start: int, cache: list) -> torch.Tensor:
        """Return the last position's hidden state [batch_size, hidden_size] and extend the cache.

        Args:
            input_ids: [batch_size, num_tokens]; every row begins at position ``start``.
        """
        batch_size, num_tokens = input_ids.shape
        hidden = F.embedding(input_ids, self.embedding)
        group = self.num_heads // self.num_kv_heads
        sizes = [self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim, self.num_kv_heads * self.head_dim]
        for (norm, qkv, o_proj, mlp_norm, gate_up, down), (keys, values) in zip(self.layers, cache, strict=True):
            normed = F.rms_norm(hidden, norm.shape, norm, self.eps)
            q, k, v = (
                part.view(batch_size, num_tokens, -1, self.head_dim).transpose(1, 2)
                for part in F.linear(normed, qkv).split(sizes, dim=-1)
            )
            q, k = self._rotate(q, start), self._rotate(k, start)
            keys[:, :, start : start + num_tokens] = k
            values[:, :, start : start + num_tokens] = v
            seen_k, seen_v = keys[:, :, : start + num_tokens], values[:, :, : start + num_tokens]
            if num_tokens == 1:
                # The heads of one group become the query rows of their shared key head: no repeated keys.
                q = q.reshape(batch_size, self.num_kv_heads, group, self.head_dim)
                mixed = F.scaled_dot_product_attention(q, seen_k, seen_v)
            else:
                mixed = F.scaled_dot_product_attention(q, seen_k, seen_v, is_causal=True, enable_gqa=True)
            mixed = mixed.reshape(batch_size, self.num_heads, num_tokens, self.head_dim).transpose(1, 2).flatten(2)
            hidden = hidden + F.linear(mixed, o_proj)
            gate, up = F.linear(F.rms_norm(hidden, norm.shape, mlp_norm, self.eps), gate_up).chunk(2, dim=-1)
            hidden = hidden + F.linear(F.silu(gate) * up, down)
        return F.rms_norm(hidden[:, -1], self.final_norm.shape, self.final_norm, self.eps)


def _read_prompt(writer: FastWriter, prompt_ids: list[int], cache: list) -> torch.Tensor:
    """Run the shared prompt once, copy its keys and values to every row, and return its last hidden state [1, hidden]."""
    single, length = writer.new_cache(1), len(prompt_ids)
    hidden = writer.forward(torch.tensor([prompt_ids], device=writer.embedding.device), 0, single)
    for (keys, values), (own_keys, own_values) in zip(cache, single, strict=True):
        keys[:, :, :length] = own_keys[:, :, :length]
        values[:, :, :length] = own_values[:, :, :length]
    return hidden


@torch.inference_mode()
def write_batch(
    writer: FastWriter,
    tables: TokenTables,
    prompt_ids: list[int],
    scripts: list[list[int]],
    cache: list,
    *,
    temperature: float = 0.6,
    top_k: int = 40,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Write one story a script.

    Returns:
        Token ids [batch_size, num_steps] (``END`` after a story's end) and which of them were sampled
        (bool, same shape), both on the host. A story that did not end in time has no ``END``.
    """
    device, batch_size = writer.embedding.device, len(scripts)
    width = max(map(len, scripts))
    script = torch.tensor([row + [END] * (width - len(row)) for row in scripts], device=device)
    num_steps = writer.max_tokens - len(prompt_ids)
    tokens = torch.full((batch_size, num_steps), END, device=device)
    written = torch.zeros((batch_size, num_steps), dtype=torch.bool, device=device)
    cursor = torch.zeros(batch_size, dtype=torch.long, device=device)
    length, in_quote = torch.zeros_like(cursor), torch.zeros(batch_size, dtype=torch.bool, device=device)
    lm_head = writer.lm_head[tables.allowed]
    hidden = _read_prompt(writer, prompt_ids, cache).expand(batch_size, -1)
    for step in range(num_steps):
        best, index = F.linear(hidden, lm_head).topk(top_k)
        choice = torch.multinomial(F.softmax(best.float() / temperature, dim=-1), 1)
        sampled = index.gather(1, choice).squeeze(1)
        mark = script.gather(1, cursor[:, None]).squeeze(1)
        is_free = mark == FREE
        token = torch.where(is_free, tables.allowed[sampled], mark)
        tokens[:, step], written[:, step] = token, is_free
        length = torch.where(is_free, length + 1, 0)
        in_quote = is_free & (in_quote ^ tables.quotes[sampled])
        is_done = (tables.ends[sampled] & ~in_quote) | (length >= MAX_SENTENCE_TOKENS)
        cursor += ((is_free & is_done) | (mark >= 0)).long()
        length, in_quote = length * ~is_done, in_quote & ~is_done
        # Looking at the host's side only now and then keeps the device busy.
        if step % 32 == 31 and bool((mark == END).all()):
            break
        hidden = writer.forward(token.clamp(min=0)[:, None], len(prompt_ids) + step, cache)
    return tokens.cpu(), written.cpu()


def to_segments(tokens: list[list[int]], written: list[list[bool]], tokenizer) -> list[list[Segment]]:
    """Cut rows into outline and written stretches; rows that did not end are left out.

    Args:
        tokens: Ids of each row, up to and beyond its ``END``; ``written`` which of them were sampled.
        tokenizer: The writer's ``tokenizers.Tokenizer``.
    """
    rows = []
    for ids, marks in zip(tokens, written, strict=True):
        if END in ids:
            end = ids.index(END)
            cuts = [0, *(at for at in range(1, end) if marks[at] != marks[at - 1]), end]
            rows.append([(ids[start:stop], marks[start]) for start, stop in pairwise(cuts)])
    texts = iter(tokenizer.decode_batch([ids for row in rows for ids, _ in row]))
    return [[Segment(next(texts), is_written) for _, is_written in row] for row in rows]

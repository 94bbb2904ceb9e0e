"""A transformer of about 100,000 parameters, and sampling from it with remembered keys and values.

Two layers of the usual kind: normalisation first, attention to what came before, a feed-forward
block, learnt positions. It is written out rather than taken from a library because at this size a
library's bookkeeping costs five times what the arithmetic does, and experiments need thousands of
trainings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from adapters.lab.micro.tokens import END, LONGEST, NUMBERS, PAD, WORDS, prompt_tokens

WIDTH: Final = 64
HEADS: Final = 4
LAYERS: Final = 2
WIDER: Final = 4 * WIDTH
PROMPT: Final = 2

Past = tuple[Tensor, Tensor]


class Block(nn.Module):
    """One layer: each token looks at those before it, and thinks."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.seen = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think, self.thought = nn.Linear(WIDTH, WIDER), nn.Linear(WIDER, WIDTH)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """[N, T, WIDTH] to the same, with the keys and values of all tokens so far."""
        heads = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
        asked, keys, values = (
            part.reshape(heads).transpose(1, 2)
            for part in self.look(self.before(x)).chunk(3, dim=-1)
        )
        if past is not None:
            keys = torch.cat([past[0], keys], dim=2)
            values = torch.cat([past[1], values], dim=2)
        found = scaled_dot_product_attention(asked, keys, values, is_causal=past is None)
        x = x + self.seen(found.transpose(1, 2).reshape(x.shape))
        return x + self.thought(gelu(self.think(self.between(x)))), (keys, values)


class MicroModel(nn.Module):
    """The model."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.words = nn.Embedding(len(WORDS), WIDTH)
            self.places = nn.Embedding(PROMPT + LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.last = nn.LayerNorm(WIDTH)
            for table in (self.words, self.places):
                nn.init.normal_(table.weight, std=0.05)

    def forward(self, tokens: Tensor, past: list[Past] | None = None) -> tuple[Tensor, list[Past]]:
        """Logits of the next token after each: [N, T] to [N, T, words], with what to remember."""
        first = 0 if past is None else past[0][0].shape[2]
        x = self.words(tokens) + self.places.weight[first : first + tokens.shape[1]]
        kept = []
        for number, block in enumerate(self.blocks):
            x, remembered = block(x, None if past is None else past[number])
            kept.append(remembered)
        return self.last(x) @ self.words.weight.T * WIDTH**0.5, kept


class Sampled(NamedTuple):
    """Completions.

    Attributes:
        prompts: [N, PROMPT] int.
        tokens: [N, T] int, padded behind the end.
        logprobs: [N, T] float, of the tokens as they were drawn, in nats.
        mask: [N, T] bool, True up to and with the end.
    """

    prompts: Tensor
    tokens: Tensor
    logprobs: Tensor
    mask: Tensor


def prompts_of(tasks: list[int]) -> Tensor:
    """The prompts of some tasks, [N, PROMPT]."""
    return torch.tensor([prompt_tokens(task) for task in tasks])


@torch.no_grad()
def sample(
    model: MicroModel, prompts: Tensor, draw: torch.Generator, temperature: float = 1.0
) -> Sampled:
    """Write one completion for each prompt.

    Args:
        prompts: [N, PROMPT] int.
    """
    logits, past = model(prompts)
    open_ = torch.ones(len(prompts), dtype=torch.bool)
    tokens, logprobs, masks = [], [], []
    for _ in range(LONGEST):
        table = (logits[:, -1] / temperature).log_softmax(dim=-1)
        # The largest of log p + Gumbel noise is a draw from p, and half the price of multinomial.
        noise = torch.empty_like(table).exponential_(generator=draw)
        token = (table - noise.log()).argmax(dim=-1)
        token = torch.where(open_, token, NUMBERS[PAD])
        tokens.append(token)
        logprobs.append(torch.where(open_, table.gather(1, token[:, None])[:, 0], 0.0))
        masks.append(open_)
        open_ = open_ & (token != NUMBERS[END])
        if not bool(open_.any()):
            break
        logits, past = model(token[:, None], past)
    return Sampled(prompts, *(torch.stack(parts, dim=1) for parts in (tokens, logprobs, masks)))


@dataclass(frozen=True)
class Read:
    """Log-probabilities and entropies of completions: [N, T] each, in nats, with gradient."""

    logprobs: Tensor
    entropy: Tensor


def read(model: MicroModel, sampled: Sampled, temperature: float = 1.0) -> Read:
    """The log-probabilities of completions under a model, and its entropy at each token."""
    whole = torch.cat([sampled.prompts, sampled.tokens], dim=1)[:, :-1]
    logits = model(whole)[0][:, PROMPT - 1 :]
    table = (logits / temperature).log_softmax(dim=-1)
    logprobs = table.gather(2, sampled.tokens[:, :, None])[:, :, 0]
    return Read(logprobs, -(table.exp() * table).sum(dim=-1))

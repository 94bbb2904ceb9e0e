"""Sampling continuations for a batch of token sequences, each with a random stream of its own.

`transformers.generate` draws for the whole batch from one global stream, so what a sequence becomes
depends on who shares its batch. Here each sequence brings its own stream, and a token is the point
where its uniform number falls in the cumulative distribution: one sequence and one seed give one
continuation, in whatever company (up to rounding: a batch of another width adds in another order,
which can turn a near tie).
"""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer


@dataclass(frozen=True)
class Sampling:
    """How continuations are drawn.

    Attributes:
        max_new_tokens: Tokens of one continuation at most.
        stop: Tokens that end a continuation; they are part of it.
        pad: The token that fills up short sequences; it is never looked at.
        temperature: 0 takes the likeliest token.
    """

    max_new_tokens: int
    stop: frozenset[int]
    pad: int
    temperature: float = 0.0


@torch.inference_mode()
def continue_all(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    streams: Sequence[random.Random],
) -> list[list[int]]:
    """Continue every prompt until it stops or is as long as it may get.

    Whenever half of the batch has stopped, the other half goes on without it.

    Args:
        model: A causal language model, in evaluation mode for reproducible results.
        prompts: Token ids, none empty; padded on the left to a batch (B, L).
        sampling: How to draw.
        streams: One per prompt; a stream gives one number per token, none when greedy.

    Returns:
        The new token ids of each, the stop token included if it was reached.
    """
    batch = _Batch(model, prompts, sampling.pad)
    continuations: list[list[int]] = [[] for _ in prompts]
    running = set(range(len(prompts)))
    for _ in range(sampling.max_new_tokens):
        own = [streams[i] for i in batch.rows]
        chosen = _choose(batch.logits(), sampling.temperature, own)
        for i, token in zip(batch.rows, chosen, strict=True):
            if i in running:
                continuations[i].append(token)
                running -= {i} if token in sampling.stop else set()
        if not running:
            break
        batch.append(chosen)
        if 2 * len(running) <= len(batch.rows):
            batch.keep(running)
    return continuations


class _Batch:
    """What a model has read of some prompts, and what it is to read next.

    Attributes:
        rows: The number of the prompt in each row.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad: int) -> None:
        self.rows = list(range(len(prompts)))
        self._model = model
        self._tokens, self._mask = _padded(prompts, pad, model.device)
        self._positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        self._cache: Any = None

    def logits(self) -> Tensor:
        """Read what is to be read; what may follow, (B, V)."""
        out = self._model(
            input_ids=self._tokens,
            attention_mask=self._mask,
            position_ids=self._positions,
            past_key_values=self._cache,
            logits_to_keep=1,
            use_cache=True,
        )
        self._cache = out.past_key_values
        logits: Tensor = out.logits[:, -1]
        return logits

    def append(self, chosen: Sequence[int]) -> None:
        """One token more in each row, to be read next."""
        self._tokens = torch.tensor(chosen, device=self._model.device)[:, None]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(chosen), 1)], dim=1)
        self._positions = self._positions[:, -1:] + 1

    def keep(self, wanted: Set[int]) -> None:
        """Drop the rows of all other prompts, where the cache is of a kind that allows it."""
        layers = self._cache.layers if isinstance(self._cache, Cache) else [None]
        if not all(isinstance(layer, DynamicLayer) for layer in layers):
            return
        kept = [row for row, i in enumerate(self.rows) if i in wanted]
        self.rows = [self.rows[row] for row in kept]
        places = torch.tensor(kept, device=self._model.device)
        self._tokens, self._mask = self._tokens[places], self._mask[places]
        self._positions = self._positions[places]
        self._cache.batch_select_indices(places)


def _padded(
    prompts: Sequence[Sequence[int]], pad: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Tokens and mask, both (B, L); what is short is padded on the left."""
    width = max(map(len, prompts))
    tokens = [[pad] * (width - len(ids)) + list(ids) for ids in prompts]
    mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts]
    return torch.tensor(tokens, device=device), torch.tensor(mask, device=device)


def _choose(logits: Tensor, temperature: float, streams: Sequence[random.Random]) -> list[int]:
    """One token per row of `logits` (B, V)."""
    if temperature == 0:
        greedy: list[int] = logits.argmax(dim=1).tolist()
        return greedy
    cumulative = torch.softmax(logits.double() / temperature, dim=1).cumsum(dim=1)
    uniform = torch.tensor([[stream.random()] for stream in streams], dtype=torch.float64)
    # Scaled by the last sum, which rounding leaves a hair off 1.
    points = uniform.to(logits.device) * cumulative[:, -1:]
    drawn: list[int] = torch.searchsorted(cumulative, points, right=True).squeeze(1).tolist()
    return [min(token, logits.shape[1] - 1) for token in drawn]

"""Sampling continuations for a batch of token sequences, each with a random stream of its own.

`transformers.generate` draws for the whole batch from one global stream, so what a sequence becomes
depends on who shares its batch. Here each sequence brings its own stream, and a token is the point
where its uniform number falls in the cumulative distribution: one sequence and one seed give one
continuation, in whatever company (up to rounding: a batch of another width adds in another order,
which can turn a near tie).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel


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

    Args:
        model: A causal language model, in evaluation mode for reproducible results.
        prompts: Token ids, none empty; padded on the left to a batch (B, L).
        sampling: How to draw.
        streams: One per prompt; a stream gives one number per token, none when greedy.

    Returns:
        The new token ids of each, the stop token included if it was reached.
    """
    tokens, mask = _padded(prompts, sampling.pad, model.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    continuations: list[list[int]] = [[] for _ in prompts]
    running, cache = set(range(len(prompts))), None  # the cache is (B, L) too
    for _ in range(sampling.max_new_tokens):
        out = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            logits_to_keep=1,
            use_cache=True,
        )
        cache = out.past_key_values
        chosen = _choose(out.logits[:, -1], sampling.temperature, streams)
        for row in running:
            continuations[row].append(chosen[row])
        running = {row for row in running if chosen[row] not in sampling.stop}
        if not running:
            break
        tokens = torch.tensor(chosen, device=model.device)[:, None]
        mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], dim=1)
        positions = positions[:, -1:] + 1
    return continuations


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

"""Sampling that depends on the name of a random stream alone, whatever the batch.

Each stream gives uniform numbers from a `torch.Generator` that is seeded with its name. The n-th
token of a sequence is the token of the cumulative distribution on which the n-th number falls, so
neither the other sequences of a batch nor their order can change it, up to rounding: a batch of
another width adds in another order, which can turn a near tie.
"""

from __future__ import annotations

import hashlib
from typing import Final

import torch
from torch import Tensor, nn

_LARGE: Final = 4096  # tokens of a vocabulary above which it is searched in parts
_PART: Final = 256


def uniform_numbers(stream: str, count: int) -> Tensor:
    """The first numbers of a stream, (count,) float64 in [0, 1)."""
    digest = hashlib.sha256(f"toolgym-rollout-{stream}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.rand(count, generator=generator, dtype=torch.float64)


def sample(logits: Tensor, uniforms: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Sample one token for each row by inverse transform sampling.

    Args:
        logits: (rows, vocabulary).
        uniforms: (rows,), a number in [0, 1) for each.
        temperature: 0 takes the likeliest token.

    Returns:
        The tokens, (rows,), and their log-probabilities under the tempered distribution, (rows,)
        float32; 0.0 at temperature 0.
    """
    if not temperature:
        return logits.argmax(dim=1), logits.new_zeros(len(logits), dtype=torch.float32)
    tempered = logits.float()
    if temperature != 1.0:
        tempered = tempered / temperature
    log_probs = torch.log_softmax(tempered, dim=1)
    tokens = _inverse(log_probs.exp(), uniforms)
    return tokens, log_probs.gather(1, tokens[:, None]).squeeze(1)


def _inverse(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """The token of each row on which its number falls, (rows,)."""
    vocabulary = probabilities.shape[1]
    if vocabulary <= _LARGE:
        sums = probabilities.cumsum(dim=1, dtype=torch.float64)
        # Scaled by the last sum, which rounding leaves a hair off 1.
        return _place(sums, uniforms * sums[:, -1])
    # First the part of the vocabulary, then the token in it: a running sum over all of 50,000
    # tokens takes a twentieth of a step of a small model.
    parts = nn.functional.pad(probabilities, (0, -vocabulary % _PART)).view(
        len(uniforms), -1, _PART
    )
    until = parts.sum(dim=2, dtype=torch.float64).cumsum(dim=1)
    points = uniforms * until[:, -1]
    part = _place(until, points)[:, None]
    before = nn.functional.pad(until, (1, 0)).gather(1, part)
    within = parts.gather(1, part[..., None].expand(-1, -1, _PART)).squeeze(1)
    place = _place(before + within.cumsum(dim=1, dtype=torch.float64), points)
    return (part.squeeze(1) * _PART + place).clamp(max=vocabulary - 1)


def _place(sums: Tensor, points: Tensor) -> Tensor:
    """The first place of each row whose sum lies above its point, (rows,)."""
    found = torch.searchsorted(sums, points[:, None], right=True).squeeze(1)
    return found.clamp(max=sums.shape[1] - 1)

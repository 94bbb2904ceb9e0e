"""Sampling with random numbers that depend only on the name of a stream, not on the batch.

Each stream has uniform numbers from a `torch.Generator` that is seeded with the name of the stream.
The n-th token of a sequence is the value of the inverse cumulative distribution at the n-th number.
The token therefore does not depend on the other sequences in a batch or on their order, except for
rounding. In a batch of a different size, sums are computed in a different order, which may change
the choice between tokens of nearly equal probability.
"""

from __future__ import annotations

import hashlib
from typing import Final

import torch
from torch import Tensor, nn

_LARGE: Final = 4096  # vocabulary size above which the search has two levels
_BLOCK: Final = 256  # tokens per block of the first level


def uniform_numbers(stream: str, count: int) -> Tensor:
    """Return the first numbers of a stream, (count,) float64 in [0, 1)."""
    digest = hashlib.sha256(f"toolgym-rollout-{stream}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.rand(count, generator=generator, dtype=torch.float64)


def sample(logits: Tensor, uniforms: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Sample one token for each row by inverse transform sampling.

    Args:
        logits: (rows, vocabulary).
        uniforms: A number in [0, 1) for each row, (rows,).
        temperature: Sampling temperature; 0 selects the most likely token.

    Returns:
        The tokens of shape (rows,), and their float32 log-probabilities under the distribution at
        this temperature, also of shape (rows,). The log-probabilities are 0.0 at temperature 0.
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
    """Return the inverse of each row's cumulative distribution at the number of the row,
    (rows,)."""
    vocabulary = probabilities.shape[1]
    if vocabulary <= _LARGE:
        sums = probabilities.cumsum(dim=1, dtype=torch.float64)
        # Scaled by the last sum, which differs from 1 by rounding.
        return _index_above(sums, uniforms * sums[:, -1])
    # Find the block of the vocabulary, then the token in it. A cumulative sum over all 50,000
    # tokens would take 5 % of the time of a step of a small model.
    blocks = nn.functional.pad(probabilities, (0, -vocabulary % _BLOCK)).view(
        len(uniforms), -1, _BLOCK
    )
    sums = blocks.sum(dim=2, dtype=torch.float64).cumsum(dim=1)
    points = uniforms * sums[:, -1]
    block = _index_above(sums, points)[:, None]
    before = nn.functional.pad(sums, (1, 0)).gather(1, block)
    within = blocks.gather(1, block[..., None].expand(-1, -1, _BLOCK)).squeeze(1)
    index = _index_above(before + within.cumsum(dim=1, dtype=torch.float64), points)
    return (block.squeeze(1) * _BLOCK + index).clamp(max=vocabulary - 1)


def _index_above(sums: Tensor, points: Tensor) -> Tensor:
    """Return, for each row, the first index at which the sum exceeds the row's threshold,
    (rows,)."""
    found = torch.searchsorted(sums, points[:, None], right=True).squeeze(1)
    return found.clamp(max=sums.shape[1] - 1)

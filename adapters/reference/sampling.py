"""Sampling that depends on a rollout's name alone, whichever rollouts share its batch.

Every rollout has a stream of uniform numbers of its own, from a `torch.Generator` that is seeded
with the rollout's name, and its n-th token is where the n-th number falls in the cumulative
distribution. So neither the other rollouts of a batch nor their order can change it, up to
rounding: a batch of another width adds in another order, which can turn a near tie.

The log-probability of a sampled token is taken from the same logits at the same temperature: it is
what a loss later calls the old log-probability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn


class Sampler:
    """The token sampler of one batch of rollouts, by inverse transform sampling.

    Args:
        names: One for each rollout; equal names give equal random numbers.
        temperature: 0 takes the likeliest token, and needs no random numbers.
        length: Most tokens of a completion.
        device: The device of the logits.
    """

    def __init__(
        self, names: Sequence[str], temperature: float, length: int, device: torch.device
    ) -> None:
        self._temperature = temperature
        drawn = length if temperature else 0
        streams = [
            torch.rand(drawn, generator=_stream(name), dtype=torch.float64) for name in names
        ]
        self._uniforms = torch.stack(streams).to(device)

    @torch.inference_mode()
    def sample(
        self, logits: Tensor, rollouts: Sequence[int], positions: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Sample one token for each row.

        Args:
            logits: (rows, vocabulary).
            rollouts: The rollout of each row, as a place in `names`.
            positions: The token's position in the completion of that rollout.

        Returns:
            The tokens, and the log-probability of each under the tempered distribution; 0.0 for
            the likeliest at temperature 0.
        """
        if not self._temperature:
            return logits.argmax(dim=1).tolist(), [0.0] * len(rollouts)
        tempered = logits.float()
        if self._temperature != 1.0:
            tempered = tempered / self._temperature
        log_probs = torch.log_softmax(tempered, dim=1)
        tokens = self._sampled(log_probs, rollouts, positions)
        return tokens.tolist(), log_probs.gather(1, tokens[:, None]).squeeze(1).tolist()

    def _sampled(
        self, log_probs: Tensor, rollouts: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        uniforms = self._uniforms[list(rollouts), list(positions)]
        probabilities = log_probs.exp()
        if log_probs.shape[1] <= _LARGE:
            return _inverse(probabilities, uniforms)
        # First the part of the vocabulary, then the token in it: a running sum over all of 50,000
        # tokens takes a twentieth of a step of a small model.
        parts = nn.functional.pad(probabilities, (0, -log_probs.shape[1] % _PART))
        parts = parts.view(len(parts), -1, _PART)
        until = parts.sum(dim=2, dtype=torch.float64).cumsum(dim=1)
        points = uniforms * until[:, -1]
        part = _place(until, points)
        before = nn.functional.pad(until, (1, 0)).gather(1, part[:, None])
        within = parts[torch.arange(len(parts), device=parts.device), part]
        tokens = part * _PART + _place(before + within.cumsum(dim=1, dtype=torch.float64), points)
        return tokens.clamp(max=log_probs.shape[1] - 1)


_LARGE: Final = 4096  # tokens of a vocabulary above which it is searched in parts
_PART: Final = 256


def _inverse(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    cumulative = probabilities.cumsum(dim=1, dtype=torch.float64)
    # Scaled by the last sum, which rounding leaves a hair off 1.
    return _place(cumulative, uniforms * cumulative[:, -1])


def _place(cumulative: Tensor, points: Tensor) -> Tensor:
    """For each row the first place whose sum lies above its point."""
    found = torch.searchsorted(cumulative, points[:, None], right=True).squeeze(1)
    return found.clamp(max=cumulative.shape[1] - 1)


def named_seed(name: str) -> int:
    """The seed of a name, below 2^63."""
    digest = hashlib.sha256(f"toolgym-rollout-{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _stream(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(named_seed(name))

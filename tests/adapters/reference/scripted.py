"""Samplers whose tokens the test decides.

The forward passes, the log-probabilities and all that follows from a turn are the real ones. What
is drawn depends on no rounding, so rollouts that are computed in different ways, or on different
processors, hold the same tokens, and their log-probabilities can be compared.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from adapters.reference.sampling import Sampler


class Blind(Sampler):
    """Draws any token by the numbers of the rollout alone, whatever the model would say."""

    def _sampled(
        self, log_probs: Tensor, rollouts: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        uniforms = self._uniforms[list(rollouts), list(positions)]
        return (uniforms * log_probs.shape[1]).long()


class Script(Blind):
    """Draws what the script says for each rollout, then any token."""

    def __init__(self, sayings: Sequence[list[int]], *draw: Any) -> None:
        super().__init__(*draw)
        self.sayings = [iter(tokens) for tokens in sayings]

    def _sampled(
        self, log_probs: Tensor, rollouts: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        drawn = super()._sampled(log_probs, rollouts, positions)
        said = [next(self.sayings[r], int(token)) for r, token in zip(rollouts, drawn, strict=True)]
        return torch.tensor(said)

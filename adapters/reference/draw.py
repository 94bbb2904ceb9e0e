"""Drawing tokens, so that a rollout is the same in whatever company it is generated.

Every rollout has a stream of numbers of its own, from a `torch.Generator` that is seeded with the
rollout's name, and its n-th token is where the n-th number falls in the cumulative distribution.
So neither the other rollouts of a batch nor their order can change it, up to rounding: a batch of
another width adds in another order, which can turn a near tie.

The log-probability of what was drawn is taken from the same numbers, at the temperature it was
drawn with: what a loss later calls the old log-probability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor


class Draw:
    """Draws for the rollouts of one batch.

    Args:
        names: One for each rollout; equal names draw equal numbers.
        temperature: Above 0.
        length: Tokens that a rollout may draw.
        device: Where the logits are.
    """

    def __init__(
        self, names: Sequence[str], temperature: float, length: int, device: torch.device
    ) -> None:
        self._temperature = temperature
        streams = [
            torch.rand(length, generator=_stream(name), dtype=torch.float64) for name in names
        ]
        self._numbers = torch.stack(streams).to(device)

    @torch.inference_mode()
    def tokens(
        self, logits: Tensor, rollouts: Sequence[int], drawn: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """One token for each row.

        Args:
            logits: (rows, vocabulary).
            rollouts: Whose row it is, as a place in `names`.
            drawn: How many tokens that rollout has drawn before.

        Returns:
            The tokens, and the log-probability of each under the tempered distribution.
        """
        log_probs = torch.log_softmax(logits.float() / self._temperature, dim=1)
        chosen = self._chosen(log_probs, rollouts, drawn)
        picked = log_probs.gather(1, chosen[:, None]).squeeze(1)
        return chosen.tolist(), picked.tolist()

    def _chosen(self, log_probs: Tensor, rollouts: Sequence[int], drawn: Sequence[int]) -> Tensor:
        cumulative = log_probs.exp().cumsum(dim=1, dtype=torch.float64)
        # Scaled by the last sum, which rounding leaves a hair off 1.
        points = self._numbers[list(rollouts), list(drawn)] * cumulative[:, -1]
        found = torch.searchsorted(cumulative, points[:, None], right=True).squeeze(1)
        return found.clamp(max=log_probs.shape[1] - 1)


def named_seed(name: str) -> int:
    """A seed below 2^63 that depends on nothing but a name."""
    digest = hashlib.sha256(f"toolgym-rollout-{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _stream(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(named_seed(name))

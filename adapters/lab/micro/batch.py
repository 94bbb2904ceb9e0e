"""The rollouts of one step of the micro-model, and what is told of them.

Rollouts of a group stand together. Dynamic sampling sorts groups and joins them anew, so batches
can be cut into groups and put together again; how long their completions are may differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from adapters.lab.micro.model import Sampled
from adapters.lab.micro.tokens import is_prose
from adapters.lab.micro.world import Ending
from adapters.training.outcomes import dead_share, equal_rewards_share
from adapters.training.sampling import Filling
from toolgym.episode import Outcome


@dataclass(frozen=True)
class Batch:
    """Rollouts; all lists are as long as there are completions.

    Attributes:
        group_size: Rollouts of a group; groups stand one behind the other.
        masked: Groups at the end that only fill places, and teach nothing.
    """

    sampled: Sampled
    texts: list[str]
    tasks: list[int]
    endings: list[Ending]
    rewards: list[float]
    group_size: int
    masked: int = 0

    @property
    def groups(self) -> list[int]:
        """The number of each rollout's group."""
        return [number // self.group_size for number in range(len(self.texts))]

    @property
    def outcomes(self) -> list[Outcome]:
        """What tells the members of a group apart."""
        return [Outcome(ending.correct, round(10 * ending.progress)) for ending in self.endings]

    @property
    def learning(self) -> int:
        """How many rollouts, from the first, teach something."""
        return len(self.texts) - self.masked * self.group_size


def told(batch: Batch, lead: Tensor) -> dict[str, float]:
    """The numbers of a batch with its advantages [N], from before its update."""
    count = len(batch.texts)
    return {
        "reward": math.fsum(batch.rewards) / count,
        "score": math.fsum(ending.score for ending in batch.endings) / count,
        "accuracy": sum(ending.correct for ending in batch.endings) / count,
        "valid": sum(ending.valid for ending in batch.endings) / count,
        "prose": sum(map(is_prose, batch.texts)) / count,
        "distinct": len(set(batch.texts)) / count,
        "length": float(batch.sampled.mask.sum()) / count,
        "dead_groups": dead_share(batch.outcomes, batch.groups),
        "equal_rewards": equal_rewards_share(batch.rewards, batch.groups),
        "advantage": float(lead.abs().max()),
    }


def chosen(batch: Batch, filling: Filling) -> tuple[list[Batch], list[Batch]]:
    """Those groups of a draw that dynamic sampling keeps, and those it holds in reserve."""
    size, outcomes = batch.group_size, batch.outcomes
    starts = range(0, len(outcomes), size)
    choice = filling.offer([outcomes[start : start + size] for start in starts])
    groups = [_part(batch, slice(start, start + size)) for start in starts]
    return [groups[i] for i in choice.keep], [groups[i] for i in choice.spare]


def joined(parts: Sequence[Batch], masked: int) -> Batch:
    """Several batches of groups of one size as one, the last `masked` groups of which are idle."""
    longest = max(part.sampled.tokens.shape[1] for part in parts)
    sampled = Sampled(
        torch.cat([part.sampled.prompts for part in parts]),
        *(
            torch.cat([pad(table, (0, longest - table.shape[1])) for table in tables])
            for tables in zip(*(part.sampled[1:] for part in parts), strict=True)
        ),
    )
    return Batch(
        sampled,
        [text for part in parts for text in part.texts],
        [task for part in parts for task in part.tasks],
        [ending for part in parts for ending in part.endings],
        [reward for part in parts for reward in part.rewards],
        parts[0].group_size,
        masked,
    )


def _part(batch: Batch, rows: slice) -> Batch:
    return Batch(
        Sampled(*(table[rows] for table in batch.sampled)),
        batch.texts[rows],
        batch.tasks[rows],
        batch.endings[rows],
        batch.rewards[rows],
        batch.group_size,
    )

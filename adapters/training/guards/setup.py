"""`Setup`: the trainer's settings that the guards' advice depends on.

A cure that a run has already taken is not told again, and one that is known to fail is named as
such. How many tokens a rollout needs is found out only when that is the question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class Room(NamedTuple):
    """The tokens that a rollout needs, and those that the model has for it.

    Attributes:
        expert: Tokens of the longest of some rollouts of the environment's expert, results of tools
            included; None where it has no expert.
        context: Tokens that the model can read after a prompt.
    """

    expert: int | None
    context: int


@dataclass(frozen=True)
class Setup:
    """The trainer's settings, None where they are not known.

    Attributes:
        group_size: Rollouts of a task that are compared.
        divides_by_std: Advantages of a group are divided by its own standard deviation.
        kl_weight: Of the divergence from the reference.
        learning_rate: At its highest.
        ratio_high: Upper clip bound minus 1.
        updates_per_batch: Updates made from one batch of rollouts.
        has_sampling: Dead groups are replaced or masked.
        parsing: Of the environment, `lenient` or `strict`.
        max_tokens: Of a rollout, results of tools included.
        most_turns: That a rollout may take; None where the environment alone decides.
        turns_needed: That the environment allows.
        room: Finds out what a rollout needs, when that is the question; None where it cannot.
    """

    group_size: int | None = None
    divides_by_std: bool | None = None
    kl_weight: float | None = None
    learning_rate: float | None = None
    ratio_high: float | None = None
    updates_per_batch: int | None = None
    has_sampling: bool | None = None
    parsing: str | None = None
    max_tokens: int | None = None
    most_turns: int | None = None
    turns_needed: int | None = None
    room: Callable[[], Room | None] | None = field(default=None, compare=False)

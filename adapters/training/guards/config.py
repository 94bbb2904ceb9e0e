"""Configuration of the guards: actions, names of guards, and the few thresholds users change."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


class Action(StrEnum):
    """An action that guards request from the trainer; mildest first."""

    OK = "ok"
    """Make the update."""
    WARN = "warn"
    """Make the update, and log a warning."""
    SKIP = "skip"
    """Skip the update: neither weights nor optimizer state change. Set gradients to None and not to
    0, since momentum moves the weights at a gradient of 0."""
    LOWER_LR = "lower_lr"
    """Make the update, with a lower learning rate from now on."""
    ROLL_BACK = "roll_back"
    """Skip the update, restore weights and optimizer of the last healthy checkpoint, lower the
    learning rate, and discard rollouts that were played ahead. The step count, the learning-rate
    schedule, the task order and random numbers continue; otherwise the same batch would cause the
    same failure."""
    STOP = "stop"
    """Skip the update and end the run with the diagnosis."""

    @property
    def severity(self) -> int:
        """0 for `ok` to 5 for `stop`."""
        return list(Action).index(self)


GuardName = Literal[
    "success",
    "answering",
    "validity",
    "unfinished",
    "held_out",
    "entropy",
    "kl",
    "gradient",
    "growth",
    "mismatch",
    "idle",
    "solved",
]
GUARD_NAMES: Final[tuple[GuardName, ...]] = get_args(GuardName)


class GuardConfig(BaseModel):
    """Settings of the guards. Steps are optimizer steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    only_warn: bool = False
    """Whether guards only log warnings, and never change the training."""
    actions: Mapping[GuardName, tuple[Action, ...]] = Field(default_factory=dict)
    """The actions of a guard, by name, that replace its default ones. They are taken in turn while
    it keeps tripping, the last one is repeated, and an empty list disables the guard."""
    errors: float = Field(default=5.0, gt=0)
    """Standard errors by which a share has to be worse than the best of the run to trip a guard."""
    entropy_floor: float = Field(default=0.18, ge=0, lt=1)
    """Minimum entropy relative to that of the first steps, unless the tasks are solved."""
    kl_limit: float = Field(default=0.5, gt=0)
    """Maximum KL divergence from the reference model, in nats per token."""
    idle_steps: int = Field(default=10, ge=1)
    """Steps in a row without a learning signal after which `idle` warns; it stops the run after
    three times as many."""
    max_roll_backs: int = Field(default=4, ge=0)
    """Maximum number of roll-backs; the next one stops the run. The count is reset after 100
    updates with nothing worse than a warning."""

"""Configuration of the guards: actions, names of guards, and the few thresholds users change."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


class Action(StrEnum):
    """An action that guards ask of the trainer, the mildest first."""

    OK = "ok"
    """Make the update."""
    WARN = "warn"
    """Make the update, and tell the user."""
    SKIP = "skip"
    """Leave the update out: neither weights nor the optimizer's state may move, so gradients are
    set to None, not to 0, or momentum moves the weights all the same."""
    LOWER_LR = "lower_lr"
    """Make the update, with a lower learning rate from now on."""
    ROLL_BACK = "roll_back"
    """Leave the update out, restore weights, optimizer and schedule of the last healthy checkpoint,
    lower the learning rate, and discard rollouts that were played ahead. Steps, tasks and random
    numbers go on, or the same batch would lead to the same place."""
    STOP = "stop"
    """Leave the update out and end the run with the diagnosis."""

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
    """Report everything, act on nothing."""
    actions: Mapping[GuardName, tuple[Action, ...]] = Field(default_factory=dict)
    """By guard, the actions to take in turn while it keeps tripping, in place of its own; the last
    one is repeated, and an empty list switches the guard off."""
    errors: float = Field(default=5.0, gt=0)
    """Standard errors by which a share has to be worse than the run's best before a guard trips."""
    entropy_floor: float = Field(default=0.18, ge=0, lt=1)
    """Least share of the first steps' entropy, unless the tasks are solved."""
    kl_limit: float = Field(default=0.5, gt=0)
    """Largest KL divergence from the reference model, in nats per token."""
    idle_steps: int = Field(default=10, ge=1)
    """Steps in a row that teach nothing at which the guard warns; it stops at three times as
    many."""
    max_roll_backs: int = Field(default=4, ge=0)
    """Roll-backs after which the next one is a stop. They are forgotten after 100 updates with
    nothing worse than a warning."""

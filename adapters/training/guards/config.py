"""Settings of the guards: actions, guard names, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


class Action(StrEnum):
    """An action that a guard requests from the trainer, ordered from mild to severe."""

    OK = "ok"
    """Make the update."""
    WARN = "warn"
    """Make the update and log a warning."""
    SKIP = "skip"
    """Skip the update: neither weights nor optimizer state change.

    The trainer must set gradients to None and not to 0, since momentum changes the weights even if
    the gradient is 0.
    """
    LOWER_LR = "lower_lr"
    """Make the update, and lower the learning rate for the rest of the run."""
    ROLL_BACK = "roll_back"
    """Skip the update, restore the last healthy checkpoint, and lower the learning rate.

    Weights and optimizer are restored, and rollouts that were played in advance are discarded. The
    step count, the learning-rate schedule, the task order and random numbers continue, because the
    same batch would cause the same failure.
    """
    STOP = "stop"
    """Skip the update and end the run with the diagnosis."""

    @property
    def severity(self) -> int:
        """The severity, from 0 for `ok` to 5 for `stop`."""
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
    """Whether guards only log warnings and never affect training."""
    actions: Mapping[GuardName, tuple[Action, ...]] = Field(default_factory=dict)
    """Actions of individual guards, by guard name, in place of their default actions.

    The actions are taken in order while the guard keeps tripping, and the last one is repeated. An
    empty list disables the guard.
    """
    errors: float = Field(default=5.0, gt=0)
    """Number of standard errors by which a share must be below the best of the run to trip a guard.
    """
    entropy_floor: float = Field(default=0.18, ge=0, lt=1)
    """Minimum entropy as a fraction of that of the first steps. Not applied to solved tasks."""
    kl_limit: float = Field(default=0.5, gt=0)
    """Maximum KL divergence from the reference model, in nats per token."""
    idle_steps: int = Field(default=10, ge=1)
    """Successive steps without a learning signal after which `idle` warns.

    The guard `idle` stops the run after three times this number.
    """
    max_roll_backs: int = Field(default=4, ge=0)
    """Maximum number of roll-backs; the next one stops the run.

    The count is reset after 100 updates with nothing worse than a warning.
    """

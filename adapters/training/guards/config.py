"""Configuration of the guards: actions, names and thresholds.

Thresholds are relative wherever a healthy value depends on model and task: a tiny model on tool
calls is healthy at .05 to .08 nats of entropy, where a fixed floor of .5 would stop every run. The
numbers were held against runs of the tiny model that learnt and runs whose rewards were shuffled:
none of them is acted upon, while the collapses of the tests are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Action(StrEnum):
    """An action that guards ask of the trainer, the mildest first."""

    OK = "ok"
    """Update."""
    WARN = "warn"
    """Update, and tell the user."""
    SKIP = "skip"
    """Leave the update out: neither weights nor the optimizer's state may move, so gradients are
    set to None, not to 0, or momentum moves the weights all the same."""
    LOWER_LR = "lower_lr"
    """Scale the learning rate from now on."""
    ROLL_BACK = "roll_back"
    """Leave the update out, restore weights, optimizer and schedule of the last healthy checkpoint,
    scale the learning rate, and throw away rollouts that were played ahead. Steps, tasks and random
    numbers go on, or the same batch would lead to the same place."""
    STOP = "stop"
    """Leave the update out and end the run with the diagnosis."""

    @property
    def severity(self) -> int:
        """0 for `ok` to 5 for `stop`."""
        return list(Action).index(self)


GuardName = Literal[
    "non_finite",
    "broken_weights",
    "no_signal",
    "all_invalid",
    "update_collapse",
    "collapse_share",
    "validity",
    "entropy_floor",
    "entropy_ceiling",
    "kl",
    "kl_spike",
    "grad_norm",
    "flat_reward",
    "dead_groups",
    "cost_noise",
    "solved",
    "tool_failures",
    "repairs",
    "nothing_learnt",
]
GUARD_NAMES: Final[tuple[GuardName, ...]] = get_args(GuardName)


class GuardConfig(BaseModel):
    """The thresholds of all guards. Steps are optimizer steps that were observed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    only_warn: bool = False
    """Report everything, act on nothing."""
    actions: Mapping[GuardName, tuple[Action, ...]] = Field(default_factory=dict)
    """By guard what it does at its first, second, ... trip, the last for all that follow, in place
    of its own list; an empty list switches it off."""
    memory: int = Field(default=100, ge=1)
    """Steps after which a trip is forgotten, besides those that the guard's list takes to go
    through; so a nan now and then never ends a run, and one after the other do."""
    baseline_steps: int = Field(default=10, ge=1)
    """First steps whose median is what "relative to the first steps" means. No guard that compares
    with them says anything before, but for validity, which is compared from the first on."""
    lower_by: float = Field(default=0.5, gt=0, lt=1)
    """Factor on the learning rate each time it is lowered."""
    lowest_scale: float = Field(default=1 / 16, gt=0, le=1)
    """Where lowering ends: an update smaller than this teaches nothing in a run of usual length."""
    max_roll_backs: int = Field(default=4, ge=0)
    """Roll-backs after which the next one is a stop: the cause is not bad luck. They are forgotten
    once `memory` updates have been made with nothing worse than a warning."""

    min_validity: float = Field(default=0.5, gt=0, lt=1)
    """Least share of the first steps' validity. Below it calls are no longer written as tools take
    them."""
    collapse_ratio: float = Field(default=0.5, gt=0, lt=1)
    """An update is followed by a collapse when validity falls to this share of what it was, from
    `collapse_from` or more."""
    collapse_from: float = Field(default=0.2, gt=0, le=1)
    """Validity below this has little left to lose."""
    collapse_errors: float = Field(default=3.0, gt=0)
    """Standard errors that a single fall must have to be acted upon at once. With few rollouts one
    fall may be chance; how often updates are followed by one is not."""
    collapse_share: float = Field(default=0.5, gt=0, le=1)
    """Share of the last `collapse_window` updates that may be followed by a collapse; 97.4 % was
    seen where groups of 2 were divided by their standard deviation."""
    collapse_window: int = Field(default=10, ge=1)
    """Updates, with validity known before and after, over which that share is taken."""
    collapse_least: int = Field(default=6, ge=1)
    """Of which so many must be there before the share means anything."""

    entropy_floor: float = Field(default=0.1, ge=0, lt=1)
    """Least share of the first steps' entropy, unless the step is `solved`: who knows the answer
    need not explore. Runs that learnt went down to .2 before they were."""
    entropy_ceiling: float = Field(default=4.0, gt=1)
    """Largest multiple of the first steps' entropy. Healthy runs reached 2.2."""
    entropy_floor_nats: float | None = Field(default=None, ge=0)
    """An absolute floor as well. The field's .5 is for long free text, never for tool calls."""
    entropy_ceiling_nats: float | None = Field(default=None, gt=0)
    """An absolute ceiling as well."""
    kl_ceiling: float = Field(default=0.5, gt=0)
    """Largest divergence from the reference, in nats per token."""
    kl_spike: float = Field(default=10.0, gt=1)
    """Multiple of `kl_ceiling` at which one step's divergence is a broken batch. No higher: where a
    token counts for 10 nats at most, a policy that babbles was seen at 4.5 to 7.5, and none is ever
    above 9."""
    grad_norm_spike: float = Field(default=20.0, gt=1)
    """Multiple of the median of the last steps' gradient norms. Healthy runs reached 8."""
    grad_norm_ceiling: float | None = Field(default=None, gt=0)
    """An absolute ceiling as well. Where it is below the median of the run's own norms, most
    updates are left out; the guard then names a ceiling that fits, and lowers no learning rate,
    since that makes no gradient smaller."""
    patience: int = Field(default=5, ge=1)
    """Steps in a row that validity, entropy, KL, failures or repairs must be out of bounds."""

    nothing_patience: int = Field(default=10, ge=1)
    """Steps in a row that teach nothing, or whose updates guards leave out, at which the guard
    warns; at three times as many it stops, unless the tasks are `solved`."""
    reward_floor: float = 0.0
    """A reward above this is a sign of life."""
    reward_patience: int = Field(default=10, ge=1)
    """Steps in a row without one at which the guard warns; at three times as many it stops."""
    dead_groups: float = Field(default=0.9, gt=0, le=1)
    """Share of groups with equal outcomes from which a step counts as dead."""
    dead_patience: int = Field(default=20, ge=1)
    """Dead steps in a row at which the guard warns."""
    solved: float = Field(default=0.9, gt=0, le=1)
    """Sampled accuracy from which dead groups and low entropy mean success."""
    tool_failures: float = Field(default=0.5, gt=0, le=1)
    """Share of calls that may fail; more where the first steps' share was near it already."""
    repairs_per_call: float = Field(default=0.5, gt=0)
    """Repairs per call; more where the first steps' number was near it already."""

    @model_validator(mode="after")
    def _consistent(self) -> GuardConfig:
        if self.collapse_least > self.collapse_window:
            raise ValueError(
                f"collapse_least ({self.collapse_least}) updates can never be among the last"
                f" collapse_window ({self.collapse_window}): lower the one or raise the other."
            )
        return self


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
    """The trainer's settings that the advice depends on, None where they are not known.

    A cure that a run has already taken is not told again, and one that is known to fail is named as
    such. How many tokens a rollout needs is found out only when that is the question.

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

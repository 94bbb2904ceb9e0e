"""Bounded episode score: every correct episode scores higher than every incorrect one.

    correct:     score = 1 - cost
    answered:    score = partial * progress - cost
    unanswered:  score = partial * progress - cost - unanswered
    with         cost = cost_cap * (1 - exp(-sum_of_costs / cost_cap)),
                 partial + margin <= 1 - cost_cap,   margin > 0,   unanswered > 0

Every correct episode scores higher than every incorrect one, by at least `margin`. Among incorrect
episodes, more progress gives a higher score, which breaks ties within a group. Progress is computed
from the best or the last state, not from the number of actions, so repeating an action cannot
increase it. Costs saturate, so the total penalty is bounded. The reward of a step is the change of
the running score, so rewards sum to the score.

The inequalities are checked when a config is created. If one is violated, the error message shows
the values of both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import mul
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from toolgym.errors import ConfigurationError, refused_fields

Cost = Literal["step", "repeat", "failed_call", "repaired_call", "after_end"]
COSTS: tuple[Cost, ...] = get_args(Cost)
PARTS = ("outcome", "progress", *COSTS, "unanswered")
"""The keys of `info["reward_parts"]`. Their values sum to the running score."""

Mistake = Literal["", "refused_answerable", "answered_unanswerable"]
MISTAKES: tuple[Mistake, ...] = get_args(Mistake)[1:]
"""Mistakes about whether a question has an answer: denying an existing answer, or inventing an
answer."""


class RewardConfig(BaseModel):
    """The weights of the episode score. A correct episode without costs scores 1."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    partial: float = Field(0.4, ge=0)
    """Score for full progress without a correct answer."""
    cost_cap: float = Field(0.2, gt=0)
    """Upper bound on the sum of all costs."""
    margin: float = Field(0.3, gt=0)
    """Minimum score difference between a correct and an incorrect episode."""
    bins: int = Field(10, ge=1)
    """Number of bins to which progress is rounded."""
    step: float = Field(0.01, ge=0)
    """Cost of each call except the one that ends the episode."""
    repeat: float = Field(0.01, ge=0)
    """Additional cost of a call that repeats an earlier one with the same arguments."""
    failed_call: float = Field(0.02, ge=0)
    """Additional cost of a call whose observation is an error."""
    repaired_call: float = Field(0.005, ge=0)
    """Cost of a repaired call, regardless of the number of repairs."""
    after_end: float = Field(0.02, ge=0)
    """Cost of a call after the end of the episode."""
    unanswered: float = Field(0.05, gt=0)
    """Cost of an episode without an answer. Therefore answering is never worse than stopping."""

    @model_validator(mode="after")
    def _check_inequalities(self) -> Self:
        if self.partial + self.margin > 1 - self.cost_cap + 1e-12:
            raise ValueError(
                f"partial + margin <= 1 - cost_cap does not hold: {self.partial:g} +"
                f" {self.margin:g} = {self.partial + self.margin:g} > {1 - self.cost_cap:g};"
                " lower one of the three."
            )
        cheapest = min(self.step, self.failed_call)
        if self.repaired_call > cheapest:
            raise ValueError(
                f"repaired_call <= min(step, failed_call) does not hold: {self.repaired_call:g} >"
                f" {cheapest:g}; a repaired call must not cost more than a failed one."
            )
        one_bin, one_try = self.partial / self.bins, self.step + self.failed_call
        if one_bin <= one_try:
            raise ValueError(
                f"partial / bins > step + failed_call does not hold: {self.partial:g} /"
                f" {self.bins} = {one_bin:g} <= {one_try:g};"
                " progress must be worth more than a failed call."
            )
        return self

    @classmethod
    def of(cls, weights: RewardConfig | dict[str, Any] | None) -> RewardConfig:
        """Return a config from a dict of weights; None gives the defaults.

        Raises:
            ConfigurationError: A weight is unknown or out of range, or an inequality is violated.
        """
        if isinstance(weights, RewardConfig):
            return weights
        try:
            return cls.model_validate(weights or {})
        except ValidationError as problem:
            reasons = refused_fields(problem, "")
            raise ConfigurationError(f"rewards={weights!r} is refused: {reasons}") from None

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score that an episode can have."""
        return -self.cost_cap - self.unanswered, 1.0


@dataclass
class Ledger:
    """The gains and costs of one episode so far.

    Attributes:
        correct: Whether the answer is correct.
        answered: Whether the terminal call was executed.
        closed_unanswered: Whether the episode ended without an answer.
        faulted: Whether a fault made the episode unscored.
        mistake: The agent's mistake about whether the question has an answer: one of `MISTAKES`, or
            "". None in environments where every question has an answer.
        unjudged: Whether the answer is correct but could not be checked on other data. None in
            environments that do not check answers on other data.
        progress: Progress of the best or the last state, from 0 to 1, rounded to the bins of the
            config.
        spent: Number of times that each cost was charged.
    """

    config: RewardConfig
    correct: bool = False
    answered: bool = False
    closed_unanswered: bool = False
    faulted: bool = False
    mistake: str | None = None
    unjudged: bool | None = None
    progress: float = 0.0
    spent: dict[Cost, int] = field(default_factory=lambda: dict.fromkeys(COSTS, 0))
    _weights: tuple[float, ...] = field(init=False, repr=False)
    _summed: tuple[float, float] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._weights = tuple(getattr(self.config, cost) for cost in COSTS)

    def charge(self, cost: Cost) -> None:
        """Charge a cost once."""
        self.spent[cost] += 1
        self._summed = None

    def reach(self, progress: float, best: bool = True) -> None:
        """Record the progress of a state.

        Args:
            progress: Progress from 0 to 1.
            best: Whether the best state determines the progress; if False, the last state does.

        Raises:
            ConfigurationError: The progress is not between 0 and 1.
        """
        if not 0.0 <= progress <= 1.0:
            raise ConfigurationError(f"progress must be between 0 and 1, got {progress!r}.")
        # The tolerance prevents rounding errors, as in 0.1 + 0.2, from reaching the lower bin.
        binned = math.floor(progress * self.config.bins + 1e-9) / self.config.bins
        self.progress = max(self.progress, binned) if best else binned

    @property
    def cost(self) -> float:
        """The saturated sum of all costs, between 0 and `cost_cap`."""
        return self._sums()[1]

    def _sums(self) -> tuple[float, float]:
        """Return the sum of all costs, and the saturated cost."""
        if self._summed is None:
            raw = float(sum(map(mul, self.spent.values(), self._weights)))
            cap = self.config.cost_cap
            self._summed = raw, cap * -math.expm1(-raw / cap)
        return self._summed

    def parts(self) -> dict[str, float]:
        """Return the parts of the running score.

        The saturated total cost is divided among the kinds of cost.

        Returns:
            A value for each of `PARTS`. The values sum to `score()`, up to rounding. After a fault,
            all values are nan.
        """
        if self.faulted:
            return dict.fromkeys(PARTS, math.nan)
        raw, cost = self._sums()
        share = cost / raw if raw else 0.0
        parts = {
            "outcome": 1.0 if self.correct else 0.0,
            "progress": 0.0 if self.correct else self.config.partial * self.progress,
        }
        for (kind, count), weight in zip(self.spent.items(), self._weights, strict=True):
            parts[kind] = 0.0 - count * weight * share
        parts["unanswered"] = -self.config.unanswered if self.closed_unanswered else 0.0
        return parts

    def score(self) -> float:
        """Return the running score, which is nan after a fault."""
        if self.faulted:
            return math.nan
        earned = 1.0 if self.correct else self.config.partial * self.progress
        return earned - self.cost - (self.config.unanswered if self.closed_unanswered else 0.0)

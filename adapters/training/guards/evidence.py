"""Evidence on the cause of steps that teach nothing, from the metrics of their rollouts.

A step teaches nothing where the loss is taken over no token, where the gradient is 0, or where
guards leave the update out. Which of the causes it was decides over what to change: rollouts that
ran out of tokens want more of them, tasks that nobody solves want to be easier, tasks that
everybody solves harder, and rollouts that a fault left unscored an environment that works. So the
numbers of such steps are added up for as long as they follow one another, and judged together.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from adapters.training.guards.config import GuardConfig, GuardName

_MOST: Final = 0.5  # share of the rollouts, or of the steps, from which something is the cause
_SOME: Final = 0.1  # and from which it is told beside another one
_LEAST_NORMS: Final = 3  # norms of which a median says what is usual for a ceiling
_ROOM: Final = 2.0  # times the largest of them is a ceiling that fits


class Cause(StrEnum):
    """The cause of steps that teach nothing."""

    HELD = "held"
    """Guards left the updates out, though there was something to learn."""
    FAULTS = "faults"
    """Faults of the environment left rollouts unscored."""
    OUT_OF_TOKENS = "out_of_tokens"
    """Rollouts ran out of tokens, or of turns, before their episode was over."""
    HARD = "hard"
    """All rollouts of a task did equally badly."""
    EASY = "easy"
    """All rollouts of a task did equally well."""
    DIVIDED = "divided"
    """Some tasks are always done and the others never."""
    UNKNOWN = "unknown"
    """The numbers do not tell."""


@dataclass
class Evidence:
    """Sums of metrics over consecutive steps.

    Attributes:
        steps: How many.
        tokens: That the loss was taken over.
        rollouts: Played; the following four are of them.
        alike: In groups with equal outcomes or equal rewards.
        unfinished: Out of tokens or turns.
        faults: Left unscored.
        right: Correct.
        held_steps: In how many of the steps guards left the update out, though it had something to
            teach.
        held: In how many of those each of them did.
    """

    steps: int = 0
    tokens: float = 0.0
    rollouts: float = 0.0
    alike: float = 0.0
    unfinished: float = 0.0
    faults: float = 0.0
    right: float = 0.0
    held_steps: int = 0
    held: dict[GuardName, int] = field(default_factory=dict)

    def add(self, numbers: Mapping[str, float], held: Sequence[GuardName] = ()) -> None:
        """Add the metrics of a step.

        Args:
            numbers: Its metrics.
            held: The guards that leave its update out.
        """
        self.steps += 1
        self.tokens += numbers.get("learnt_tokens", 0.0)
        played, faults = numbers.get("rollouts", 0.0), numbers.get("faults", 0.0)
        self.rollouts += played
        self.faults += faults
        alike = (numbers.get(key, 0.0) for key in ("dead_groups", "zero_variance_groups"))
        self.alike += played * max(alike)
        self.unfinished += played * numbers.get("unfinished", 0.0)
        self.right += (played - faults) * numbers.get("accuracy", 0.0)
        self.held_steps += bool(held)
        for name in held:
            self.held[name] = self.held.get(name, 0) + 1

    def share(self, count: float) -> float:
        """A count as a share of the rollouts; 0 where none was counted."""
        return count / self.rollouts if self.rollouts else 0.0

    def causes(self, solved: float) -> tuple[Cause, ...]:
        """Causes of nothing being learnt, the likeliest first.

        Args:
            solved: The share of right rollouts from which tasks are learnt.
        """
        if self.held_steps > _MOST * self.steps:
            return (Cause.HELD,)
        lost = {Cause.FAULTS: self.faults, Cause.OUT_OF_TOKENS: self.unfinished}
        shares = {cause: self.share(count) for cause, count in lost.items()}
        secondary = sorted((c for c in shares if shares[c] >= _SOME), key=lambda c: -shares[c])
        if secondary and shares[secondary[0]] >= _MOST:
            return tuple(secondary)
        return (self._outcome(solved), *secondary)

    def _outcome(self, solved: float) -> Cause:
        """The cause that the outcomes of the scored rollouts point to."""
        scored = self.rollouts - self.faults
        if scored <= 0 or self.share(self.alike) < _MOST:
            return Cause.UNKNOWN
        rate = self.right / scored
        if rate >= solved:
            return Cause.EASY
        return Cause.HARD if rate <= 1 - solved else Cause.DIVIDED

    def state_dict(self) -> dict[str, Any]:
        """The sums, as JSON can hold them."""
        return asdict(self)


def teaches_nothing(numbers: Mapping[str, float]) -> bool:
    """Whether a step has no token to learn from, or a gradient of 0.

    >>> teaches_nothing({"learnt_tokens": 12.0, "grad_norm": 0.3})
    False
    """
    return numbers.get("learnt_tokens") == 0 or numbers.get("grad_norm") == 0


def describe_cause(evidence: Evidence, cause: Cause) -> str:
    """A clause on the evidence for a cause, with the numbers."""
    scored = max(evidence.rollouts - evidence.faults, 1.0)
    right = f"{evidence.right / scored:.0%} of the rollouts were right"
    if cause is Cause.HELD:
        guards = " and ".join(f"{name} ({count})" for name, count in evidence.held.items())
        return f"the updates were left out by {guards}"
    return {
        Cause.FAULTS: f"faults of the environment left {evidence.share(evidence.faults):.0%} of the"
        " rollouts unscored",
        Cause.OUT_OF_TOKENS: f"{evidence.share(evidence.unfinished):.0%} of the rollouts ran out of"
        " tokens or turns before their episode was over",
        Cause.HARD: f"all rollouts of a task did equally badly, and {right}",
        Cause.EASY: f"all rollouts of a task did equally well, and {right}",
        Cause.DIVIDED: f"a task was done by all of its rollouts or by none, and {right}",
        Cause.UNKNOWN: f"the loss was taken over {evidence.tokens:.0f} tokens, and its gradient"
        " was 0",
    }[cause]


class Misfit(NamedTuple):
    """A ceiling for the gradient norm that this run is usually above.

    Attributes:
        ceiling: As it is set.
        usual: Median of the norms that were measured.
        measured: The number of those norms.
        fits: A ceiling that would let them pass.
    """

    ceiling: float
    usual: float
    measured: int
    fits: float


def misfit(norms: Sequence[float], config: GuardConfig) -> Misfit | None:
    """The misfit of a ceiling below the usual norm; None where it fits, or is not known yet."""
    ceiling = config.grad_norm_ceiling
    if ceiling is None or len(norms) < _LEAST_NORMS:
        return None
    usual = statistics.median(norms)
    if usual <= ceiling:
        return None
    largest = max(norm for norm in norms if norm <= config.grad_norm_spike * usual)
    return Misfit(ceiling, usual, len(norms), float(f"{_ROOM * largest:.2g}"))

"""The guards' memory of a run (`History`), and a guard's view of one step (`Observation`).

All of it is numbers in short windows, so the state is small, JSON can hold it, and a resumed run
decides exactly as the run that was not interrupted.

A step teaches nothing where the loss is taken over no token, where the gradient is 0, or where
guards leave the update out. Which of the causes it was decides over what to change: rollouts that
ran out of tokens want more of them, tasks that nobody solves want to be easier, tasks that
everybody solves harder, and rollouts that a fault left unscored an environment that works. So the
numbers of such steps are added up as `Evidence` for as long as they follow one another.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from adapters.training.guards.config import GuardConfig, GuardName
from toolgym.runs.metrics import broken, finite

_MOST: Final = 0.5  # share of the rollouts, or of the steps, from which something is the cause
_SOME: Final = 0.1  # and from which it is told beside another one
_LEAST_FOR_MISFIT: Final = 3  # norms of which a median says what is usual for a ceiling
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
        tokens: That the loss was taken over.
        rollouts: Played; the following four are of them.
        alike: In groups with equal outcomes or equal rewards.
        unfinished: Out of tokens or turns.
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
    if ceiling is None or len(norms) < _LEAST_FOR_MISFIT:
        return None
    usual = statistics.median(norms)
    if usual <= ceiling:
        return None
    largest = max(norm for norm in norms if norm <= config.grad_norm_spike * usual)
    return Misfit(ceiling, usual, len(norms), float(f"{_ROOM * largest:.2g}"))


_NORMS: Final = 50  # gradient norms whose median is usual
_LEAST_NORMS: Final = 10  # and how many of them make a median
_TURNS: Final = 24  # where a trainer does not tell how many turns a batch had
_BASELINES: Final = ("validity", "entropy", "tool_failures", "repairs_per_call")


class ValidityDrop(NamedTuple):
    """The change of validity between two batches of rollouts, over the updates between them.

    Attributes:
        before: Validity of the batch that the update learnt from.
        after: Validity of the next batch, sampled by the updated weights.
        errors: By how many standard errors of the difference it fell.
        is_collapse: It fell to a part of what it was.
    """

    before: float
    after: float
    errors: float
    is_collapse: bool


@dataclass(frozen=True)
class Observation:
    """A guard's view of one optimizer step: its metrics, and the run's history up to it.

    Attributes:
        metrics: Those of the step that exist and are finite.
        broken: Keys of metrics that are not finite and always ought to be.
        baseline: By metric the median of the first steps, once there are enough; of validity of
            those there are, since a format that is lost must be missed from the second step on.
        usual_norm: Median of the latest gradient norms; None while there are few.
        drop: The change of validity; None where no update lies between two known values.
        collapses: By update, the latest last, whether a collapse followed.
        misfit: A ceiling for gradient norms that is below the usual one.
        idle: Evidence gathered since the last update, this step included; None where this step has
            something to teach, and no guard leaves its update out.
    """

    metrics: Mapping[str, float]
    broken: list[str]
    baseline: Mapping[str, float]
    usual_norm: float | None
    drop: ValidityDrop | None
    collapses: tuple[bool, ...]
    misfit: Misfit | None = None
    idle: Evidence | None = None


@dataclass
class History:
    """The memory of all guards, with the windows of a config."""

    config: GuardConfig
    first: dict[str, list[float]] = field(default_factory=dict)
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=_NORMS))
    last_batch: tuple[float, float] | None = None  # validity and turns
    pending: int = 0  # updates since that batch
    collapses: deque[bool] = field(default_factory=deque)
    measured: int = 0
    collapsed: int = 0
    updates: int = 0
    skipped: int = 0
    idle: Evidence = field(default_factory=Evidence)

    def observe(self, metrics: Mapping[str, Any]) -> Observation:
        """Record the metrics of a step, and return the guards' observation of it."""
        numbers = finite(metrics)
        drop = self._validity_drop(numbers)
        baseline = self._baseline(numbers)
        norm = numbers.get("grad_norm", 0.0)
        enough = len(self.norms) >= _LEAST_NORMS
        usual = statistics.median(self.norms) if enough else None
        if norm > 0:
            self.norms.append(norm)
        above = misfit(self.norms, self.config)
        return Observation(
            numbers, broken(metrics), baseline, usual, drop, tuple(self.collapses), above
        )

    def with_evidence(self, observation: Observation, held: Sequence[GuardName]) -> Observation:
        """The observation with the evidence gathered since the last step that taught something.

        Args:
            held: The guards that leave its update out.
        """
        is_empty = teaches_nothing(observation.metrics)
        if not is_empty and not held:
            self.idle = Evidence()
            return observation
        self.idle.add(observation.metrics, () if is_empty else held)
        return replace(observation, idle=self.idle)

    def _baseline(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """The medians of the first steps, this step not among them."""
        steps = self.config.baseline_steps
        medians = {
            key: statistics.median(values)
            for key, values in self.first.items()
            if len(values) >= steps or (key == "validity" and values)
        }
        for key in _BASELINES:
            values = self.first.setdefault(key, [])
            is_lost = key == "validity" and not numbers.get(key)  # no measure of what was healthy
            if key in numbers and len(values) < steps and not is_lost:
                values.append(numbers[key])
        return medians

    def _validity_drop(self, numbers: Mapping[str, float]) -> ValidityDrop | None:
        if "validity" not in numbers:
            return None
        share = min(1.0, max(0.0, numbers["validity"]))
        now = (share, max(1.0, numbers.get("turns", _TURNS)))
        before, self.last_batch = self.last_batch, now
        was_updated, self.pending = self.pending > 0, 0
        if before is None or not was_updated:
            return None
        drop = _drop_between(before, now, self.config)
        self.measured += 1
        self.collapsed += drop.is_collapse
        self.collapses.append(drop.is_collapse)
        while len(self.collapses) > self.config.collapse_window:
            self.collapses.popleft()
        return drop

    def note(self, is_updated: bool) -> None:
        """Record whether the step's update was made."""
        self.updates += is_updated
        self.skipped += not is_updated
        self.pending += is_updated

    def forget_batch(self) -> None:
        """Drop the last batch's validity: after a roll-back the next batch has other weights."""
        self.last_batch, self.pending = None, 0

    def state_dict(self) -> dict[str, Any]:
        """Everything but the config, as JSON can hold it."""
        return {
            "first": {key: list(values) for key, values in self.first.items()},
            "norms": list(self.norms),
            "last_batch": list(self.last_batch) if self.last_batch else None,
            "pending": self.pending,
            "collapses": list(self.collapses),
            "measured": self.measured,
            "collapsed": self.collapsed,
            "updates": self.updates,
            "skipped": self.skipped,
            "idle": self.idle.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the memory from such a state."""
        self.first = {key: list(values) for key, values in state["first"].items()}
        self.norms = deque(state["norms"], maxlen=_NORMS)
        batch = state["last_batch"]
        self.last_batch = (batch[0], batch[1]) if batch else None
        self.collapses = deque(state["collapses"])
        self.pending, self.measured = state["pending"], state["measured"]
        self.collapsed, self.updates = state["collapsed"], state["updates"]
        self.skipped, self.idle = state["skipped"], Evidence(**deepcopy(state["idle"]))


def _drop_between(
    before: tuple[float, float], after: tuple[float, float], config: GuardConfig
) -> ValidityDrop:
    """The drop between two shares of turns, in standard errors of two independent samples."""
    (was, turns), (now, later) = before, after
    together = (was * turns + now * later) / (turns + later)
    error = math.sqrt(together * (1 - together) * (1 / turns + 1 / later))
    errors = (was - now) / error if error > 0 else 0.0
    is_collapse = was >= config.collapse_from and now <= config.collapse_ratio * was
    return ValidityDrop(was, now, errors, is_collapse)

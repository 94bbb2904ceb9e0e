"""Curricula: the tasks of a training step, by hardness or by the policy's success rate.

Both samplers are off unless somebody makes one. They draw ids from a `TaskSet`, decided by seed and
step alone (and, for success, by what was observed), without repeating a task within a step. A step
has a random stream of its own, so a run that is taken up again draws the same.

A group of K rollouts of one task teaches only if some are right and some are wrong. With success
rate p the chance of that is 1 - p^K - (1-p)^K, which `SuccessCurriculum` prefers. Rates are held as
a Beta distribution, so a task that was never tried has a weight, and none ever drops to zero.

A rate near zero may be a fact of the task, or of a format that the policy and the environment do
not share: then the hard tasks are not hard, and a sampler that believes the rate starves them (one
such run scored 0.000 where drawing evenly reached 0.891, marin-community/marin#8765). So rates are
believed only if calls are bound, episodes are answered, and an episode that found the result is
judged right; see `Trust`. And a failure counts against a task only if it was the task's.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.rewards import RewardConfig
from toolgym.tasks import Task, TaskSet

T = TypeVar("T", bound=Task)


_WINDOW: Final = 256  # episodes over which the figures are remembered
_ENOUGH: Final = 8  # episodes that have found the result, before anything is said of them


class FormatMismatch(ConfigurationError):
    """The success rates say more of the format than of the tasks; the message says what to do."""


@dataclass(frozen=True)
class Trust:
    """When success rates are believed.

    Attributes:
        episodes: Scored episodes that must have been observed; until then tasks are drawn evenly.
        validity: The least share of turns in which every call was bound.
        answered: The least share of episodes that ended with an answer.
        lost: The largest share of wrong answers among the episodes that had found the whole result:
            what was found and is still wrong was given in a form that is not understood.
    """

    episodes: int = 64
    validity: float = 0.8
    answered: float = 0.8
    lost: float = 0.5


class FormatFigures:
    """Running figures of the format; what is long ago fades."""

    def __init__(self) -> None:
        self.episodes = 0
        self._sums: dict[str, float] = {}
        self._errors: Counter[str] = Counter()

    def note(self, record: EpisodeRecord) -> None:
        """Add a scored episode."""
        self.episodes += 1
        has_result = record.answered and record.progress_bin >= RewardConfig.of(None).bins
        figures = {
            "episodes": 1,
            "answered": record.answered,
            "turns": len(record.turns),
            "valid": sum(bool(turn["valid"]) for turn in record.turns),
            "found": has_result,
            "lost": has_result and not record.correct,
        }
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) * (1 - 1 / _WINDOW) + value
        self._errors.update(code for turn in record.turns for code in turn["errors"])

    def doubts(self, trust: Trust) -> list[str]:
        """Why success rates are not to be believed, each with the cure; empty if they are."""
        reasons = []
        share = self._share("valid", "turns")
        if share < trust.validity:
            codes = ", ".join(f"{n} {code}" for code, n in self._errors.most_common(3))
            reasons.append(
                f"only {share:.0%} of the turns hold calls that can be bound ({codes}): warm the"
                ' model up on demonstrations, or take parsing="lenient"'
            )
        share = self._share("answered", "episodes")
        if share < trust.answered:
            reasons.append(
                f"only {share:.0%} of the episodes end with an answer: allow more tokens and a"
                " larger step_limit, or warm the model up"
            )
        share = self._share("lost", "found")
        if share > trust.lost and self._sums["found"] >= _ENOUGH:
            reasons.append(
                f"{share:.0%} of the answers are judged wrong although the result had been found:"
                " read some of them, for their form is not understood"
            )
        return reasons

    def _share(self, part: str, whole: str) -> float:
        total = self._sums.get(whole, 0.0)
        return self._sums[part] / total if total else 0.0

    def state(self) -> dict[str, Any]:
        """The figures as plain data."""
        errors = dict(self._errors)
        return {"episodes": self.episodes, "sums": dict(self._sums), "errors": errors}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> FormatFigures:
        """The figures that `state` returned."""
        figures = cls()
        figures.episodes = int(state["episodes"])
        figures._sums = dict(state["sums"])
        figures._errors = Counter(state["errors"])
        return figures


def draw_tasks(tasks: TaskSet[T], weights: Mapping[str, float], n: int, stream: str) -> list[str]:
    """Draw by weight, without repeating a task until all were drawn (Efraimidis, Spirakis 2006).

    Each task gets the key u^(1/w) with its own uniform u; the largest keys are drawn.

    Args:
        tasks: What is drawn from; a task is verified when it is drawn.
        weights: By task id; a task without weight is never drawn.
        stream: Names the random stream.

    Raises:
        ConfigurationError: `n` is below 1, or no task that has a weight is playable.
    """
    if n < 1:
        raise ConfigurationError(f"n must be at least 1, got {n}.")
    draw = random.Random(stream)
    keys = [
        (math.log(draw.random() or 5e-324) / weight, task_id)
        for task_id, weight in weights.items()
        if weight > 0
    ]
    chosen: list[str] = []
    for _, task_id in heapq.nlargest(len(keys), keys):
        if len(chosen) == n:
            break
        if tasks.refusal_of(tasks.get(task_id)) is None:
            chosen.append(task_id)
    if not chosen:
        raise ConfigurationError(f"no task of {tasks.name} that has a weight is playable.")
    return [chosen[i % len(chosen)] for i in range(n)]


_VERSION: Final = 1


def mixed_chance(right: float, wrong: float, group_size: int) -> float:
    """The chance that a group has both outcomes, for a rate that is Beta(right, wrong).

    It is the mean of 1 - p^K - (1-p)^K over that distribution.

    >>> round(mixed_chance(1, 1, 8), 3), round(mixed_chance(50, 1, 8), 3)
    (0.778, 0.138)
    """
    total = right + wrong
    all_right = math.prod((right + i) / (total + i) for i in range(group_size))
    all_wrong = math.prod((wrong + i) / (total + i) for i in range(group_size))
    return max(0.0, 1.0 - all_right - all_wrong)


class SuccessCurriculum(Generic[T]):
    """Draw the tasks whose groups are likely to be neither all right nor all wrong.

    Args:
        group_size: Rollouts of a task that are compared with each other.
        prior: Successes and failures that every task is taken to have had already.
        keep: How much of what was observed of a task is left when it is observed again, since the
            policy has changed in the meantime.
        even: The share of the weight that all tasks have alike.
        trust: When the rates are believed.
        on_mismatch: "raise", or "even" to draw evenly as long as the rates are not believed.

    Raises:
        ConfigurationError: An argument is out of range.
    """

    def __init__(
        self,
        tasks: TaskSet[T],
        *,
        group_size: int = 8,
        seed: int = 0,
        prior: tuple[float, float] = (1.0, 1.0),
        keep: float = 0.8,
        even: float = 0.1,
        trust: Trust = Trust(),
        on_mismatch: Literal["raise", "even"] = "raise",
    ) -> None:
        if group_size < 2 or min(prior) <= 0 or not 0 <= keep <= 1 or not 0 <= even <= 1:
            raise ConfigurationError(
                "group_size must be at least 2, prior positive, keep and even between 0 and 1, got"
                f" {group_size=}, {prior=}, {keep=}, {even=}."
            )
        self._tasks, self._ids, self._seed = tasks, tasks.ids, seed
        self._group_size, self._prior = group_size, prior
        self._keep, self._even = keep, even
        self._trust, self._on_mismatch = trust, on_mismatch
        self._counts: dict[str, list[float]] = {}
        self._format = FormatFigures()

    def observe(self, records: Iterable[EpisodeRecord]) -> None:
        """Learn from played episodes; unscored ones are passed over.

        A failure counts against its task if it was answered, or if every call was bound: a budget
        that was spent on calls that nobody understood says nothing about the task.
        """
        fresh: dict[str, list[float]] = {}
        for record in records:
            if not record.scored:
                continue
            self._format.note(record)
            valid = bool(record.turns) and all(turn["valid"] for turn in record.turns)
            if record.correct or record.answered or valid:
                fresh.setdefault(record.task_id, [0.0, 0.0])[not record.correct] += 1
        for task_id, counts in fresh.items():
            old = self._counts.get(task_id, [0.0, 0.0])
            self._counts[task_id] = [self._keep * o + n for o, n in zip(old, counts, strict=True)]

    def doubts(self) -> list[str]:
        """Why the success rates are not to be believed, with the cure; empty if they are."""
        return self._format.doubts(self._trust)

    def rate(self, task_id: str) -> float:
        """The success rate that is expected of a task."""
        right, wrong = self._believed(task_id)
        return right / (right + wrong)

    def _believed(self, task_id: str) -> tuple[float, float]:
        right, wrong = self._counts.get(task_id, (0.0, 0.0))
        return right + self._prior[0], wrong + self._prior[1]

    def weights(self) -> dict[str, float]:
        """The weight of each task, summing to 1: even, unless the rates are believed.

        Raises:
            FormatMismatch: They are not to be believed, and `on_mismatch` is "raise".
        """
        evenly = dict.fromkeys(self._ids, 1 / max(len(self._ids), 1))
        if self._format.episodes < self._trust.episodes:
            return evenly
        doubts = self.doubts()
        if doubts and self._on_mismatch == "raise":
            raise FormatMismatch(
                f"success rates are not used after {self._format.episodes} episodes:"
                f" {'; '.join(doubts)}."
                ' Or pass on_mismatch="even", or other bounds with trust=Trust(...).'
            )
        if doubts:
            return evenly
        chances = {
            task_id: mixed_chance(*self._believed(task_id), self._group_size)
            for task_id in self._ids
        }
        total = math.fsum(chances.values())
        return {
            task_id: self._even * evenly[task_id] + (1 - self._even) * chance / total
            for task_id, chance in chances.items()
        }

    def draw(self, step: int, n: int) -> list[str]:
        """The ids of `n` tasks for a step.

        Raises:
            ConfigurationError: Fewer than one is asked for, or no task is playable.
            FormatMismatch: See `weights`.
        """
        return draw_tasks(self._tasks, self.weights(), n, f"toolgym-success-{self._seed}-{step}")

    def state(self) -> dict[str, Any]:
        """The counts observed so far, as plain data that JSON can hold."""
        counts = {task_id: list(counts) for task_id, counts in self._counts.items()}
        return {"version": _VERSION, "counts": counts, "format": self._format.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned.

        Raises:
            ConfigurationError: It is not such a state.
        """
        if state.get("version") != _VERSION:
            raise ConfigurationError("this is no state of a SuccessCurriculum of this version.")
        self._counts = {task_id: list(counts) for task_id, counts in state["counts"].items()}
        self._format = FormatFigures.restored(state["format"])


Weights = Mapping[str, float]


def level_of(task: Task) -> str:
    """The hardness of a task, where its family or its data set tells it; else an empty text."""
    return str(getattr(task, "hardness", None) or task.extra.get("hardness") or "")


class HardnessCurriculum(Generic[T]):
    """Draw by hardness, with weights that may change over the steps.

    Args:
        tasks: What is drawn from; every task is looked at once, and verified when it is drawn.
        weights: By level how much of a step is of it, such as `{"easy": 3, "hard": 1}`; or by step,
            `{0: {"easy": 1}, 100: {"easy": 1, "hard": 1}}`, between which it changes evenly. Levels
            that are not named are not drawn.
        level: The level of a task.

    Raises:
        ConfigurationError: A weight is negative, or no task is of a level that has a weight.
    """

    def __init__(
        self,
        tasks: TaskSet[T],
        weights: Weights | Mapping[int, Weights],
        *,
        level: Callable[[T], str] = level_of,
        seed: int = 0,
    ) -> None:
        self._tasks, self._seed = tasks, seed
        self._levels = {task.id: level(task) for task in tasks}
        self._sizes = Counter(self._levels.values())
        self._schedule = _schedule(weights)
        for step, at in self._schedule:
            if not any(at.get(name, 0) > 0 for name in self._sizes):
                there = ", ".join(sorted(filter(None, self._sizes))) or "none"
                raise ConfigurationError(
                    f"at step {step} no task has a level with a weight: the levels are {there}."
                )

    def weights_at(self, step: int) -> dict[str, float]:
        """The weight of each level at a step."""
        (before, low), (after, high) = _around(self._schedule, step)
        share = 0.0 if after == before else (step - before) / (after - before)
        levels = dict.fromkeys([*low, *high])
        return {
            name: (1 - share) * low.get(name, 0.0) + share * high.get(name, 0.0) for name in levels
        }

    def draw(self, step: int, n: int) -> list[str]:
        """The ids of `n` tasks for a step.

        Raises:
            ConfigurationError: Fewer than one is asked for, or no task is playable.
        """
        at = self.weights_at(step)
        weights = {
            task_id: at.get(level, 0.0) / self._sizes[level]
            for task_id, level in self._levels.items()
        }
        return draw_tasks(self._tasks, weights, n, f"toolgym-hardness-{self._seed}-{step}")


def _schedule(weights: Weights | Mapping[int, Weights]) -> list[tuple[int, Weights]]:
    """The weights by step, in order."""
    steps: dict[int, Weights] = {}
    plain: dict[str, float] = {}
    for key, value in weights.items():
        if isinstance(value, Mapping):
            steps[int(key)] = value
        else:
            plain[str(key)] = value
    if bool(steps) == bool(plain):
        raise ConfigurationError("weights must be by level, or by step and level, and not empty.")
    steps = steps or {0: plain}
    schedule = sorted(steps.items())
    if any(weight < 0 for _, at in schedule for weight in at.values()):
        raise ConfigurationError(f"weights must not be negative, got {dict(weights)}.")
    return schedule


def _around(
    schedule: Sequence[tuple[int, Weights]], step: int
) -> tuple[tuple[int, Weights], tuple[int, Weights]]:
    """The entries of a schedule before and after a step; twice the same at its ends."""
    before = max((entry for entry in schedule if entry[0] <= step), default=schedule[0], key=_step)
    after = min((entry for entry in schedule if entry[0] >= step), default=schedule[-1], key=_step)
    return (before, after) if before[0] <= step <= after[0] else (before, before)


def _step(entry: tuple[int, Weights]) -> int:
    return entry[0]

"""Drawing by measured success: groups that are likely to have both outcomes come first.

What was observed is two numbers for each task, successes and failures, and the running figures of
the format; they are the state of a run that is taken up again.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

from toolgym.curriculum.format_check import FormatFigures, FormatMismatch, Trust
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.tasks import Task, TaskSet

# Drawing tasks by weight, decided by a text and nothing else.
#
# Every step has a random stream of its own, so what is drawn at a step does not depend on whether
# the steps before it were drawn in this process: a run that is taken up again draws the same.

T = TypeVar("T", bound=Task)


def drawn(tasks: TaskSet[T], weights: Mapping[str, float], n: int, stream: str) -> list[str]:
    """Draw by weight, without repeating a task until all were drawn (Efraimidis, Spirakis 2006).

    Each task gets the key u^(1/w) with its own uniform u; the largest keys are drawn.

    Args:
        tasks: What is drawn from; a task is verified when it is drawn.
        weights: By task id; a task without weight is never drawn.
        n: How many.
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
        tasks: What is drawn from.
        group_size: Rollouts of a task that are compared with each other.
        seed: Of the draws.
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
        trust: Trust = Trust(),  # noqa: B008 (frozen)
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
        return drawn(self._tasks, self.weights(), n, f"toolgym-success-{self._seed}-{step}")

    def state(self) -> dict[str, Any]:
        """What was observed, as plain data that JSON can hold."""
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

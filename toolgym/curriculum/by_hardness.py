"""Drawing by hardness, with weights that may change over the steps.

The hardness is what the family or the data set tells of a task; nothing is measured. Of each level
so many tasks are drawn as its weight says, however many of it there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from toolgym.curriculum.by_success import drawn
from toolgym.errors import ConfigurationError
from toolgym.tasks import Task, TaskSet

T = TypeVar("T", bound=Task)
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
        seed: Of the draws.

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
            if not any(at.get(known, 0) > 0 for known in self._sizes):
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
        return drawn(self._tasks, weights, n, f"toolgym-hardness-{self._seed}-{step}")


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

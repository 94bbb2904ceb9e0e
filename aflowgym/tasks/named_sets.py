"""The task sets of the environments: by name, path or rows, one kind or all, and "tiny".

"tiny" holds the bundled tasks, each many times under an id of its own (`math-change-1.03`). A
trainer plays a task with the task's own draws, so that the rollouts of a group meet the same luck;
with one id per task a small model would learn the luck of two hundred episodes by heart. The copies
are made when they are asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, overload

from aflowgym.tasks.facts import WorkflowTaskFacts
from aflowgym.tasks.loading import load_tasks
from aflowgym.tasks.task import KINDS, Kind, WorkflowTask
from toolgym import unseen
from toolgym.errors import ConfigurationError
from toolgym.tasks import TaskSet

FACTS: Final = WorkflowTaskFacts()
SHAPES: Final = FACTS.kinds[2]
DRAWS: Final = 25
"""How many copies of each task "tiny" holds."""


@dataclass(frozen=True)
class DrawnTask(WorkflowTask):
    """A copy of a task with an id, and so with draws, of its own.

    Attributes:
        base: The task that is solved.
    """

    base: WorkflowTask | None = None


def base_of(task: WorkflowTask) -> WorkflowTask:
    """The task that is solved, of which there may be copies."""
    return task.base or task if isinstance(task, DrawnTask) else task


class Copies(Sequence[WorkflowTask]):
    """Each of some tasks `DRAWS` times, all of them once before any comes again."""

    def __init__(self, tasks: Sequence[WorkflowTask]) -> None:
        self._tasks = list(tasks)
        self._places = {task.id: place for place, task in enumerate(self._tasks)}
        self._made: dict[int, DrawnTask] = {}

    def __len__(self) -> int:
        return len(self._tasks) * DRAWS

    @overload
    def __getitem__(self, index: int) -> WorkflowTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkflowTask]: ...
    def __getitem__(self, index: int | slice) -> WorkflowTask | Sequence[WorkflowTask]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        known = self._made.get(index)
        if known is None:
            draw, place = divmod(index, len(self._tasks))
            base = self._tasks[place]
            fields = {name: getattr(base, name) for name in WorkflowTask.__dataclass_fields__}
            fields["id"] = f"{base.id}.{draw:02d}"
            known = self._made[index] = DrawnTask(**fields, base=base)
        return known

    def place_of(self, task_id: str) -> int | None:
        """The place of the copy with this id; None if there is none."""
        name, _, draw = task_id.rpartition(".")
        place = self._places.get(name)
        right = len(draw) == 2 and draw.isascii() and draw.isdigit() and int(draw) < DRAWS
        return int(draw) * len(self._tasks) + place if right and place is not None else None


def tasks_of(
    dataset: str | Path | TaskSet[WorkflowTask] | Any, split: str, kind: Kind | None = None
) -> TaskSet[WorkflowTask]:
    """The tasks of an environment.

    Args:
        dataset: "bundled", "tiny", or whatever else `aflowgym.load_tasks` takes; or a `TaskSet`.
        split: "train", "dev", "test", or what else there is; "dev-families": those of "dev" whose
            family "train" has not; "dev-shapes": those of another kind than `kind`.
        kind: "math", "code" or "qa" leaves out the others; None leaves out none.

    Raises:
        ConfigurationError: There is no such data set, split or kind, or nothing is left.
    """
    if kind is not None and kind not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ConfigurationError(f"kind must be one of {known}, or None for all, got {kind!r}.")
    if isinstance(dataset, TaskSet):
        return _of_kind(dataset, kind)
    found = unseen.split_of(split, FACTS.kinds)
    shapes = found is not None and found[1] == SHAPES

    def load(name: str) -> TaskSet[WorkflowTask]:
        whole = shapes and name != unseen.TRAIN  # the kinds that training has are not asked for
        return _of_kind(_loaded(dataset, name), None if whole else kind)

    is_own = found is not None and _has(dataset, split)
    return unseen.load_split(split, FACTS, load, is_own=is_own)


def _has(dataset: Any, split: str) -> bool:
    """Whether a data set brings a split of just this name."""
    if isinstance(dataset, str | Path):
        return split in FACTS.splits(dataset)
    return isinstance(dataset, Mapping) and split in dataset


def _of_kind(tasks: TaskSet[WorkflowTask], kind: Kind | None) -> TaskSet[WorkflowTask]:
    chosen = tasks if kind is None else tasks.filter(lambda task: task.kind == kind)
    if not len(chosen):
        raise ConfigurationError(f"{tasks.name} has no {kind or 'usable'} task; ask for another.")
    return chosen


def _loaded(dataset: Any, split: str) -> TaskSet[WorkflowTask]:
    if not isinstance(dataset, str) or dataset != "tiny":
        return load_tasks(dataset, split)
    return _copies(load_tasks("bundled", split), f"tiny ({split})")


@functools.lru_cache(maxsize=8)
def _copies(tasks: TaskSet[WorkflowTask], name: str) -> TaskSet[WorkflowTask]:
    """One shared set for every copy of an environment."""
    return TaskSet(Copies(tasks), name=name)


__all__ = ["DRAWS", "Copies", "DrawnTask", "base_of", "tasks_of"]

"""The task sets of the environments: by name, path or rows, one kind or all, and "tiny".

"tiny" holds the bundled tasks, each many times under an id of its own (`math-change-1.03`). A
trainer plays a task with the task's own draws, so that the rollouts of a group meet the same luck;
with one id per task a small model would learn the luck of two hundred episodes by heart. The copies
are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, overload

from aflowgym.loading import load_tasks
from aflowgym.tasks import KINDS, Kind, WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.tasks import TaskSet

DATASETS: Final = ("bundled", "tiny")
SPLITS: Final = ("train", "dev", "test")
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
        split: "train", "dev", "test", or what else there is.
        kind: "math", "code" or "qa" leaves out the others; None leaves out none.

    Raises:
        ConfigurationError: There is no such data set, split or kind, or nothing is left.
    """
    if kind is not None and kind not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ConfigurationError(f"kind must be one of {known}, or None for all, got {kind!r}.")
    whole = dataset if isinstance(dataset, TaskSet) else _loaded(dataset, split)
    tasks = whole if kind is None else whole.filter(lambda task: task.kind == kind)
    if not len(tasks):
        raise ConfigurationError(f"{whole.name} has no {kind or 'usable'} task; ask for another.")
    return tasks


def _loaded(dataset: Any, split: str) -> TaskSet[WorkflowTask]:
    if not isinstance(dataset, str) or dataset != "tiny":
        return load_tasks(dataset, split)
    return TaskSet(Copies(load_tasks("bundled", split)), name=f"tiny ({split})")


__all__ = ["DATASETS", "DRAWS", "SPLITS", "Copies", "DrawnTask", "base_of", "tasks_of"]

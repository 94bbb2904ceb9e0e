"""The tasks of a server: its splits, and what a client may ask of them.

A server plays one environment with arguments that its command line gave. A client sees the splits
of the data set (or the one that the server was told to serve), counts and lists their tasks, and
names one of them; it never names a data set, a backend or a way of parsing.

The sets are loaded when the server starts, so that a mistake is told there and then.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, ToolgymError
from toolgym.registration import dataset_of
from toolgym.tasks import Task, TaskSet

WHOLE: Final = "train"
"""What the one split of an environment without splits is called."""
MOST_LISTED: Final = 10_000
"""Tasks that a list shows; any other is there by its number."""


class NoSuchTask(ToolgymError, LookupError):
    """A client named a split or a task that there is not; the text is for it."""


class Catalogue:
    """The splits of an environment and their tasks.

    Args:
        env_id: A registered environment.
        env_kwargs: Its arguments; with `split` that split alone is served.

    Raises:
        ConfigurationError: The environment cannot be made with these arguments.
    """

    def __init__(self, env_id: str, env_kwargs: Mapping[str, Any]) -> None:
        self.env_id, self.env_kwargs = env_id, dict(env_kwargs)
        taken = inspect.signature(registration.environment_creator(env_id)).parameters
        self._has_splits = "split" in taken
        self.first = self._made(None)
        """An environment to look at; no session plays in it."""
        own = str(
            self.env_kwargs.get("split", taken["split"].default if self._has_splits else WHOLE)
        )
        self.split = own
        """The split of an episode whose client names none."""
        names = [own] if "split" in self.env_kwargs else self._splits() or [own]
        self._tasks: dict[str, TaskSet[Task]] = {
            name: self.first.tasks if name == own else self._made(name).tasks for name in names
        }

    def _splits(self) -> list[str]:
        dataset = dataset_of(self.env_id, self.env_kwargs)
        if not self._has_splits or not isinstance(dataset, str | Path):
            return []
        return list(registration.family_of(self.env_id).splits(dataset))

    def _made(self, split: str | None) -> ToolEnv[Any]:
        named = {} if split is None or not self._has_splits else {"split": split}
        return registration.make(self.env_id, **{**self.env_kwargs, **named})

    @property
    def splits(self) -> list[str]:
        """Names of the splits that are served."""
        return list(self._tasks)

    def environment(self, split: str) -> ToolEnv[Any]:
        """A new environment that plays a split.

        Raises:
            NoSuchTask: There is no such split.
        """
        self.tasks(split)
        return self._made(split)

    def tasks(self, split: str) -> TaskSet[Task]:
        """The tasks of a split.

        Raises:
            NoSuchTask: There is no such split.
        """
        if split not in self._tasks:
            raise NoSuchTask(f"There is no split {split!r} here: take {' or '.join(self._tasks)}.")
        return self._tasks[split]

    def chosen(
        self, split: str | None, index: int | None, task_id: str | None
    ) -> tuple[str, str | None]:
        """The split and the task of an episode, from what a client named; the id may be left open.

        Raises:
            NoSuchTask: There is no such split, or no such task in it.
        """
        if task_id is not None:
            names = self.splits if split is None else [split]
            found = [name for name in names if self._has(name, task_id)]
            if not found:
                raise NoSuchTask(f"There is no task {task_id!r} in {' or '.join(names)}.")
            return (self.split if self.split in found else found[0]), task_id
        split = self.split if split is None else split
        self.tasks(split)
        return split, None if index is None else self.task_id(split, index)

    def _has(self, split: str, task_id: str) -> bool:
        try:
            self.tasks(split).get(task_id)
        except ConfigurationError:
            return False
        return True

    def task_id(self, split: str, index: int) -> str:
        """The id of a task, by its place in a split.

        Raises:
            NoSuchTask: There is no such split, or it has fewer tasks.
        """
        tasks = self.tasks(split)
        if not 0 <= index < len(tasks):
            raise NoSuchTask(f"There is no task {index} in {split}: it has {len(tasks)}.")
        return tasks[index].id

    def listed(self, split: str, start: int | None, stop: int | None) -> Sequence[dict[str, Any]]:
        """The tasks from one place to another, as slices of Python count."""
        tasks = self.tasks(split)
        places = range(len(tasks))[start:stop][:MOST_LISTED]
        return [{"id": tasks[place].id, "index": place} for place in places]

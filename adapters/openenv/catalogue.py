"""The splits and tasks that a server offers.

A server serves one environment, with the arguments from its command line. A client sees all splits
of the data set, or only the split given on the command line, and selects a task from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fastapi import HTTPException

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, ToolgymError
from toolgym.tasks import Task, TaskSet

WHOLE: Final = "train"
"""Name of the only split of an environment without splits."""


class Mistake(HTTPException, ToolgymError):
    """Raised if a client sends an invalid request; OpenEnv returns the message to the client."""

    def __init__(self, text: str) -> None:
        super().__init__(404, text)

    def __str__(self) -> str:
        return str(self.detail)


class Catalogue:
    """The splits of an environment with their tasks, which the constructor loads.

    Args:
        env_id: Id of a registered environment.
        env_kwargs: Arguments of the environment. If the arguments contain `split`, only this split
            is offered.

    Attributes:
        first: An environment that no session uses.
        split: The default split of an episode.

    Raises:
        ConfigurationError: If the environment cannot be made with these arguments.
    """

    def __init__(self, env_id: str, env_kwargs: Mapping[str, Any]) -> None:
        self.env_id, self._env_kwargs = env_id, env_kwargs
        taken, _ = registration.parameters_of(registration.environment_creator(env_id))
        self.first = registration.make(env_id, **env_kwargs)
        self.split = str(env_kwargs.get("split", taken.get("split", WHOLE)))
        self._takes_split = "split" in taken
        names: list[str] = [self.split]
        dataset = registration.dataset_of(env_id, env_kwargs)
        if self._takes_split and "split" not in env_kwargs and isinstance(dataset, str | Path):
            names = list(registration.family_of(env_id).splits(dataset)) or names
        self._tasks: dict[str, TaskSet[Task]] = {
            name: self.first.tasks if name == self.split else self.environment(name).tasks
            for name in names
        }

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(self._tasks)

    def environment(self, split: str) -> ToolEnv[Any]:
        """Make an environment for the tasks of a split."""
        own = {"split": split} if self._takes_split else {}
        return registration.make(self.env_id, **{**self._env_kwargs, **own})

    def tasks(self, split: str) -> TaskSet[Task]:
        """Return the tasks of a split.

        Raises:
            Mistake: If there is no such split.
        """
        if split not in self._tasks:
            raise Mistake(f"There is no split {split!r}. Use {' or '.join(self._tasks)}.")
        return self._tasks[split]

    def task_id(self, split: str, index: int) -> str:
        """Return the id of the task at an index of a split.

        Raises:
            Mistake: If the split does not exist, or the index is out of range.
        """
        tasks = self.tasks(split)
        if not 0 <= index < len(tasks):
            raise Mistake(f"There is no task {index} in {split}: it has {len(tasks)}.")
        return tasks[index].id

    def split_of(self, task_id: str, split: str | None) -> str:
        """Return a split that contains the task.

        If `split` is None, the default split is preferred.

        Raises:
            Mistake: If the split does not exist or does not contain the task.
        """
        names = [self.split, *self.splits] if split is None else [split]
        for name in names:
            try:
                self.tasks(name).get(task_id)
            except ConfigurationError:
                continue
            return name
        raise Mistake(f"There is no task {task_id!r} in {' or '.join(dict.fromkeys(names))}.")

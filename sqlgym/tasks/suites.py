"""The instances of the databases of a set, made for all golds of the set."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from weakref import WeakSet

from sqlgym.database.limits import Limits
from sqlgym.judging.making import make_instances
from sqlgym.judging.suite import Suite, suite_of
from sqlgym.tasks.gold import golds_by_database
from sqlgym.tasks.task import SqlTask
from toolgym.tasks import TaskSet

_MET: Final[set[Path]] = set()
"""Databases that this process has met. A second one shows that there will be more."""
_PREPARED: Final[WeakSet[TaskSet[SqlTask]]] = WeakSet()


def suite_for(
    tasks: TaskSet[SqlTask],
    task: SqlTask,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Suite:
    """The instances of a task's database, made unless the cache has them.

    Where a process meets a second database, the instances of all databases of the set are made on
    all cores, so that no rollout has to wait for its own.

    Args:
        tasks: The set that the task is of.
        limits: Hold for each statement on an instance.

    Raises:
        EnvironmentFault: The database cannot be read.
    """
    golds = golds_by_database(tasks)
    _MET.add(task.database)
    if len(_MET) > 1 and tasks not in _PREPARED:
        _PREPARED.add(tasks)
        make_instances(golds)
    return suite_of(task.database, golds.get(task.database) or [task.gold_sql], limits)

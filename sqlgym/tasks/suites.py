"""Provides the suite of a task: instances of its database, made for all golds of the task set."""

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
"""Databases that this process has met; after a second one, more are expected."""
_PREPARED: Final[WeakSet[TaskSet[SqlTask]]] = WeakSet()


def suite_for(
    tasks: TaskSet[SqlTask],
    task: SqlTask,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Suite:
    """The suite of a task's database; its instances are made unless the cache has them.

    When a process meets its second database, the instances of all databases of the set are made on
    all cores, so that no later rollout has to wait for them.

    Args:
        tasks: The set that the task belongs to; the instances are made for its golds.
        limits: Limits of each statement on an instance.

    Raises:
        EnvironmentFault: The database cannot be read.
    """
    golds = golds_by_database(tasks)
    _MET.add(task.database)
    if len(_MET) > 1 and tasks not in _PREPARED:
        _PREPARED.add(tasks)
        make_instances(golds)
    return suite_of(task.database, golds.get(task.database) or [task.gold_sql], limits)

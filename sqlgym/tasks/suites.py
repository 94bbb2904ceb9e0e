"""Provides the test suite of a task: instances of its database for the gold queries of the set."""

from __future__ import annotations

import functools

from sqlgym.database.limits import Limits
from sqlgym.judging.making import make_instances
from sqlgym.judging.suite import Suite, suite_of
from sqlgym.tasks.gold import golds_by_database
from sqlgym.tasks.task import SqlTask
from toolgym.tasks import TaskSet


def suite_for(
    tasks: TaskSet[SqlTask],
    task: SqlTask,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Suite:
    """Return the suite of a task's database.

    The first call for a task set creates the missing instances of all its databases on all cores,
    so later rollouts do not wait for them.

    Args:
        tasks: The set that contains the task; instances are created for its gold queries.
        limits: Limits of each statement on an instance.

    Raises:
        EnvironmentFault: The database cannot be read.
    """
    _prepare(tasks)
    golds = golds_by_database(tasks).get(task.database) or [task.gold_sql]
    return suite_of(task.database, golds, limits)


@functools.lru_cache(maxsize=8)
def _prepare(tasks: TaskSet[SqlTask]) -> None:
    make_instances(golds_by_database(tasks))

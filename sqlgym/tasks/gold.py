"""The right answer of a task: its gold SQL, run once and judged fair.

A gold query is run like any other, and is refused where its result cannot be a fair answer: it
fails, reads no table, does not fit into an observation, or is one of several that are right.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.judging.answers import GoldAnswer, refusal
from sqlgym.judging.results import is_ordered
from sqlgym.judging.several_results import several_results
from sqlgym.judging.ties import free_runs
from sqlgym.tasks.task import SqlTask
from toolgym.errors import TaskRefused, ToolError


@dataclass(frozen=True)
class Gold:
    """The right answer of a task.

    Attributes:
        result: What the gold SQL returned.
        answer: The same as a typed value to compare answers with.
        ordered: The gold SQL orders at top level, so order counts.
    """

    result: QueryResult
    answer: GoldAnswer
    ordered: bool


@functools.lru_cache(maxsize=4096)
def gold_of(task: SqlTask) -> Gold:
    """Run the gold SQL of a task.

    Raises:
        TaskRefused: It fails, or its result cannot be a fair answer.
        EnvironmentFault: The database file is missing or damaged.
    """
    database: Database = open_database(task.database)
    try:
        result = database.query(task.gold_sql)
    except ToolError as error:
        raise TaskRefused(
            task.id, f"gold_{error.code}", f"its gold SQL fails: {error.message}"
        ) from None
    if not result.tables_read:
        raise TaskRefused(task.id, "constant_gold", "its gold SQL reads no table.")
    reason = refusal(result)
    if reason is not None:
        raise TaskRefused(task.id, *reason)
    several = several_results(database, task.gold_sql, result)
    if several is not None:
        raise TaskRefused(task.id, *several)
    ordered = is_ordered(task.gold_sql)
    runs = free_runs(database, task.gold_sql, result) if ordered else ()
    result = replace(result)  # its own object: the cached one is what observations are made of
    return Gold(result, GoldAnswer.of(result.columns, result.rows, ordered, runs), ordered)

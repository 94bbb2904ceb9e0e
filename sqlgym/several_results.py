"""Golds with several right results: a fair task has one.

Three ways in which SQL leaves its result to chance are looked for: a LIMIT that cuts through rows
that tie (`sqlgym.ties`), a column that is neither grouped by nor aggregated and differs within its
group (`sqlgym.bare_columns`), and whatever shows when all tables are read from their other end,
such as the order inside `group_concat`.
"""

from __future__ import annotations

from sqlgym.bare_columns import open_group
from sqlgym.database import Database, QueryResult
from sqlgym.results import compare
from sqlgym.ties import tied_limit
from toolgym.errors import ToolError


def several_results(database: Database, sql: str, result: QueryResult) -> tuple[str, str] | None:
    """Why a gold has several right results, as code and reason; None where none were found.

    Args:
        database: Where it ran.
        sql: The query.
        result: What it gave there.
    """
    tie = tied_limit(database, sql, result)
    if tie is not None:
        return "tied_limit", tie
    choice = open_group(database, sql) or depends_on_reading(database, sql, result)
    return None if choice is None else ("open_choice", choice)


def depends_on_reading(database: Database, sql: str, result: QueryResult) -> str | None:
    """Why a query leaves its result to the order in which rows are read; None if it does not.

    The query is run once more with all tables read from the other end. A difference, as in the
    order inside `group_concat`, proves the choice; its absence proves nothing: SQLite reads from
    the same end where it sorts, as for a column that is neither grouped by nor aggregated.

    Args:
        database: Where it ran.
        sql: The query.
        result: What it gave there.
    """
    try:
        other = database.backwards.query(sql)
    except ToolError:  # it took nearly all of its budget already
        return None
    if other.truncated or compare(result.rows, other.rows, ordered=False).equal:
        return None
    return "it depends on the order in which rows are read, so that several results are right."

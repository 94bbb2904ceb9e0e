"""Golds with several right results: a fair task has one.

SQL leaves its result to chance in several ways: by a LIMIT that cuts through rows that tie
(`sqlgym.judging.ties`), by a column that is neither grouped by nor aggregated and differs among the
rows that it may come from (`sqlgym.judging.bare_columns`), and by whatever follows the order of
rows, such as the order inside `group_concat`, or `row_number()` where rows tie
(`sqlgym.judging.free_choices`). A query that leaves such a choice is run again on the same rows in
other orders (`sqlgym.judging.row_orders`), and every query once with all tables read from their
other end.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database, QueryResult
from sqlgym.database.parsing import careful, parse
from sqlgym.judging.bare_columns import OpenGroup, open_group_of
from sqlgym.judging.free_choices import leaves_choices
from sqlgym.judging.results import compare
from sqlgym.judging.row_orders import other_result
from sqlgym.judging.ties import tied_limit
from toolgym.errors import ToolError

_BY_ORDER = "it depends on the order in which rows are read, so that several results are right."
_CHOOSING = ("(", "group", "distinct", "union", "intersect", "except")
"""A query without any of these in its text leaves no choice but that of a LIMIT."""


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
    try:
        choice = careful(lambda: _choice(database, sql, result))
    except SqlglotError:  # it cannot be read
        choice = depends_on_reading(database, sql, result)
    return None if choice is None else ("open_choice", choice)


def _choice(database: Database, sql: str, result: QueryResult) -> str | None:
    """Why a query leaves a choice other than that of a LIMIT."""
    lower = sql.lower()
    if not any(word in lower for word in _CHOOSING):
        return depends_on_reading(database, sql, result)
    tree = parse(sql)
    found = open_group_of(database, tree)
    if found.is_certain:
        return found.reason
    return depends_on_reading(database, sql, result) or _tried(database, sql, result, tree, found)


def _tried(
    database: Database, sql: str, result: QueryResult, tree: exp.Expr, found: OpenGroup
) -> str | None:
    """Why a query leaves a choice, by running it on the same rows in other orders."""
    if not found.is_possible and not leaves_choices(tree, database):
        return None
    differs = other_result(database, sql, result, tree)
    if differs is None:  # nothing is known but that there is a choice
        return found.reason
    return (found.reason or _BY_ORDER) if differs else None


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
    return _BY_ORDER

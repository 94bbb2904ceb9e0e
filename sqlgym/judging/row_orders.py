"""Does a query give another result when its tables' rows come in another order?

The order of a table's rows is nobody's promise, so a query whose result follows it leaves that
result to chance: a difference proves that several results are right. To see one, the query is run
again with its tables replaced by table expressions of their names, which hold the same rows sorted:

    WITH "singer" AS (SELECT * FROM main."singer" ORDER BY age, ... LIMIT -1) SELECT ...

Only the text before the query changes. The LIMIT keeps SQLite from dropping the order. All tables
are sorted upwards and then downwards by what the query takes of them, so that the first and the
last of the rows that tie are those that differ, if any do; and each order is read from either end.
Where a choice shows through an expression or a condition only, one in the middle may matter, so a
few orders that scatter the rows are tried as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import TokenType, exp
from sqlglot.dialects.sqlite import SQLite

from sqlgym.database.database import Database, QueryResult
from sqlgym.database.sqlite_file import quoted
from sqlgym.judging.free_choices import Keys, keys_of
from sqlgym.judging.results import compare, is_ordered
from sqlgym.judging.ties import free_runs
from toolgym.errors import ToolError

_FACTORS: Final = (618_034, 414_214, 732_051)
_MODULUS: Final = 1_000_003
"""Row i is put where i * factor modulo this falls, which scatters the rows evenly."""
_MOST_KEYS: Final = 40


def other_result(database: Database, sql: str, result: QueryResult, tree: exp.Expr) -> bool | None:
    """Whether another order of the rows gives a query another result.

    Args:
        database: Where it ran.
        sql: The query.
        result: What it gave there.
        tree: The query, parsed.

    Returns:
        None where that cannot be told: it has a budget that is nearly spent, or names rows by their
        numbers.
    """
    keys = keys_of(tree, database.schema)
    ordered = is_ordered(sql)
    runs = free_runs(database, sql, result) if ordered else ()
    for place, sorts in enumerate(_sorts(database, keys)):
        text = _with_sorted(sql, sorts)
        for read in (database, database.backwards) if place < 2 else (database,):
            try:
                other = read.query(text)
            except ToolError:
                return None
            if other.truncated:
                return None
            if not compare(result.rows, other.rows, ordered, runs).equal:
                return True
    return False


def _sorts(database: Database, keys: Keys) -> Iterator[dict[str, str]]:
    """By table, what its rows are sorted by; one dict for each order to try."""
    if not keys:  # it reads nothing but what it has made itself
        return
    columns = {}
    for table, telling in keys.items():
        known = database.schema.find(table).columns
        columns[table] = [*telling, *(quoted(column.name) for column in known)][:_MOST_KEYS]
    for way in ("ASC", "DESC"):
        yield {
            table: ", ".join(f"{key} COLLATE BINARY {way}" for key in found)
            for table, found in columns.items()
        }
    for factor in _FACTORS:
        yield {
            table: f"row_number() OVER (ORDER BY {', '.join(found)}) * {factor} % {_MODULUS}"
            for table, found in columns.items()
        }


def _with_sorted(sql: str, sorts: dict[str, str]) -> str:
    """The query behind table expressions that hold the rows of its tables in some order."""
    expressions = ", ".join(
        f"{quoted(table)} AS (SELECT * FROM main.{quoted(table)} ORDER BY {by} LIMIT -1)"
        for table, by in sorts.items()
    )
    tokens = SQLite().tokenize(sql)
    if not tokens or tokens[0].token_type is not TokenType.WITH:
        return f"WITH {expressions} {sql}"
    recursive = len(tokens) > 1 and tokens[1].token_type is TokenType.RECURSIVE
    opening = tokens[1] if recursive else tokens[0]
    begin = sql[: opening.end + 1]
    return f"{begin} {expressions}, {sql[opening.end + 1 :]}"

"""Detect gold queries that have several correct results.

SQL leaves the result of a query undefined in several cases:

* A LIMIT cuts through tied rows (`sqlgym.judging.ties`).
* A column is neither grouped by nor aggregated, and its values differ within a group.
* The result depends on the order of rows in `group_concat`, or on tied rows in a window function.
* A scalar subquery returns several rows.
* A collation treats different strings as equal, and DISTINCT, GROUP BY, `max` or a compound query
  keeps only one of them.

SQLite does not guarantee any order of rows. Therefore a query is run again with the rows of its
tables in other orders, and a different result proves that the query has several correct results.
Every query is run once with all tables read in reverse order. A query whose syntax allows several
results is also run on sorted copies of its tables:

    WITH "singer" AS (SELECT * FROM main."singer" ORDER BY age, ... LIMIT -1) SELECT ...

In a join, SQLite can use its own index to sort the inner table. A query that selects a column
without grouping by it is therefore also run with MIN and with MAX of that column.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database, QueryResult
from sqlgym.database.parsing import careful, parse, shared_tree, tokens_of
from sqlgym.database.sqlite_file import quoted
from sqlgym.judging.results import compare, is_ordered
from sqlgym.judging.ties import free_runs, tied_limit
from toolgym.errors import ToolError

_BY_ORDER: Final = (
    "it depends on the order in which rows are read, so that several results are right."
)
_ORDER_FUNCTIONS: Final = frozenset(
    {"groupconcat", "jsonarrayagg", "jsonobjectagg", "rownumber", "lag", "lead", "ntile"}
    | {"firstvalue", "lastvalue", "nthvalue"}
)
"""Functions, as sqlglot classes, whose value depends on the order of tied rows."""
_NAMELESS: Final = frozenset({"total", "percentile", "percentile_cont", "percentile_disc"})
"""Aggregates without a sqlglot class."""
_AGGREGATES: Final = (exp.AggFunc, exp.JSONArrayAgg, exp.JSONObjectAgg, exp.Filter)
_KEEPS_ONE: Final = (exp.Distinct, exp.Group, exp.SetOperation, exp.Max, exp.Min)
_HAS_ROWS: Final = (exp.From, exp.Join, exp.In, exp.Exists, exp.SetOperation, exp.CTE, exp.Subquery)
_NOT_OF_ROW: Final = (exp.Query, exp.Window, exp.Star)
_FACTORS: Final = (618_034, 414_214, 732_051)
_MODULUS: Final = 1_000_003
"""Row i of an order gets the position `i * factor % _MODULUS`, which scatters the rows evenly."""
_MOST_KEYS: Final = 40
"""Number of columns by which the rows of a table are sorted."""


def several_results(database: Database, sql: str, result: QueryResult) -> tuple[str, str] | None:
    """Return a code and the reason why a gold query has several correct results.

    Returns:
        `tied_limit` or `open_choice` with the reason, or None if no other result was found.
    """
    tie = tied_limit(database, sql, result)
    if tie is not None:
        return "tied_limit", tie
    ordered = is_ordered(sql)
    runs = free_runs(database, sql, result) if ordered else ()
    try:
        least, greatest = (database.query(text).rows for text in _extremes(sql))
        if not compare(least, greatest, ordered=False).equal:
            return "open_choice", _BY_ORDER
    except (ToolError, ValueError):  # it selects no such column, or cannot be rewritten
        pass
    for reader, text in _other_orders(database, sql):
        try:
            other = reader.query(text)
        except ToolError:  # its budget is nearly used up, or it refers to row numbers
            return None
        if other.truncated:
            return None
        if not compare(result.rows, other.rows, ordered, runs).equal:
            return "open_choice", _BY_ORDER
    return None


@lru_cache(maxsize=4_096)
def _extremes(sql: str) -> tuple[str, ...]:
    """Return a query twice: with `min` and with `max` of the columns that it does not group by."""
    try:
        return careful(
            lambda: tuple(_with_extreme(parse(sql), kind) for kind in (exp.Min, exp.Max))
        )
    except (SqlglotError, ValueError):
        return ()


def _with_extreme(tree: exp.Expr, kind: type[exp.AggFunc]) -> str:
    if not isinstance(tree, exp.Select) or not _has_bare_columns(tree):
        raise ValueError("it selects nothing that it does not group by")
    if tree.find(exp.Min, exp.Max) or any(map(tree.args.get, ("distinct", "limit"))):
        raise ValueError("SQLite takes the columns from the row with the only `min` or `max`")
    for part in tree.expressions:
        if not any(is_aggregate(node) or isinstance(node, _NOT_OF_ROW) for node in part.walk()):
            part.unalias().replace(kind(this=part.unalias().copy()))
    return str(tree.sql(dialect="sqlite"))


def is_aggregate(node: Any) -> bool:
    """Return whether a node aggregates rows and is not a window function."""
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in _NAMELESS
    above = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
    in_window = isinstance(above, exp.Window) and node.arg_key == "this"
    return (is_named or isinstance(node, _AGGREGATES)) and not in_window


def _other_orders(database: Database, sql: str) -> Iterator[tuple[Database, str]]:
    """Yield queries, and databases to run them on, that read the same rows in other orders."""
    yield database.backwards, sql
    try:
        tree = shared_tree(sql)
        tables = careful(lambda: _sorted_by(tree, database) if _chooses(tree, database) else {})
    except SqlglotError:
        return
    if not tables:
        return
    for way in ("ASC", "DESC"):  # if tied rows differ, the first and the last of them differ
        orders = {
            name: ", ".join(f"{key} COLLATE BINARY {way}" for key in keys)
            for name, keys in tables.items()
        }
        text = _with_sorted(sql, orders)
        yield database, text
        yield database.backwards, text
    for factor in _FACTORS:  # inside an expression, only a row in the middle may differ
        yield (
            database,
            _with_sorted(
                sql,
                {
                    name: f"row_number() OVER (ORDER BY {', '.join(keys)}) * {factor} % {_MODULUS}"
                    for name, keys in tables.items()
                },
            ),
        )


def _chooses(tree: exp.Expr, database: Database) -> bool:
    """Return whether the syntax of a query allows a result that depends on the order of rows."""
    for node in tree.walk():
        if isinstance(node, exp.Select) and _has_bare_columns(node):
            return True
        if isinstance(node, exp.Subquery) and _takes_first_row(node):
            return True
        if isinstance(node, exp.WindowSpec) and str(node.args.get("kind")).upper() == "ROWS":
            return True
        name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
        if name.lower().replace("_", "") in _ORDER_FUNCTIONS:
            return True
    if tree.find(*_KEEPS_ONE) is None:
        return False
    collated = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%COLLATE%'"
    return tree.find(exp.Collate) is not None or bool(database.query(collated).rows)


def _has_bare_columns(select: exp.Select) -> bool:
    """Return whether a grouped SELECT uses columns that are neither keys nor aggregated."""
    group = select.args.get("group")
    keys = {key.sql().lower() for key in group.expressions} if group is not None else set()
    clauses = (select.args.get(name) for name in ("having", "order"))
    nodes = [*select.expressions, *filter(None, clauses)]
    is_grouped, is_bare = group is not None, False
    while nodes:
        node = nodes.pop()
        if is_aggregate(node):
            is_grouped = True
        elif isinstance(node, exp.Column | exp.Star | exp.Query):
            is_bare = is_bare or node.sql().lower() not in keys
        else:
            nodes += node.iter_expressions()
    return is_grouped and is_bare


def _takes_first_row(subquery: exp.Subquery) -> bool:
    """Return whether a subquery is used as a scalar and may find several rows."""
    select = subquery.unnest()
    if isinstance(subquery.parent, _HAS_ROWS) or select.args.get("limit") is not None:
        return False
    is_single = select.args.get("group") is None and any(
        is_aggregate(node) for part in select.expressions for node in part.find_all(exp.Func)
    )
    return not (isinstance(select, exp.Select) and is_single)


def _sorted_by(tree: exp.Expr, database: Database) -> dict[str, list[str]]:
    """Return the columns to sort each table of a query by, starting with those that the query
    uses.
    """
    made_here = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    named = dict.fromkeys(each.name.lower() for each in tree.find_all(exp.Column, bfs=False))
    places = {name: place for place, name in enumerate(named)}
    tables = {}
    for node in tree.find_all(exp.Table):
        table = database.schema.get(node.name)
        if table is not None and not node.db and node.name.lower() not in made_here:
            names = sorted(
                (column.name for column in table.columns),
                key=lambda name: places.get(name.lower(), len(places)),
            )
            tables[table.name] = [quoted(name) for name in names[:_MOST_KEYS]]
    return tables


def _with_sorted(sql: str, orders: dict[str, str]) -> str:
    """Prepend table expressions that contain the rows of a query's tables in some order.

    The LIMIT prevents SQLite from discarding the order.
    """
    expressions = ", ".join(
        f"{quoted(table)} AS (SELECT * FROM main.{quoted(table)} ORDER BY {by} LIMIT -1)"
        for table, by in orders.items()
    )
    tokens = tokens_of(sql)
    if not tokens or tokens[0].token_type is not TokenType.WITH:
        return f"WITH {expressions} {sql}"
    is_recursive = len(tokens) > 1 and tokens[1].token_type is TokenType.RECURSIVE
    start = tokens[is_recursive].end + 1
    return f"{sql[:start]} {expressions}, {sql[start:]}"

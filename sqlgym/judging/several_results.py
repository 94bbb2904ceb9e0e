"""Golds with several right results: a fair task has one.

SQL leaves its result to chance in several ways: by a LIMIT that cuts through rows that tie
(`sqlgym.judging.ties`), by a column that is neither grouped by nor aggregated and differs among the
rows that it may come from (`sqlgym.judging.bare_columns`), and by whatever follows the order of
rows: the order inside `group_concat`; `row_number()` and other windows where rows tie; a subquery
for one value that finds several rows; text that a collation takes for equal, of which DISTINCT,
GROUP BY, `max` and compound queries keep one.

The order of a table's rows is nobody's promise. So a query that leaves such a choice is run again
with its tables replaced by table expressions of their names, which hold the same rows sorted:

    WITH "singer" AS (SELECT * FROM main."singer" ORDER BY age, ... LIMIT -1) SELECT ...

A difference proves that several results are right. Every query runs once more with all tables read
from their other end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database, QueryResult
from sqlgym.database.parsing import careful, shared_tree, tokens_of
from sqlgym.database.schema import Schema
from sqlgym.database.sqlite_file import quoted
from sqlgym.judging.bare_columns import OpenGroup, is_aggregate, open_group_of, sources_of
from sqlgym.judging.results import compare, is_ordered
from sqlgym.judging.ties import free_runs, tied_limit
from toolgym.errors import ToolError

_ORDER_FUNCTIONS: Final = frozenset(
    {"groupconcat", "jsonarrayagg", "jsonobjectagg", "rownumber", "lag", "lead", "ntile"}
    | {"firstvalue", "lastvalue", "nthvalue"}
)
"""Functions, as the parser calls them, whose value depends on the order of rows that tie."""
_ONE_OF_SEVERAL: Final = (exp.Distinct, exp.Group, exp.SetOperation, exp.Max, exp.Min)
_HAS_ROWS: Final = (exp.From, exp.Join, exp.In, exp.Exists, exp.SetOperation, exp.CTE)
_COLLATED = "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%COLLATE%'"
_NOT_OF_A_ROW: Final = (exp.Query, exp.Window, exp.AggFunc, exp.RowNumber)
_LONGEST_KEY: Final = 200
"""Parts of an expression that is still worth to order by."""


def leaves_choices(tree: exp.Expr, database: Database) -> bool:
    """Whether a query may leave a choice that is none of a group's columns."""
    if any(_is_by_order(node) for node in tree.find_all(exp.Func, exp.WindowSpec)):
        return True
    if any(
        _takes_the_first(node) and not _has_one_row(node, tree, database)
        for node in tree.find_all(exp.Subquery)
    ):
        return True
    return tree.find(*_ONE_OF_SEVERAL) is not None and _is_collated(tree, database)


def _is_by_order(node: exp.Expr) -> bool:
    if isinstance(node, exp.WindowSpec):
        return str(node.args.get("kind")).upper() == "ROWS"
    name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
    return name.lower().replace("_", "") in _ORDER_FUNCTIONS


def _takes_the_first(subquery: exp.Subquery) -> bool:
    """Whether a subquery stands for one value, and may find several rows to take it from."""
    if isinstance(subquery.parent, (*_HAS_ROWS, exp.Subquery)):
        return False
    inner = subquery.unnest()
    if not isinstance(inner, exp.Select):
        return True
    if inner.args.get("limit") is not None:  # which `sqlgym.judging.ties` looks at
        return False
    single = inner.args.get("group") is None and any(
        is_aggregate(node) for part in inner.expressions for node in part.find_all(exp.Func)
    )
    return not single


def _has_one_row(subquery: exp.Subquery, tree: exp.Expr, database: Database) -> bool:
    """Whether a subquery finds a single row, as can be seen where it stands by itself."""
    columns = subquery.find_all(exp.Column)
    if tree.find(exp.CTE) is not None or any(c.this.quoted and not c.table for c in columns):
        return False  # by itself, SQLite takes a quoted name that it does not know for a text
    inner = subquery.unnest().sql(dialect="sqlite")
    try:
        return len(database.query(f"SELECT 1 FROM ({inner}) LIMIT 2").rows) < 2
    except ToolError:  # it refers to the query around it
        return False


def _is_collated(tree: exp.Expr, database: Database) -> bool:
    if tree.find(exp.Collate) is not None:
        return True
    try:
        return bool(database.query(_COLLATED).rows[0][0])
    except ToolError:
        return False


Keys = dict[str, list[str]]
"""By table, expressions of its columns as SQL, the most telling ones first."""


def keys_of(tree: exp.Expr, schema: Schema) -> Keys:
    """The best keys to order the tables of a query by, so that its choices change.

    For each table all that is selected of it, looked at in a HAVING, or ordered by: expressions of
    its columns, as long as they can be, and then the columns. A table without any is there as well.
    """
    made_here = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    keys: Keys = {}
    for select in tree.find_all(exp.Select):
        sources = {}
        for table in sources_of(select):
            schema_table = schema.get(table.name)
            if schema_table is not None and not table.db and table.name.lower() not in made_here:
                sources[table.alias_or_name.lower()] = schema_table.name
                keys.setdefault(schema_table.name, [])
        parts = [*select.expressions, *(select.args.get(part) for part in ("having", "order"))]
        for part in parts:
            if part is not None:
                _add(part, partial(_owner, sources, schema), keys)
    return {table: list(dict.fromkeys(expressions)) for table, expressions in keys.items()}


Owner = Callable[[exp.Column], str | None]


def _owner(sources: dict[str, str], schema: Schema, column: exp.Column) -> str | None:
    """The table of a column; None where it is of none that the SELECT reads itself."""
    if column.table:
        return sources.get(column.table.lower())
    for name in sources.values():
        table = schema.get(name)
        if table is not None and table.column(column.name) is not None:
            return name
    return None


def _add(part: exp.Expr, owner_of: Owner, keys: Keys) -> None:
    """Add the largest expressions of a part that one table's rows give by themselves."""
    nodes: list[Any] = [part]
    columns: list[exp.Column] = []
    while nodes:
        node = nodes.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Column):
            columns.append(node)
        elif isinstance(node, exp.Alias | exp.Ordered | exp.Having | exp.Order | exp.Paren):
            nodes += reversed(list(node.iter_expressions()))
        elif (plain := _plain(node, owner_of)) is not None:
            keys[plain[0]].append(plain[1])
            columns += node.find_all(exp.Column)
        else:
            nodes += reversed(list(node.iter_expressions()))
    for column in columns:
        owner = owner_of(column)
        if owner is not None and not isinstance(column.this, exp.Star):
            keys[owner].append(exp.column(column.this.copy()).sql(dialect="sqlite"))


def _plain(node: Any, owner_of: Owner) -> tuple[str, str] | None:
    """The table and the SQL of an expression that one of its rows gives; None if it is none."""
    below = list(islice(node.walk(), _LONGEST_KEY + 1))
    if len(below) > _LONGEST_KEY or not isinstance(node, exp.Condition):
        return None
    if any(isinstance(each, _NOT_OF_A_ROW) or is_aggregate(each) for each in below):
        return None
    tables = {owner_of(each) for each in below if isinstance(each, exp.Column)}
    owner = next(iter(tables), None)
    if len(tables) != 1 or owner is None:
        return None
    alone = node.transform(
        lambda each: exp.column(each.this.copy()) if isinstance(each, exp.Column) else each
    )
    return owner, f"({alone.sql(dialect='sqlite')})"


_FACTORS: Final = (618_034, 414_214, 732_051)
_MODULUS: Final = 1_000_003
"""Row i is put where i * factor modulo this falls, which scatters the rows evenly."""
_MOST_KEYS: Final = 40


def other_result(database: Database, sql: str, result: QueryResult, tree: exp.Expr) -> bool | None:
    """Whether another order of the rows gives a query another result.

    All tables are sorted upwards and then downwards by what the query takes of them, so that the
    first and the last of the rows that tie are those that differ, if any do; and each order is read
    from either end. Where a choice shows through an expression or a condition only, one in the
    middle may matter, so a few orders that scatter the rows are tried as well.

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
        own = database.schema.find(table).columns
        columns[table] = [*telling, *(quoted(column.name) for column in own)][:_MOST_KEYS]
    for way in ("ASC", "DESC"):
        yield {
            table: ", ".join(f"{key} COLLATE BINARY {way}" for key in sort_keys)
            for table, sort_keys in columns.items()
        }
    for factor in _FACTORS:
        yield {
            table: f"row_number() OVER (ORDER BY {', '.join(sort_keys)}) * {factor} % {_MODULUS}"
            for table, sort_keys in columns.items()
        }


def _with_sorted(sql: str, sorts: dict[str, str]) -> str:
    """The query behind table expressions that hold the rows of its tables in some order.

    The LIMIT keeps SQLite from dropping the order.
    """
    expressions = ", ".join(
        f"{quoted(table)} AS (SELECT * FROM main.{quoted(table)} ORDER BY {by} LIMIT -1)"
        for table, by in sorts.items()
    )
    tokens = tokens_of(sql)
    if not tokens or tokens[0].token_type is not TokenType.WITH:
        return f"WITH {expressions} {sql}"
    recursive = len(tokens) > 1 and tokens[1].token_type is TokenType.RECURSIVE
    opening = tokens[1] if recursive else tokens[0]
    begin = sql[: opening.end + 1]
    return f"{begin} {expressions}, {sql[opening.end + 1 :]}"


_BY_ORDER = "it depends on the order in which rows are read, so that several results are right."
_CHOOSING = ("(", "group", "distinct", "union", "intersect", "except")
"""A query without any of these in its text leaves no choice but that of a LIMIT."""


def several_results(database: Database, sql: str, result: QueryResult) -> tuple[str, str] | None:
    """Why a gold has several right results, as code and reason; None where none were found."""
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
    tree = shared_tree(sql)
    group = open_group_of(database, tree)
    if group.is_certain:
        return group.reason
    return depends_on_reading(database, sql, result) or _tried(database, sql, result, tree, group)


def _tried(
    database: Database, sql: str, result: QueryResult, tree: exp.Expr, group: OpenGroup
) -> str | None:
    """Why a query leaves a choice, by running it on the same rows in other orders."""
    if not group.is_possible and not leaves_choices(tree, database):
        return None
    differs = other_result(database, sql, result, tree)
    if differs is None:  # nothing is known but that there is a choice
        return group.reason
    return (group.reason or _BY_ORDER) if differs else None


def depends_on_reading(database: Database, sql: str, result: QueryResult) -> str | None:
    """Why a query leaves its result to the order in which rows are read; None if it does not.

    The query is run once more with all tables read from the other end. A difference, as in the
    order inside `group_concat`, proves the choice; its absence proves nothing: SQLite reads from
    the same end where it sorts, as for a column that is neither grouped by nor aggregated.
    """
    try:
        other = database.backwards.query(sql)
    except ToolError:  # it took nearly all of its budget already
        return None
    if other.truncated or compare(result.rows, other.rows, ordered=False).equal:
        return None
    return _BY_ORDER

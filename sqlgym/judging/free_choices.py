"""Where a query lets SQLite choose by the order in which rows come, and what a choice falls on.

Besides columns that are not grouped by (`sqlgym.judging.grouping`) that is: the order inside
`group_concat` and its like; window functions that tell apart rows which their ORDER BY does not
(`row_number`, `lag`, `first_value`, frames of ROWS); a subquery for one value that finds several
rows, of which the first is taken; and text that a collation takes for equal, of which DISTINCT,
GROUP BY, `max` and compound queries keep one.

Whether any of it matters is found out by trying (`sqlgym.judging.row_orders`), and the best orders
to try are by what the choice falls on: that is what `keys_of` collects.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from sqlglot import exp

from sqlgym.database.database import Database
from sqlgym.database.schema import Schema
from sqlgym.judging.grouping import is_aggregate, sources_of
from toolgym.errors import ToolError

_BY_ORDER: Final = frozenset(
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
    if any(_takes_the_first(node) for node in tree.find_all(exp.Subquery)):
        return True
    return tree.find(*_ONE_OF_SEVERAL) is not None and _is_collated(tree, database)


def _is_by_order(node: exp.Expr) -> bool:
    if isinstance(node, exp.WindowSpec):
        return str(node.args.get("kind")).upper() == "ROWS"
    name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
    return name.lower().replace("_", "") in _BY_ORDER


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
    """What the tables that a query names are best ordered by, to change its choices.

    For each table all that is selected of it, looked at in a HAVING, or ordered by: expressions of
    its columns, as long as they can be, and then the columns. A table without any is there as well.
    """
    made_here = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    keys: Keys = {}
    for select in tree.find_all(exp.Select):
        sources = {}
        for table in sources_of(select):
            known = schema.get(table.name)
            if known is not None and not table.db and table.name.lower() not in made_here:
                sources[table.alias_or_name.lower()] = known.name
                keys.setdefault(known.name, [])
        shown = [*select.expressions, *(select.args.get(part) for part in ("having", "order"))]
        for part in shown:
            if part is not None:
                _add(part, _Owners(sources, schema), keys)
    return {table: list(dict.fromkeys(found)) for table, found in keys.items()}


class _Owners:
    """Whose the columns of one SELECT are."""

    def __init__(self, sources: dict[str, str], schema: Schema) -> None:
        self._sources, self._schema = sources, schema

    def of(self, column: exp.Column) -> str | None:
        """The table of a column; None where it is of none that the SELECT reads itself."""
        if column.table:
            return self._sources.get(column.table.lower())
        for name in self._sources.values():
            table = self._schema.get(name)
            if table is not None and table.column(column.name) is not None:
                return name
        return None


def _add(part: exp.Expr, owners: _Owners, keys: Keys) -> None:
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
        elif (found := _plain(node, owners)) is not None:
            keys[found[0]].append(found[1])
            columns += node.find_all(exp.Column)
        else:
            nodes += reversed(list(node.iter_expressions()))
    for column in columns:
        owner = owners.of(column)
        if owner is not None and not isinstance(column.this, exp.Star):
            keys[owner].append(exp.column(column.this.copy()).sql(dialect="sqlite"))


def _plain(node: Any, owners: _Owners) -> tuple[str, str] | None:
    """The table and the SQL of an expression that one of its rows gives; None if it is none."""
    below = list(islice(node.walk(), _LONGEST_KEY + 1))
    if len(below) > _LONGEST_KEY or not isinstance(node, exp.Condition):
        return None
    if any(isinstance(each, _NOT_OF_A_ROW) or is_aggregate(each) for each in below):
        return None
    tables = {owners.of(each) for each in below if isinstance(each, exp.Column)}
    owner = next(iter(tables), None)
    if len(tables) != 1 or owner is None:
        return None
    alone = node.transform(
        lambda each: exp.column(each.this.copy()) if isinstance(each, exp.Column) else each
    )
    return owner, f"({alone.sql(dialect='sqlite')})"

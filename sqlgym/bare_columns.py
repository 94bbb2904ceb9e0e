"""Columns that are neither grouped by nor aggregated, and differ within a group.

`SELECT id FROM channel GROUP BY country` gives the id of some channel of each country, and SQLite
takes the one it read last. Where the rows of a group agree in the column (it depends on the key)
nothing is open, and that is what most such queries mean. So the groups are asked themselves: the
query is run with nothing selected, and kept are the groups that it keeps and in which the column
has two values. One is enough to make the gold a matter of luck.

With a single `min` or `max` among what is selected, SQLite takes the other columns from the row
that has it, by promise; such a query is let pass. So is one that cannot be asked, as a subquery
that refers to the query around it.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database import Database
from sqlgym.parsing import careful, parse
from toolgym.errors import ToolError


def open_group(database: Database, sql: str) -> str | None:
    """Why a query takes some value of several that a group has; None where it does not.

    Args:
        database: Where it runs.
        sql: The query.
    """
    lower = sql.lower()
    if "group" not in lower and "(" not in lower:  # no aggregate either
        return None
    try:
        return careful(lambda: _open_group(database, parse(sql)))
    except SqlglotError:
        return None


def _open_group(database: Database, tree: exp.Expr) -> str | None:
    for select in tree.find_all(exp.Select):
        bare = _bare_columns(select)
        if bare and _has_open_group(database, _probe(tree, select, bare)):
            names = ", ".join(sorted({column.name for column in bare}))
            return f"it takes {names} from any row of a group, and the rows differ there."
    return None


def _bare_columns(select: exp.Select) -> list[exp.Column]:
    """Columns of a select that has groups, outside of its keys and aggregates."""
    group = select.args.get("group")
    shown = [*select.expressions, *(select.args.get(part) for part in ("having", "order"))]
    aggregates = [
        each for part in shown if part is not None for each in _own(part, exp.AggFunc, select)
    ]
    if group is None and not aggregates:
        return []
    if any(_own(part, exp.Window, select) for part in shown if part is not None):
        return []
    selected = [a for part in select.expressions for a in _own(part, exp.AggFunc, select)]
    if len(selected) == 1 and isinstance(selected[0], exp.Min | exp.Max):
        return []
    keys = {_spelt(key) for key in _keys(select)}
    aliases = {part.alias.lower() for part in select.expressions if isinstance(part, exp.Alias)}
    known = keys | {key.rpartition(".")[2] for key in keys} | aliases
    return [
        column
        for part in shown
        if part is not None
        for column in _own(part, exp.Column, select)
        if column.find_ancestor(exp.AggFunc, exp.Select) in (None, select)
        and column.name.lower() not in known
        and not _is_within(column, keys, select)
    ]


def _keys(select: exp.Select) -> list[exp.Expression]:
    """What is grouped by: a place or an alias stands for what is selected there."""
    group = select.args.get("group")
    named = {part.alias.lower(): part for part in select.expressions if part.alias}
    keys = list[exp.Expression]()
    for key in group.expressions if group is not None else ():
        meant = named.get(key.name.lower(), key) if isinstance(key, exp.Column) else key
        if isinstance(key, exp.Literal) and key.name.isdigit():
            place = int(key.name) - 1
            meant = select.expressions[place] if place < len(select.expressions) else key
        keys.append(meant.unalias())
    return keys


def _is_within(column: exp.Column, keys: set[str], select: exp.Select) -> bool:
    """Whether a column is read in an expression that is grouped by, as a part of it or whole."""
    node: Any = column
    longest = max(map(len, keys), default=0)
    while node is not None and node is not select:
        spelt = _spelt(node)
        if spelt in keys:
            return True
        if len(spelt) > longest:  # what is around it is longer still
            return False
        node = node.parent
    return False


def _own(part: Any, kind: Any, select: exp.Select) -> list[Any]:
    """What of a kind stands in a part of a select, and in no subquery of that part."""
    return [found for found in part.find_all(kind) if found.parent_select is select]


def _spelt(expression: exp.Expression) -> str:
    return expression.sql(dialect="sqlite").replace('"', "").lower()


def _probe(tree: Any, select: exp.Select, bare: list[exp.Column]) -> str:
    """A query for the groups in which one of the columns has two values, or a value and NULL."""
    differs = " OR ".join(
        f"max({name}) IS NOT min({name}) OR count({name}) NOT IN (0, count(*))"
        for name in dict.fromkeys(column.sql(dialect="sqlite") for column in bare)
    )
    having = select.args.get("having")
    kept = f" AND ({having.this.sql(dialect='sqlite')})" if having is not None else ""
    probe = select.copy()
    probe.set("expressions", [exp.Literal.number(1)])
    for part in ("order", "limit", "offset", "distinct", "having", "with_"):
        probe.set(part, None)
    keys = [key.copy() for key in _keys(select)] or [exp.null()]
    probe.set("group", exp.Group(expressions=keys))
    ctes = tree.args.get("with_") or tree.args.get("with")
    opening = f"{ctes.sql(dialect='sqlite')} " if ctes is not None else ""
    return f"{opening}{probe.sql(dialect='sqlite')} HAVING ({differs}){kept} LIMIT 1"


def _has_open_group(database: Database, probe: str) -> bool:
    try:
        return bool(database.query(probe).rows)
    except ToolError:  # it refers to the query around it, or takes too long
        return False

"""Columns that are neither grouped by nor aggregated, and differ among the rows they may come from.

`SELECT id FROM channel GROUP BY country` gives the id of some channel of each country, and SQLite
takes the one it read last. With exactly one `min` or `max` in the query, it takes such columns from
a row that has it, by promise; where several rows have it, from any of these. Where all rows agree
in the column nothing is open, and that is what most such queries mean. So the rows are asked
themselves: of the groups that the query keeps, is there one in which the column has two values?

One is enough to make what the query selects a matter of luck (`is_certain`). A difference further
inside, in a HAVING or in a subquery, need not show in the result, and of some queries nothing can
be told in this way, as of a subquery that refers to the query around it. These are for
`sqlgym.judging.row_orders` to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database
from sqlgym.database.parsing import careful, parse
from sqlgym.judging.grouping import Grouping, grouping_of
from toolgym.errors import ToolError

_MOST_UNTOLD: Final = 8
"""After so many SELECTs of which nothing can be told, no more are asked: the query is tried."""


class OpenGroup(NamedTuple):
    """What was found.

    Attributes:
        reason: The choice that a query leaves; None where none was found.
        is_certain: It shows in the result of the query.
        is_possible: There is such a choice, or nothing could be told.
    """

    reason: str | None = None
    is_certain: bool = False
    is_possible: bool = False


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
        return careful(lambda: open_group_of(database, parse(sql))).reason
    except SqlglotError:
        return None


def open_group_of(database: Database, tree: exp.Expr) -> OpenGroup:
    """As `open_group`, of a query that is parsed, with all that was found out.

    Raises:
        RecursionError: The tree is too deep; see `sqlgym.database.parsing.careful`.
    """
    untold = 0
    for select in tree.find_all(exp.Select):  # the outermost first
        group = grouping_of(select, database.schema)
        if group is None:
            continue
        differs = _differ(database, tree, group, group.bare)
        if differs:
            shown = _shown(tree, group)
            is_certain = bool(shown and _differ(database, tree, group, shown))
            return OpenGroup(_reason(group), is_certain, True)
        untold += group.has_more or differs is None
        if untold == _MOST_UNTOLD:
            break
    return OpenGroup(is_possible=untold > 0)


def _reason(group: Grouping) -> str:
    names = ", ".join(sorted({column.name for column in group.bare}))
    if group.extremum is None:
        return f"it takes {names} from any row of a group, and the rows differ there."
    extremum = group.extremum.sql(dialect="sqlite")
    return f"it takes {names} from any row with the {extremum} of a group, and these differ."


def _shown(tree: exp.Expr, group: Grouping) -> list[exp.Column]:
    """The columns whose value stands in the result of the whole query, whatever it is."""
    select = group.select
    if select is not tree or any(select.args.get(part) for part in ("distinct", "limit", "offset")):
        return []
    if select.args.get("having") is not None and not group.kept:
        return []
    return [column for column in group.bare if _is_bare(column)]


def _is_bare(column: exp.Column) -> bool:
    """Whether a column is selected as it is, in no expression and for no ORDER BY."""
    shown: Any = column.parent if isinstance(column.parent, exp.Alias) else column
    return isinstance(shown.parent, exp.Select) and shown.arg_key == "expressions"


def _differ(
    database: Database, tree: exp.Expr, group: Grouping, bare: Sequence[exp.Column]
) -> bool | None:
    """Whether rows that columns may come from differ there; None where that cannot be told."""
    if not bare:
        return False
    extremum = group.extremum
    probe = _of_any_row(group, bare) if extremum is None else _of_some_rows(group, extremum, bare)
    ctes = tree.args.get("with_") or tree.args.get("with")
    opening = f"{ctes.sql(dialect='sqlite')} " if ctes is not None else ""
    try:
        return bool(database.query(f"{opening}{probe} LIMIT 1").rows)
    except ToolError:  # it refers to the query around it, or takes too long
        return None


def _of_any_row(group: Grouping, bare: Sequence[exp.Column]) -> str:
    """A query for the groups in which one of the columns has two values, or a value and NULL."""
    kept = f" AND ({group.kept})" if group.kept else ""
    names = dict.fromkeys(column.sql(dialect="sqlite") for column in bare)
    keys = ", ".join(group.keys) or "NULL"
    return f"{group.rows(['1'])} GROUP BY {keys} HAVING ({_two_values(names)}){kept}"


def _of_some_rows(group: Grouping, extremum: Any, bare: Sequence[exp.Column]) -> str:
    """The same of those rows only that have the extremum of their group."""
    argument = extremum.this.sql(dialect="sqlite")
    names = list(dict.fromkeys(column.sql(dialect="sqlite") for column in bare))
    keys = [f"({key}) AS k{place}" for place, key in enumerate(group.keys)]
    parts = f"PARTITION BY {', '.join(group.keys)}" if keys else ""
    shown = [
        f"({argument}) AS own",
        f"{extremum.key}({argument}) OVER ({parts}) AS best",
        *keys,
        *(f"({name}) AS b{place}" for place, name in enumerate(names)),
    ]
    kept = ""
    if group.kept:
        same = " AND ".join(f"kept.k{place} IS r.k{place}" for place in range(len(keys))) or "1"
        of_group = f"GROUP BY {', '.join(group.keys) or 'NULL'} HAVING {group.kept}"
        kept = f" JOIN ({group.rows(keys or ['1'])} {of_group}) AS kept ON {same}"
    grouped = ", ".join(f"r.k{place}" for place in range(len(keys))) or "NULL"
    differs = _two_values([f"r.b{place}" for place in range(len(names))])
    return (
        f"SELECT 1 FROM ({group.rows(shown)}) AS r{kept} WHERE r.own IS r.best"
        f" GROUP BY {grouped} HAVING {differs}"
    )


def _two_values(names: Sequence[str] | dict[str, None]) -> str:
    """Whether one of some columns has two values in a group; a collation hides none of them."""
    return " OR ".join(
        f"max({name} COLLATE BINARY) IS NOT min({name} COLLATE BINARY)"
        f" OR count({name}) NOT IN (0, count(*))"
        for name in names
    )

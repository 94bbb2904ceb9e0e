"""Columns that are neither grouped by nor aggregated, and differ among the rows they may come from.

`SELECT id FROM channel GROUP BY country` gives the id of some channel of each country, and SQLite
takes the one it read last. With exactly one `min` or `max` in the query, it takes such columns from
a row that has it, by promise ("Bare columns in an aggregate query" in its documentation of SELECT);
where several rows have it, from any of these. Where all rows agree in the column nothing is open,
and that is what most such queries mean. So the rows are asked themselves: of the groups that the
query keeps, is there one in which the column has two values?

One is enough to make what the query selects a matter of luck (`is_certain`). A difference further
inside, in a HAVING or in a subquery, need not show in the result, and of some queries nothing can
be told in this way, as of a subquery that refers to the query around it. These are for
`sqlgym.judging.several_results` to try in other orders of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database
from sqlgym.database.parsing import careful, parse
from sqlgym.database.schema import Schema
from toolgym.errors import ToolError

_NAMELESS: Final = frozenset({"total", "percentile", "percentile_cont", "percentile_disc"})
"""Aggregates that the parser has no class for."""
_AGGREGATES: Final = (exp.AggFunc, exp.JSONArrayAgg, exp.JSONObjectAgg)


@dataclass(frozen=True)
class Grouping:
    """A SELECT that makes groups.

    Attributes:
        keys: What it groups by, as SQL; empty where all rows are one group.
        has_more: It takes values of some row in other ways, too: by a star, or in a subquery.
        extremum: Its only `min` or `max`, whose rows the bare columns are of; None where any row
            will do.
        kept: Its HAVING as SQL without aliases; empty where it keeps all groups, or where which it
            keeps depends on bare columns.
    """

    select: exp.Select
    keys: tuple[str, ...]
    bare: tuple[exp.Column, ...]
    has_more: bool
    extremum: exp.Expr | None
    kept: str

    def rows(self, columns: Sequence[str]) -> str:
        """A query for some columns of the rows that are grouped."""
        rows = self.select.copy()
        rows.set("expressions", [exp.Var(this=column) for column in columns])
        left_out = ("group", "order", "limit", "offset", "distinct", "having", "with_", "windows")
        for part in left_out:
            rows.set(part, None)
        return rows.sql(dialect="sqlite")


@dataclass
class _Parts:
    """What stands in a SELECT and in no subquery of it; columns with the clause they stand in."""

    columns: list[tuple[exp.Column, str]] = field(default_factory=list)
    aggregates: list[exp.Expr] = field(default_factory=list)
    has_star: bool = False
    has_subquery: bool = False


def grouping_of(select: exp.Select, schema: Schema) -> Grouping | None:
    """The grouping of a SELECT; None if it makes no groups or takes nothing but keys of them."""
    parts = _Parts()
    for part in select.expressions:
        _read(part, "select", parts)
    for clause in ("having", "order"):
        if select.args.get(clause) is not None:
            _read(select.args[clause], clause, parts)
    if select.args.get("group") is None and not parts.aggregates:
        return None
    aliases = _Aliases.of(select, schema)
    keys = [key.sql(dialect="sqlite") for key in _group_keys(select, aliases)]
    spelt = {_spelt(key) for key in keys}
    if not select.args.get("joins"):  # one table: whose column it is goes without saying
        spelt |= {key.rpartition(".")[2] for key in spelt}
    extremum = _extremum(parts.aggregates)
    if extremum is not None:  # which is the same in all rows that have it
        spelt.add(_spelt(extremum.this.sql(dialect="sqlite")))
    bare = [
        (column, clause)
        for column, clause in parts.columns
        if not aliases.hold(column, clause) and not _is_within(column, spelt, select)
    ]
    has_more = parts.has_star or parts.has_subquery
    if not bare and not has_more:
        return None
    having = (
        "" if "having" in (clause for _, clause in bare) else _having_sql(select, aliases.meant)
    )
    columns = tuple(column for column, _ in bare)
    return Grouping(select, tuple(keys), columns, has_more, extremum, having)


def _read(part: exp.Expr, clause: str, parts: _Parts) -> None:
    """Take note of what a part of a clause holds, from left to right."""
    nodes: list[Any] = [part]
    while nodes:
        node = nodes.pop()
        if isinstance(node, exp.Query):
            parts.has_subquery = True
        elif isinstance(node, exp.Star):
            parts.has_star = True
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            parts.columns.append((node, clause))
        elif is_aggregate(node):
            parts.aggregates.append(node)
        else:
            nodes += reversed(list(node.iter_expressions()))


def is_aggregate(node: Any) -> bool:
    """Whether a node takes one value of many rows, and is no window function."""
    if isinstance(node, exp.Anonymous):
        aggregates = node.name.lower() in _NAMELESS
    else:
        aggregates = isinstance(node, (*_AGGREGATES, exp.Filter))
    around = node.parent
    if isinstance(around, exp.Filter):
        around = around.parent
    return aggregates and not (isinstance(around, exp.Window) and node.arg_key == "this")


def _extremum(aggregates: Sequence[exp.Expr]) -> exp.Expr | None:
    """The only `min` or `max` of a query, written once or several times in the same way."""
    extrema = {
        _spelt(node.sql(dialect="sqlite")): node
        for node in aggregates
        if node.find(exp.Min, exp.Max) is not None
    }
    only = next(iter(extrema.values())) if len(extrema) == 1 else None
    if not isinstance(only, exp.Min | exp.Max) or isinstance(only.this, exp.Distinct):
        return None
    return only


@dataclass(frozen=True)
class _Aliases:
    """The names that a SELECT gives to what it selects.

    Attributes:
        names: All of them. As a term of ORDER BY each means what is selected.
        meant: What those stand for elsewhere that no column of its tables hides.
    """

    names: frozenset[str]
    meant: dict[str, exp.Expr]

    @classmethod
    def of(cls, select: exp.Select, schema: Schema) -> _Aliases:
        columns = {
            column.name.lower()
            for table in sources_of(select)
            if (described := schema.get(table.name)) is not None
            for column in described.columns
        }
        aliases = {
            part.alias.lower(): part.this
            for part in select.expressions
            if isinstance(part, exp.Alias)
        }
        meant = {name: part for name, part in aliases.items() if name not in columns}
        return cls(frozenset(aliases), meant)

    def hold(self, column: exp.Column, clause: str) -> bool:
        """Whether a name means something that is selected."""
        if column.table or clause == "select":
            return False
        name = column.name.lower()
        return name in self.meant or (isinstance(column.parent, exp.Ordered) and name in self.names)


def sources_of(select: exp.Select) -> list[exp.Table]:
    """The tables that a SELECT itself reads, by whatever name, those of its subqueries left out."""
    start = select.args.get("from_") or select.args.get("from")
    places = [start, *(select.args.get("joins") or ())]
    return [p.this for p in places if p is not None and isinstance(p.this, exp.Table)]


def _group_keys(select: exp.Select, aliases: _Aliases) -> Iterator[exp.Expr]:
    """What is grouped by: a place or an alias stands for what is selected there."""
    group = select.args.get("group")
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Literal) and key.name.isdigit():
            place = int(key.name) - 1
            yield select.expressions[place].unalias() if place < len(select.expressions) else key
        elif isinstance(key, exp.Column) and not key.table:
            yield aliases.meant.get(key.name.lower(), key)
        else:
            yield key


def _having_sql(select: exp.Select, aliases: dict[str, exp.Expr]) -> str:
    """The HAVING with what its aliases stand for."""
    having = select.args.get("having")
    if having is None:
        return ""
    meant = having.this.transform(
        lambda node: (
            exp.Paren(this=aliases[node.name.lower()].copy())
            if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases
            else node
        )
    )
    return str(meant.sql(dialect="sqlite"))


def _is_within(column: exp.Column, keys: set[str], select: exp.Select) -> bool:
    """Whether a column is read in an expression that is grouped by, as a part of it or whole."""
    node: Any = column
    longest = max(map(len, keys), default=0)
    while node is not None and node is not select:
        spelt = _spelt(node.sql(dialect="sqlite"))
        if spelt in keys:
            return True
        if len(spelt) > longest:  # what is around it is longer still
            return False
        node = node.parent
    return False


def _spelt(sql: str) -> str:
    return sql.replace('"', "").lower()


_MOST_UNTOLD: Final = 8
"""After so many SELECTs of which nothing can be told, no more are asked: the query is tried."""


class OpenGroup(NamedTuple):
    """The verdict on the groups of a query.

    Attributes:
        reason: The choice that a query leaves; None where none was found.
        is_certain: It shows in the result of the query.
        is_possible: There is such a choice, or nothing could be told.
    """

    reason: str | None = None
    is_certain: bool = False
    is_possible: bool = False


def open_group(database: Database, sql: str) -> str | None:
    """Why a query takes some value of several that a group has; None where it does not."""
    lower = sql.lower()
    if "group" not in lower and "(" not in lower:  # no aggregate either
        return None
    try:
        return careful(lambda: open_group_of(database, parse(sql))).reason
    except SqlglotError:
        return None


def open_group_of(database: Database, tree: exp.Expr) -> OpenGroup:
    """The verdict on a parsed query; `open_group` gives its reason only.

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
            shown = _visible(tree, group)
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


def _visible(tree: exp.Expr, group: Grouping) -> list[exp.Column]:
    """The columns whose value stands in the result of the whole query, whatever it is."""
    select = group.select
    if select is not tree or any(select.args.get(part) for part in ("distinct", "limit", "offset")):
        return []
    if select.args.get("having") is not None and not group.kept:
        return []
    return [column for column in group.bare if _is_bare(column)]


def _is_bare(column: exp.Column) -> bool:
    """Whether a column is selected as it is, in no expression and for no ORDER BY."""
    node: Any = column.parent if isinstance(column.parent, exp.Alias) else column
    return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


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
    having = f" AND ({group.kept})" if group.kept else ""
    names = dict.fromkeys(column.sql(dialect="sqlite") for column in bare)
    keys = ", ".join(group.keys) or "NULL"
    return f"{group.rows(['1'])} GROUP BY {keys} HAVING ({_two_values(names)}){having}"


def _of_some_rows(group: Grouping, extremum: Any, bare: Sequence[exp.Column]) -> str:
    """The same of those rows only that have the extremum of their group."""
    argument = extremum.this.sql(dialect="sqlite")
    names = list(dict.fromkeys(column.sql(dialect="sqlite") for column in bare))
    keys = [f"({key}) AS k{place}" for place, key in enumerate(group.keys)]
    parts = f"PARTITION BY {', '.join(group.keys)}" if keys else ""
    columns = [
        f"({argument}) AS own",
        f"{extremum.key}({argument}) OVER ({parts}) AS best",
        *keys,
        *(f"({name}) AS b{place}" for place, name in enumerate(names)),
    ]
    join = ""
    if group.kept:
        same = " AND ".join(f"kept.k{place} IS r.k{place}" for place in range(len(keys))) or "1"
        of_group = f"GROUP BY {', '.join(group.keys) or 'NULL'} HAVING {group.kept}"
        join = f" JOIN ({group.rows(keys or ['1'])} {of_group}) AS kept ON {same}"
    grouped = ", ".join(f"r.k{place}" for place in range(len(keys))) or "NULL"
    differs = _two_values([f"r.b{place}" for place in range(len(names))])
    return (
        f"SELECT 1 FROM ({group.rows(columns)}) AS r{join} WHERE r.own IS r.best"
        f" GROUP BY {grouped} HAVING {differs}"
    )


def _two_values(names: Sequence[str] | dict[str, None]) -> str:
    """Whether one of some columns has two values in a group; a collation hides none of them."""
    return " OR ".join(
        f"max({name} COLLATE BINARY) IS NOT min({name} COLLATE BINARY)"
        f" OR count({name}) NOT IN (0, count(*))"
        for name in names
    )

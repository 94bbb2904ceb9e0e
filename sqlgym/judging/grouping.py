"""What a SELECT that makes groups takes of them: its keys, its aggregates, and its bare columns.

A column is bare if it is neither grouped by nor stands in an aggregate, wherever it is written: in
an expression, in a HAVING or ORDER BY, in the OVER of a window. SQLite allows that, and takes its
value from some row of the group, or, where the query has exactly one `min` or `max`, from a row
that has it ("Bare columns in an aggregate query" in its documentation of SELECT).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from sqlgym.database.schema import Schema

_NAMELESS: Final = frozenset({"total", "percentile", "percentile_cont", "percentile_disc"})
"""Aggregates that the parser has no class for."""
_AGGREGATES: Final = (exp.AggFunc, exp.JSONArrayAgg, exp.JSONObjectAgg)


@dataclass(frozen=True)
class Grouping:
    """A SELECT that makes groups.

    Attributes:
        select: It.
        keys: What it groups by, as SQL; empty where all rows are one group.
        bare: Its bare columns.
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
    keys = [key.sql(dialect="sqlite") for key in _keys(select, aliases)]
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
    kept = "" if "having" in (clause for _, clause in bare) else _kept(select, aliases.meant)
    columns = tuple(column for column, _ in bare)
    return Grouping(select, tuple(keys), columns, has_more, extremum, kept)


def _read(part: exp.Expr, clause: str, found: _Parts) -> None:
    """Take note of what a part of a clause holds, from left to right."""
    nodes: list[Any] = [part]
    while nodes:
        node = nodes.pop()
        if isinstance(node, exp.Query):
            found.has_subquery = True
        elif isinstance(node, exp.Star):
            found.has_star = True
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            found.columns.append((node, clause))
        elif is_aggregate(node):
            found.aggregates.append(node)
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
            if (known := schema.get(table.name)) is not None
            for column in known.columns
        }
        named = {
            part.alias.lower(): part.this
            for part in select.expressions
            if isinstance(part, exp.Alias)
        }
        meant = {name: part for name, part in named.items() if name not in columns}
        return cls(frozenset(named), meant)

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


def _keys(select: exp.Select, aliases: _Aliases) -> Iterator[exp.Expr]:
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


def _kept(select: exp.Select, aliases: dict[str, exp.Expr]) -> str:
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

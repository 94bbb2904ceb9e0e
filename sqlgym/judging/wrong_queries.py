"""Queries that a gold is easily mistaken for: one thing of it changed.

A condition dropped, an operator or a literal changed, a column taken for its neighbour, another
aggregate, another join, DISTINCT, ORDER BY, LIMIT or a key of a group dropped. They are what
instances of a database are chosen by (`sqlgym.judging.suite`): a good one gives them another
result than the gold. `literals_of` tells the values that golds compare columns with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse
from sqlgym.judging.source_rows import Source

MOST: Final = 400
"""Wrong queries of one gold."""
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_TOLD_APART: Final = (*_COMPARED, exp.Like, exp.Between, exp.In, exp.Is, exp.Glob)
_AGGREGATES: Final = (exp.Sum, exp.Avg, exp.Min, exp.Max)
_OTHERS: Final[dict[type[exp.Expr], tuple[type[exp.Expr], ...]]] = {
    exp.EQ: (exp.NEQ, exp.GTE, exp.LTE),
    exp.NEQ: (exp.EQ, exp.GT),
    exp.GT: (exp.GTE, exp.LT),
    exp.GTE: (exp.GT, exp.LTE, exp.EQ),
    exp.LT: (exp.LTE, exp.GT),
    exp.LTE: (exp.LT, exp.GTE, exp.EQ),
}
Change = Callable[[exp.Expr], "exp.Expr | None"]


class Literal(NamedTuple):
    """A value that a gold compares a column with; no column where it counts rows."""

    table: str
    column: str
    value: int | float | str


class ColumnPair(NamedTuple):
    """Two columns that a gold compares with each other."""

    table: str
    column: str
    other_table: str
    other_column: str


def pairs_of(sql: str, source: Source) -> list[ColumnPair]:
    """The columns that a query compares with each other, each pair both ways."""
    try:
        return careful(lambda: list(_pairs(parse(sql), source)))
    except SqlglotError:
        return []


def wrong_queries(sql: str, source: Source) -> list[str]:
    """Queries that differ from a gold in one thing; none where it cannot be read."""
    try:
        return careful(lambda: _changed(parse(sql), source))
    except SqlglotError:
        return []


def literals_of(sql: str, source: Source) -> list[Literal]:
    """The values that a query compares columns with, and those that it counts rows against."""
    try:
        return careful(lambda: list(_literals(parse(sql), source)))
    except SqlglotError:
        return []


def _changed(tree: exp.Expr, source: Source) -> list[str]:
    own = tree.sql(dialect="sqlite")
    found: dict[str, None] = {}
    for place, node in enumerate(list(tree.walk(bfs=False))):
        for change in _changes(node, tree, source):
            copy = tree.copy()
            target = next(each for at, each in enumerate(copy.walk(bfs=False)) if at == place)
            new = change(target)
            if new is not None and new is not target:
                target.replace(new)
            text = copy.sql(dialect="sqlite")
            if text != own:
                found.setdefault(text)
            if len(found) >= MOST:
                return list(found)
    return list(found)


def _changes(node: exp.Expr, tree: exp.Expr, source: Source) -> Iterator[Change]:
    """What can be changed at one node; each change edits it in place, or gives another."""
    for other in _OTHERS.get(type(node), ()):
        yield lambda n, kind=other: kind(this=n.this, expression=n.expression)  # type: ignore[misc]
    if isinstance(node, exp.And | exp.Or):
        yield lambda n: n.this
        yield lambda n: n.expression
        other = exp.Or if isinstance(node, exp.And) else exp.And
        yield lambda n: other(this=n.this, expression=n.expression)
    if isinstance(node, exp.Not):
        yield lambda n: n.this
    if isinstance(node, exp.Is | exp.Like | exp.In):
        yield lambda n: exp.Not(this=n.copy())
    if isinstance(node, exp.Literal):
        yield from _other_literals(node)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        yield from _other_columns(node, tree, source)
    if isinstance(node, exp.AggFunc):
        yield from _other_aggregates(node)
    if isinstance(node, exp.Select | exp.SetOperation):
        yield from _other_clauses(node)
    if isinstance(node, exp.Join):
        yield lambda n: _joined(n, "" if n.args.get("side") else "LEFT")
    if isinstance(node, exp.Ordered):
        yield _turned


def _other_literals(node: exp.Literal) -> Iterator[Change]:
    text = node.name
    if not node.is_string:
        for step in (1, -1):
            number = _number(text)
            if number is not None and number + step >= 0:
                new = number + step
                yield lambda n, new=new: exp.Literal.number(new)  # type: ignore[misc]
        return
    others = (text.replace("%", ""), f"{text}%", text[:-1], text.lower())
    for new_text in dict.fromkeys(each for each in others if each != text):
        yield lambda n, new=new_text: exp.Literal.string(new)  # type: ignore[misc]


def _number(text: str) -> int | float | None:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return None


def _other_columns(node: exp.Column, tree: exp.Expr, source: Source) -> Iterator[Change]:
    """The next columns of its table that hold values of the same kind."""
    for table_name in _tables(node, tree):
        table = source.table(table_name)
        place = None if table is None else table.place(node.name)
        if table is None or place is None:
            continue
        own = table.columns[place]
        alike = [c for c in table.columns if c.kind == own.kind and c is not own]
        for column in [*alike[:1], *alike[-1:]]:
            yield lambda n, to=column.name: _renamed(n, to)  # type: ignore[misc]
        return


def _renamed(node: exp.Expr, name: str) -> None:
    node.set("this", exp.to_identifier(name, quoted=True))


def _tables(column: exp.Column, tree: exp.Expr) -> list[str]:
    """The names of the tables that a column may be of."""
    tables = [table for table in tree.find_all(exp.Table) if table.name]
    if column.table:
        own = column.table.lower()
        return [table.name for table in tables if table.alias_or_name.lower() == own]
    return [table.name for table in tables]


def _other_aggregates(node: exp.AggFunc) -> Iterator[Change]:
    if isinstance(node, _AGGREGATES):
        for other in _AGGREGATES:
            if not isinstance(node, other):
                yield lambda n, kind=other: kind(this=n.this)  # type: ignore[misc]
        if not isinstance(node, exp.Min | exp.Max):
            yield lambda n: n.set("this", exp.Distinct(expressions=[n.this]))
    if isinstance(node, exp.Count):
        if isinstance(node.this, exp.Distinct):
            yield lambda n: n.set("this", n.this.expressions[0])
        elif not isinstance(node.this, exp.Star):
            yield lambda n: n.set("this", exp.Distinct(expressions=[n.this]))
            yield lambda n: n.set("this", exp.Star())
            yield lambda n: exp.Sum(this=n.this)


def _other_clauses(node: exp.Expr) -> Iterator[Change]:
    for part in ("where", "having", "order", "limit", "distinct", "offset"):
        if node.args.get(part) is not None and not isinstance(node, exp.SetOperation):
            yield lambda n, part=part: n.set(part, None)  # type: ignore[misc]
    if isinstance(node, exp.SetOperation):
        if isinstance(node, exp.Union):
            yield lambda n: n.set("distinct", not n.args.get("distinct"))
        for other in (exp.Union, exp.Intersect, exp.Except):
            if not isinstance(node, other):
                yield lambda n, kind=other: kind(**{**n.args, "distinct": True})  # type: ignore[misc]
        yield lambda n: n.this
        yield lambda n: n.expression
        return
    if node.args.get("distinct") is None:
        yield lambda n: n.set("distinct", exp.Distinct())
    group = node.args.get("group")
    if group is not None:
        for place in range(len(group.expressions)):
            yield lambda n, place=place: _without_key(n, place)  # type: ignore[misc]
    for place in range(len(node.args.get("joins") or ())):
        yield lambda n, place=place: _without_join(n, place)  # type: ignore[misc]


def _without_key(select: exp.Expr, place: int) -> None:
    keys = select.args["group"].expressions
    rest = [key for at, key in enumerate(keys) if at != place]
    select.set("group", exp.Group(expressions=rest) if rest else None)


def _without_join(select: exp.Expr, place: int) -> None:
    select.set("joins", [join for at, join in enumerate(select.args["joins"]) if at != place])


def _joined(join: exp.Expr, side: str) -> None:
    join.set("side", side or None)
    join.set("kind", None)


def _turned(ordered: exp.Expr) -> None:
    ordered.set("desc", not ordered.args.get("desc"))
    ordered.set("nulls_first", None)


def _pairs(tree: exp.Expr, source: Source) -> Iterator[ColumnPair]:
    for node in tree.find_all(*_COMPARED):
        if not isinstance(node.this, exp.Column) or not isinstance(node.expression, exp.Column):
            continue
        own, other = (_home(each, tree, source) for each in (node.this, node.expression))
        if own is not None and other is not None and own != other:
            yield ColumnPair(*own, *other)
            yield ColumnPair(*other, *own)


def _home(column: exp.Column, tree: exp.Expr, source: Source) -> tuple[str, str] | None:
    for name in _tables(column, tree):
        table = source.table(name)
        if table is not None and table.place(column.name) is not None:
            return table.name.lower(), column.name.lower()
    return None


def _literals(tree: exp.Expr, source: Source) -> Iterator[Literal]:
    for node in tree.find_all(*_TOLD_APART):
        values = [_value(each) for each in node.find_all(exp.Literal) if not _is_inside(each, node)]
        known = [value for value in values if value is not None]
        columns = [each for each in node.find_all(exp.Column) if not _is_inside(each, node)]
        for value in known:
            if node.find(exp.Count) is not None:
                yield Literal("", "", value)
            for column in columns:
                for name in _tables(column, tree):
                    table = source.table(name)
                    if table is not None and table.place(column.name) is not None:
                        yield Literal(table.name, column.name, value)
                        break


def _is_inside(node: exp.Expr, outer: exp.Expr) -> bool:
    """Whether it stands in a subquery of the comparison."""
    above: Any = node.parent
    while above is not None and above is not outer:
        if isinstance(above, exp.Query):
            return True
        above = above.parent
    return False


def _value(literal: exp.Literal) -> int | float | str | None:
    if literal.is_string:
        return literal.name or None
    number = _number(literal.name)
    return -number if number is not None and isinstance(literal.parent, exp.Neg) else number

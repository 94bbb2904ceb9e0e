"""Extracts the values and columns that golds compare, to plant them into instances of a database.

Such values tell a gold from similar wrong queries: only a hut with 50 beds tells `beds > 50` from
`beds >= 50`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.parsing import careful, parse
from sqlgym.judging.source_rows import Source

_COMPARED: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_TOLD_APART: Final = (*_COMPARED, exp.Like, exp.Between, exp.In, exp.Is, exp.Glob)


class GoldValue(NamedTuple):
    """A value that a gold compares a column with; table and column are "" for a count of rows."""

    table: str
    column: str
    value: int | float | str


class ColumnPair(NamedTuple):
    """Two columns that a gold compares with each other."""

    table: str
    column: str
    other_table: str
    other_column: str


class GoldValues(NamedTuple):
    """All values and pairs of columns that some golds compare."""

    values: tuple[GoldValue, ...] = ()
    pairs: tuple[ColumnPair, ...] = ()


def gold_values(golds: Iterable[str], source: Source) -> GoldValues:
    """Extract the values that golds compare columns with, and the pairs of columns they compare.

    A gold that cannot be parsed contributes none.
    """
    values: list[GoldValue] = []
    pairs: list[ColumnPair] = []
    for sql in golds:
        try:
            tree = parse(sql)
            values += careful(lambda tree=tree: list(_values(tree, source)))  # type: ignore[misc]
            pairs += careful(lambda tree=tree: list(_pairs(tree, source)))  # type: ignore[misc]
        except SqlglotError:
            continue
    return GoldValues(tuple(values), tuple(dict.fromkeys(pairs)))


def _number(text: str) -> int | float | None:
    try:
        number = int(text) if text.isdecimal() else float(text)
    except ValueError:
        return None
    return number if abs(number) < 2**63 else None


def _tables(column: exp.Column, tree: exp.Expr) -> list[str]:
    """The names of the tables that a column may belong to."""
    tables = [table for table in tree.find_all(exp.Table) if table.name]
    if column.table:
        own = column.table.lower()
        return [table.name for table in tables if table.alias_or_name.lower() == own]
    return [table.name for table in tables]


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


def _values(tree: exp.Expr, source: Source) -> Iterator[GoldValue]:
    for node in tree.find_all(*_TOLD_APART):
        values = [_value(each) for each in node.find_all(exp.Literal) if not _is_inside(each, node)]
        known = [value for value in values if value is not None]
        columns = [each for each in node.find_all(exp.Column) if not _is_inside(each, node)]
        for value in known:
            if node.find(exp.Count) is not None:
                yield GoldValue("", "", value)
            for column in columns:
                for name in _tables(column, tree):
                    table = source.table(name)
                    if table is not None and table.place(column.name) is not None:
                        yield GoldValue(table.name, column.name, value)
                        break


def _is_inside(node: exp.Expr, outer: exp.Expr) -> bool:
    """Whether a node is inside a subquery of the comparison `outer`."""
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

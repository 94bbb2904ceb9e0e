"""Seeded faults in gold SQL, for asking whether the judge of questions sees them.

A fault changes one thing of a query that its question states: a condition is dropped, a column is
another one of the same table and type, a value another that occurs, and so on. What would be the
same query on any database is no fault and is not made: DISTINCT over a column that a key makes
unique, and the guard `x IS NOT NULL` under NOT IN, which no question states.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from sqlgym.database import Database
from sqlgym.database.sqlite_file import quoted

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_FUNCTIONS = {"avg": exp.Avg, "min": exp.Min, "max": exp.Max, "sum": exp.Sum}


@dataclass(frozen=True)
class Fault:
    """A query with one thing changed, and what that is."""

    kind: str
    sql: str


def faults_of(sql: str, database: Database, draw: random.Random) -> list[Fault]:
    """One fault of each kind that fits a query, drawn at random among those of its kind.

    Args:
        sql: The gold.
        database: Its schema gives other columns, its rows other values.
        draw: Decides.
    """
    found = []
    for kind, make in KINDS.items():
        variants = sorted({changed for changed in make(sql, database, draw) if changed != sql})
        if variants:
            found.append(Fault(kind, draw.choice(variants)))
    return found


def _tree(sql: str) -> exp.Expression:
    return sqlglot.parse_one(sql, read="sqlite")


def _changed(sql: str, change: Callable[[exp.Expression, int], bool]) -> Iterator[str]:
    """The query with each of its nodes changed in turn, where `change` changes it."""
    count = sum(1 for _ in _tree(sql).walk())
    for place in range(count):
        tree = _tree(sql)
        node = list(tree.walk())[place]
        if change(node, place):
            yield tree.sql(dialect="sqlite")


def _dropped_condition(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if isinstance(node, exp.Where) and not isinstance(node.this, (exp.And, exp.Or)):
            if _is_guard(node.this):
                return False
            node.pop()
            return True
        if isinstance(node, (exp.And, exp.Or)):
            if _is_guard(node.expression):
                return False
            node.replace(node.this)
            return True
        return False

    yield from _changed(sql, change)


def _is_guard(node: exp.Expression) -> bool:
    """Whether a condition keeps NULLs out of the list of a NOT IN."""
    nested = node.find_ancestor(exp.In) is not None
    return nested and isinstance(node, exp.Not) and isinstance(node.this, exp.Is)


def _tables(node: exp.Expression) -> dict[str, str]:
    select = node.find_ancestor(exp.Select)
    found = {}
    while select is not None and not found:
        scoped = [select.args.get("from") or select.args.get("from_")]
        scoped += select.args.get("joins") or []
        for part in scoped:
            if part is not None:
                found[part.this.alias_or_name.lower()] = part.this.name
    return found


def _siblings(column: exp.Column, database: Database) -> list[str]:
    """Other columns of the table with the same declared type."""
    tables = _tables(column)
    for alias, name in tables.items():
        table = database.schema.get(name)
        own = table.column(column.name) if table else None
        if table and own and (not column.table or column.table.lower() == alias):
            return [c.name for c in table.columns if c.type == own.type and c.name != own.name]
    return []


def _swapped(sql: str, database: Database, draw: random.Random, inside: type) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if not isinstance(node, exp.Column) or _part(node) is not inside:
            return False
        others = _siblings(node, database)
        if not others:
            return False
        node.this.replace(exp.to_identifier(draw.choice(others), quoted=True))
        return True

    yield from _changed(sql, change)


def _part(node: exp.Expression) -> type | None:
    """The clause that a column stands in."""
    child: exp.Expression = node
    parent = node.parent
    while parent is not None:
        if isinstance(parent, exp.Select):
            return exp.Select if child.arg_key == "expressions" else None
        if isinstance(parent, (exp.Where, exp.Group, exp.Order, exp.Having, exp.Join)):
            return type(parent)
        child, parent = parent, parent.parent
    return None


def _condition_column(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    for changed in _swapped(sql, database, draw, exp.Where):
        if " NOT IN (SELECT" not in sql.upper() and " IN (SELECT" not in changed.upper():
            yield changed


def _selected_column(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    if any(word in sql for word in ("UNION", "EXCEPT", "INTERSECT", "NOT IN (SELECT", "(SELECT")):
        return
    yield from _swapped(sql, database, draw, exp.Select)


def _joined_column(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    yield from _swapped(sql, database, draw, exp.Join)


def _value(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if not isinstance(node, exp.Literal) or node.find_ancestor(exp.Limit, exp.Having):
            return False
        holder = node.find_ancestor(*_COMPARISONS, exp.EQ, exp.NEQ, exp.Between, exp.In, exp.Like)
        if holder is None or node.find_ancestor(exp.TimeToStr) or not holder.find(exp.Column):
            return False
        other = _other_value(node, holder, database, draw)
        if other is None:
            return False
        make = exp.Literal.string if node.is_string else exp.Literal.number
        node.replace(make(other))
        return True

    yield from _changed(sql, change)


def _other_value(
    node: exp.Literal, holder: exp.Expression, database: Database, draw: random.Random
) -> str | None:
    column = holder.find(exp.Column)
    if column is None:
        return None
    if isinstance(holder, exp.Like):
        body = node.this.strip("%")
        if len(body) == 1:
            return str(node.this).replace(
                body, draw.choice("ABCDEFGHKLMNPRSTW".replace(body.upper(), ""))
            )
        if body[:4].isdecimal():
            return str(node.this).replace(body[:4], str(int(body[:4]) + 1))
    stamped = holder.find(exp.TimeToStr)
    if stamped is not None:
        text = str(node.this)
        return (
            f"{int(text[:2]) % 12 + 1:02}" if len(text) == 2 else str(int(text[:4]) + 1) + text[4:]
        )
    for name in _tables(column).values():
        table = database.schema.get(name)
        if table is None or table.column(column.name) is None:
            continue
        rows = database.query(
            f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(name)} "
            f"WHERE {quoted(column.name)} IS NOT NULL ORDER BY 1 LIMIT 40"
        ).rows
        others = [str(v) for (v,) in rows if not _same(str(v), str(node.this))]
        if isinstance(holder, exp.Like):
            words = [
                w
                for text in others
                for w in text.split()
                if w.isalpha() and w not in str(node.this)
            ]
            return (
                str(node.this).replace(node.this.strip("%"), draw.choice(words)) if words else None
            )
        if not node.is_string:
            others = [o for o in others if _number(o) is not None]
        return draw.choice(others) if others else None
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _same(one: str, other: str) -> bool:
    first, second = _number(one), _number(other)
    return one == other or (first is not None and first == second)


def _comparison(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    """Turned, or made strict where it was not, or the other way round."""

    def change(node: exp.Expression, place: int) -> bool:
        if not isinstance(node, _COMPARISONS):
            return False
        others = [kind for kind in _COMPARISONS if kind is not type(node)]
        node.replace(draw.choice(others)(this=node.this, expression=node.expression))
        return True

    yield from _changed(sql, change)


def _aggregation(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        for name, kind in _FUNCTIONS.items():
            if type(node) is kind:
                other = draw.choice([n for n in sorted(_FUNCTIONS) if n != name])
                node.replace(_FUNCTIONS[other](this=node.this))
                return True
        return False

    yield from _changed(sql, change)


def _order(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if isinstance(node, exp.Ordered) and not node.find_ancestor(exp.Window):
            node.set("desc", not node.args.get("desc"))
            return True
        return False

    yield from _changed(sql, change)


def _limit(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if isinstance(node, exp.Limit) and isinstance(node.expression, exp.Literal):
            here = int(node.expression.this)
            others = [number for number in range(1, 8) if number != here]
            node.set("expression", exp.Literal.number(draw.choice(others)))
            return True
        return False

    yield from _changed(sql, change)


def _group_limit(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if isinstance(node, exp.Literal) and node.find_ancestor(exp.Having) and not node.is_string:
            number = float(node.this)
            node.replace(exp.Literal.number(int(number) + draw.choice((1, 2, 3))))
            return True
        return False

    yield from _changed(sql, change)


def _once(sql: str, database: Database, draw: random.Random) -> Iterator[str]:
    def change(node: exp.Expression, place: int) -> bool:
        if isinstance(node, exp.Select) and node.args.get("distinct"):
            if all(_is_unique(column, database) for column in node.expressions):
                return False
            node.set("distinct", None)
            return True
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            inner = node.this.expressions[0]
            if _is_unique(inner, database) and len(_tables(node)) == 1:
                return False
            node.set("this", inner)
            return True
        return False

    yield from _changed(sql, change)


def _is_unique(node: exp.Expression, database: Database) -> bool:
    """Whether a column is the key of the only table asked, so that DISTINCT changes nothing."""
    tables = _tables(node)
    if not isinstance(node, exp.Column) or len(tables) != 1:
        return False
    table = database.schema.get(next(iter(tables.values())))
    keys = [c.name.lower() for c in table.columns if c.primary_key] if table else []
    return keys == [node.name.lower()]


KINDS: dict[str, Callable[[str, Database, random.Random], Iterator[str]]] = {
    "condition dropped": _dropped_condition,
    "column of a condition": _condition_column,
    "column selected": _selected_column,
    "column of a join": _joined_column,
    "value": _value,
    "comparison": _comparison,
    "aggregation": _aggregation,
    "order turned": _order,
    "limit": _limit,
    "number of rows": _group_limit,
    "once": _once,
}

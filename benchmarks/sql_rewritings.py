"""Pairs of equivalent queries for any database, made from its foreign keys and keys.

`match="suite"` must accept each for the other. A pair is yielded if its first query is a valid gold
and both queries have the same result on the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

from sqlgym.database.database import Database
from sqlgym.database.sqlite_file import quoted
from sqlgym.judging.results import sound
from sqlgym.judging.source_rows import Reference, Source, SourceColumn, SourceTable, read_source
from sqlgym.judging.suite import gold_run
from toolgym.errors import ToolError

KINDS = (
    "JOIN, IN and EXISTS",
    "LIMIT 1 and MAX",
    "NOT IN and EXCEPT",
    "COUNT(*) and COUNT(key)",
)


class Pair(NamedTuple):
    """A gold query and an equivalent query."""

    kind: str
    gold: str
    right: str


def pairs_of(database: Database, most: int = 60) -> Iterator[Pair]:
    """Yield pairs of every kind for a database, from at most `most` questions of each kind."""
    source = read_source(database.path)
    for kind, queries in zip(KINDS, (_joins, _extrema, _without, _counts), strict=True):
        for number, ways in enumerate(queries(source)):
            if number >= most:
                break
            for gold, right in permutations(ways, 2):
                if _is_fair(database, gold, right):
                    yield Pair(kind, gold, right)


def _is_fair(database: Database, gold: str, right: str) -> bool:
    run = gold_run(database, gold)
    try:
        result = database.query(right)
    except ToolError:
        return False
    return run is not None and bool(run.result.rows) and sound(run.result, result, run.runs).equal


def _references(source: Source) -> Iterator[tuple[SourceTable, SourceTable, Reference]]:
    """Yield children, their parents, and the column that refers to the parent's key."""
    for child in source.tables:
        for reference in child.references:
            parent = source.table(reference.to_table)
            if parent is None or parent is child or len(reference.columns) != 1:
                continue
            if parent.columns[reference.to_columns[0]].is_fresh:
                yield child, parent, reference


def _joins(source: Source) -> Iterator[tuple[str, ...]]:
    for child, parent, reference in _references(source):
        own = quoted(child.columns[reference.columns[0]].name)
        key = quoted(parent.columns[reference.to_columns[0]].name)
        c, p, shown = quoted(child.name), quoted(parent.name), quoted(child.columns[0].name)
        children, parents = (c, "c", shown, own), (p, "p", key, key)
        for (table, a, out, mine), (other, b, _, theirs), of, distinct in (
            (children, parents, parent, ""),
            (parents, children, child, "DISTINCT "),
        ):
            for column, value in _values(of):
                is_such, there = f"{b}.{column} = {value}", f"FROM {other} AS {b} WHERE"
                yield (
                    f"SELECT {distinct}{a}.{out} FROM {table} AS {a} JOIN {other} AS {b}"
                    f" ON {b}.{theirs} = {a}.{mine} WHERE {is_such}",
                    f"SELECT {out} FROM {table} WHERE {mine} IN"
                    f" (SELECT {b}.{theirs} {there} {is_such})",
                    f"SELECT {a}.{out} FROM {table} AS {a} WHERE EXISTS"
                    f" (SELECT 1 {there} {b}.{theirs} = {a}.{mine} AND {is_such})",
                )


def _values(table: SourceTable) -> Iterator[tuple[str, str]]:
    """Yield columns with a value of some of their rows, as SQL."""
    for column in table.columns:
        if column.kind in ("text", "integer", "truth") and not column.is_fresh and column.values:
            value = column.values[len(column.values) // 2]
            text = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
            yield quoted(column.name), text


def _extrema(source: Source) -> Iterator[tuple[str, ...]]:
    for table in source.tables:
        name = quoted(table.name)
        for number in _numbers(table):
            x = quoted(number.name)
            for column in table.columns[:4]:
                shown = quoted(column.name)
                yield (
                    f"SELECT {shown} FROM {name} ORDER BY {x} DESC LIMIT 1",
                    f"SELECT {shown} FROM {name} WHERE {x} = (SELECT max({x}) FROM {name})",
                    f"SELECT {shown} FROM {name} WHERE {x} ="
                    f" (SELECT {x} FROM {name} ORDER BY {x} DESC LIMIT 1)",
                )
    for child, _, reference in _references(source):
        name, own = quoted(child.name), quoted(child.columns[reference.columns[0]].name)
        counted = f"SELECT {own} FROM {name} WHERE {own} IS NOT NULL GROUP BY {own}"
        yield (
            f"{counted} ORDER BY count(*) DESC LIMIT 1",
            f"{counted} HAVING count(*) = (SELECT max(n) FROM (SELECT count(*) AS n FROM {name}"
            f" WHERE {own} IS NOT NULL GROUP BY {own}))",
        )


def _numbers(table: SourceTable) -> list[SourceColumn]:
    return [c for c in table.columns if c.kind in ("integer", "real") and not c.has_nulls]


def _without(source: Source) -> Iterator[tuple[str, ...]]:
    for child, parent, reference in _references(source):
        column = child.columns[reference.columns[0]]
        own, key = quoted(column.name), quoted(parent.columns[reference.to_columns[0]].name)
        c, p = quoted(child.name), quoted(parent.name)
        for condition in ["", *(f"c.{name} = {value}" for name, value in _values(child))]:
            known = " AND ".join(
                filter(None, [f"c.{own} IS NOT NULL" * column.has_nulls, condition])
            )
            inner = f"SELECT c.{own} FROM {c} AS c" + (f" WHERE {known}" if known else "")
            yield (
                f"SELECT {key} FROM {p} WHERE {key} NOT IN ({inner})",
                f"SELECT {key} FROM {p} EXCEPT {inner}",
                f"SELECT p.{key} FROM {p} AS p WHERE NOT EXISTS (SELECT 1 FROM {c} AS c"
                f" WHERE c.{own} = p.{key}{f' AND {condition}' if condition else ''})",
                f"SELECT p.{key} FROM {p} AS p LEFT JOIN ({inner}) AS c ON c.{own} = p.{key}"
                f" WHERE c.{own} IS NULL",
            )


def _counts(source: Source) -> Iterator[tuple[str, ...]]:
    for table in source.tables:
        keys = [key[0] for key in table.keys if len(key) == 1]
        for key in keys[:1]:
            name, column = quoted(table.name), quoted(table.columns[key].name)
            for where in ["", *(f" WHERE {of} = {value}" for of, value in _values(table))]:
                yield (
                    f"SELECT count(*) FROM {name}{where}",
                    f"SELECT count({column}) FROM {name}{where}",
                    f"SELECT count(DISTINCT {column}) FROM {name}{where}",
                )
            for group, _ in _values(table):
                yield (
                    f"SELECT {group}, count(*) FROM {name} GROUP BY {group}",
                    f"SELECT {group}, count({column}) FROM {name} GROUP BY {group}",
                )

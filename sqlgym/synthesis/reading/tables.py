"""A table as it is looked at: once, in bounded time.

Of a table of up to `READ_WHOLE` rows everything is read; of a larger one a sample of rows from all
over it, while the counts (rows, NULLs, different values) are SQLite's own wherever its budget
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.reading import roles
from toolgym.errors import ToolError

READ_WHOLE = 2_000
"""Rows up to which a table is read whole; of others, about so many rows are looked at."""
LARGE = 50_000
"""Rows from which on a table is large: what reads all of it is thought over first."""
MOST_COLUMNS = 60
"""Columns of a table that are looked at, from the first on."""


@dataclass(frozen=True)
class TableRead:
    """A table as it was read: rows in all, and the values of a sample by column."""

    table: Table
    rows: int
    values: dict[str, tuple[Any, ...]]
    nulls: dict[str, int]
    distinct: dict[str, int]
    first_row: frozenset[str]
    is_among_large: bool = False


def read_table(database: Database, table: Table, left_out: dict[str, str]) -> TableRead | None:
    """The values of a table; None, with a reason in `left_out`, if it cannot be used."""
    rows = database.count(table.name)
    if rows is None:
        left_out[table.name] = "It cannot be read within the budget of a query."
    elif rows == 0:
        left_out[table.name] = "It is empty."
    elif not table.columns:
        left_out[table.name] = "Its columns cannot be read."
    else:
        columns = table.columns[:MOST_COLUMNS]
        sample, first = _sample(database, table, columns, rows)
        if sample:
            nulls, distinct = _counts(database, table, sample, rows)
            return TableRead(table, rows, sample, nulls, distinct, first)
        left_out[table.name] = "None of its values can be read within the limits of a query."
    return None


def _sample(
    database: Database, table: Table, columns: Sequence[Column], rows: int
) -> tuple[dict[str, tuple[Any, ...]], frozenset[str]]:
    """The values of all rows, or of rows from all over the table; and the first row's."""
    where = _spread(database, table, rows)
    source = f"FROM {quoted(table.name)}{where} LIMIT {READ_WHOLE}"
    try:
        names = ", ".join(quoted(column.name) for column in columns)
        result = database.query(f"SELECT {names} {source}")
        if not result.truncated:
            first = database.query(f"SELECT {names} FROM {quoted(table.name)} LIMIT 1").rows[0]
            values = zip(columns, zip(*result.rows, strict=True), strict=True)
            return {column.name: cells for column, cells in values}, frozenset(
                str(value) for value in first if value is not None
            )
    except ToolError:  # one of the columns has values that are too long
        pass
    sample = {}
    for column in columns:
        try:
            result = database.query(f"SELECT {quoted(column.name)} {source}")
        except ToolError:
            continue
        if not result.truncated:
            sample[column.name] = tuple(row[0] for row in result.rows)
    return sample, frozenset()


def _spread(database: Database, table: Table, rows: int) -> str:
    """A condition that picks rows from all over a large table, if it has row numbers."""
    if rows <= READ_WHOLE:
        return ""
    try:
        sql = f"SELECT min(rowid), max(rowid) FROM {quoted(table.name)}"
        ((first, last),) = database.query(sql).rows
    except ToolError:  # a table without row numbers
        return ""
    if not isinstance(first, int) or not isinstance(last, int):
        return ""
    step = max((last - first) // READ_WHOLE, 1)
    picked = ", ".join(map(str, range(first, last + 1, step)))
    return f" WHERE rowid IN ({picked})"


def _counts(
    database: Database, table: Table, sample: dict[str, tuple[Any, ...]], rows: int
) -> tuple[dict[str, int], dict[str, int]]:
    """NULLs and different values by column: exact where they can be counted."""
    nulls, distinct = {}, {}
    for name, cells in sample.items():
        if len(cells) == rows:
            nulls[name] = sum(value is None for value in cells)
            distinct[name] = len(set(cells) - {None})
            continue
        column = quoted(name)
        present = _one(database, f"SELECT count({column}) FROM {quoted(table.name)}")
        nulls[name] = rows - present if present is not None else sample[name].count(None)
        different = len(set(cells) - {None})
        if different > roles.FEW:
            exact = _one(database, f"SELECT count(DISTINCT {column}) FROM {quoted(table.name)}")
            different = exact if exact is not None else different
        distinct[name] = different
    return nulls, distinct


def _one(database: Database, sql: str) -> int | None:
    try:
        return int(database.query(sql).rows[0][0])
    except ToolError:
        return None

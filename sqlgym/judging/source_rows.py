"""Read rows of a database and the rules that the rows satisfy, and write instances of the database.

An instance (`sqlgym.judging.instances`) is created by the CREATE statements of the original file,
so SQLite rejects rows that violate a declared key, CHECK constraint, type or collation. The data
can also satisfy undeclared rules, and a query that relies on such a rule is correct. Therefore an
instance preserves the following properties of a column:

* The column contains no NULL values.
* The strings are all different, like names that serve as keys.
* The values are only 0 and 1.
* The numbers are never negative.
* The strings are dates.
* All values occur in a column that has the same name and is the key of another table, so the
  column is a reference.

At most `READ` rows of a table are read, in ranges of row numbers.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from sqlgym.database.sqlite_file import connect_readonly, lenient_text, quoted, result_code
from toolgym.errors import EnvironmentFault
from toolgym.lazy import lazy

Row = tuple[Any, ...]
Kind = Literal["integer", "real", "text", "day", "truth", "other"]
READ: Final = 2_000
"""Maximum number of rows that are read from a table."""
TABLES: Final = 60
"""Maximum number of tables that are filled; others remain empty."""
_WINDOWS: Final = 20
_VIRTUAL: Final = re.compile(r"\s*create\s+virtual\b", re.IGNORECASE)
_DISK: Final = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
)
_STEPS: Final = 50_000_000
"""Maximum number of virtual-machine steps for reading or writing."""
_ALL_DIFFERENT: Final = 5
"""Minimum number of rows for a column of distinct texts to count as a key."""


class NoInstance(Exception):
    """Raised if no instance of a database can be created."""


@dataclass(frozen=True)
class SourceColumn:
    """A column to which values can be written.

    Attributes:
        has_nulls: Whether the column contains NULL, so that more NULLs can be added.
        is_fresh: Whether all of its values differ.
        values: The distinct values of the column, sorted, without NULL and blobs.
    """

    name: str
    has_nulls: bool
    is_fresh: bool
    values: tuple[Any, ...]

    @lazy
    def kind(self) -> Kind:
        """The type of the column's values."""
        types = set(map(type, self.values))
        if types == {int}:
            return "truth" if {*self.values} <= {0, 1} else "integer"
        if types and types <= {int, float}:
            return "real"
        if types == {str} and all(day_of(value) is not None for value in self.values):
            return "day"
        return "text" if str in types else "other"


@dataclass(frozen=True)
class Reference:
    """Columns of a table, by position, whose values occur in columns of another table."""

    columns: tuple[int, ...]
    to_table: str
    to_columns: tuple[int, ...]


@dataclass(frozen=True)
class SourceTable:
    """A table with the rows that were read from it."""

    name: str
    columns: tuple[SourceColumn, ...]
    rows: tuple[Row, ...]
    references: tuple[Reference, ...] = ()
    keys: tuple[tuple[int, ...], ...] = ()

    def place(self, name: str) -> int | None:
        """Return the position of a column, ignoring case, or None if there is none."""
        names = [column.name.lower() for column in self.columns]
        return names.index(name.lower()) if name.lower() in names else None


@dataclass(frozen=True)
class Source:
    """The database from which instances are created.

    Attributes:
        creates: The CREATE statements of the database.
        tables: The tables, sorted so that parent tables come first.
    """

    creates: tuple[str, ...]
    tables: tuple[SourceTable, ...]

    def table(self, name: str) -> SourceTable | None:
        """Return the table with a given name, ignoring case, or None if there is none."""
        return next((t for t in self.tables if t.name.lower() == name.lower()), None)


def read_source(path: Path) -> Source:
    """Read a limited part of a database.

    Raises:
        NoInstance: The database has no table that can be read.
        EnvironmentFault: The file cannot be read.
    """
    with closing(connect_readonly(path)) as connection:
        connection.text_factory = lenient_text
        end_after(connection, _STEPS)
        try:
            made = connection.execute(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE"
                " 'sqlite\\_%' ESCAPE '\\' AND type IN ('table', 'index', 'view')"
                " ORDER BY type = 'view', type = 'index', rowid"
            ).fetchall()
            made = [each for each in made if not _VIRTUAL.match(each[2])]
            names = [name for kind, name, _ in made if kind == "table"][:TABLES]
            if not names:
                raise NoInstance("it contains no table")
            tables = [_read_table(connection, name) for name in names]
            tables = [_with_references(connection, table, tables) for table in tables]
        except sqlite3.Error as error:
            raise NoInstance(f"it cannot be read: {error}") from None
    order = parents_first({t.name: {r.to_table for r in t.references} for t in tables})
    tables.sort(key=lambda table: order.index(table.name))
    return Source(tuple(sql for *_, sql in made), tuple(tables))


def write_instance(source: Source, rows: dict[str, list[Row]], path: Path) -> None:
    """Write rows to a new file with the same schema, skipping rows that violate a rule.

    Raises:
        NoInstance: The schema cannot be created, or no row of a table remains.
        EnvironmentFault: The disk is full or not writable.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        end_after(connection, _STEPS)
        try:
            connection.execute("PRAGMA journal_mode=OFF").fetchall()
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("BEGIN")
            for statement in source.creates:
                connection.execute(statement)
            for table in source.tables:
                columns = ", ".join(quoted(column.name) for column in table.columns)
                marks = ", ".join("?" * len(table.columns))
                into = f"INTO {quoted(table.name)} ({columns}) VALUES ({marks})"
                for row in rows.get(table.name, []):
                    try:
                        connection.execute(f"INSERT OR IGNORE {into}", row)
                    except sqlite3.IntegrityError:  # a type that a strict table refuses
                        continue
            orphans = [
                _delete_orphans(source, t, each) for t in source.tables for each in t.references
            ]
            while any(connection.execute(sql).rowcount for sql in orphans):
                continue
            for table in source.tables:
                found = connection.execute(f"SELECT 1 FROM {quoted(table.name)} LIMIT 1").fetchone()
                if rows.get(table.name) and found is None:
                    raise NoInstance(f"{table.name} has no rows left")
            connection.execute("COMMIT")
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            if result_code(error) in _DISK:
                raise EnvironmentFault(
                    f"The instances of a database cannot be written to {path.parent}: {error}",
                    "Free some disk space, or set TOOLGYM_CACHE to another folder.",
                ) from error
            raise NoInstance(f"it cannot be written: {error}") from None


def end_after(connection: sqlite3.Connection, steps: int) -> None:
    """Limit the total number of virtual machine steps of a connection."""
    left = iter(range(steps // 10_000))
    connection.set_progress_handler(lambda: next(left, None) is None, 10_000)


def _delete_orphans(source: Source, table: SourceTable, reference: Reference) -> str:
    """Return a statement that deletes the rows that refer to a missing parent."""
    target = next(each for each in source.tables if each.name == reference.to_table)
    own = [f"{quoted(table.name)}.{quoted(table.columns[at].name)}" for at in reference.columns]
    theirs = [f"parent.{quoted(target.columns[at].name)}" for at in reference.to_columns]
    same = " AND ".join(f"{b} = {a}" for a, b in zip(own, theirs, strict=True))
    known = " AND ".join(f"{column} IS NOT NULL" for column in own)
    parent = f"SELECT 1 FROM {quoted(target.name)} AS parent WHERE {same}"
    return f"DELETE FROM {quoted(table.name)} WHERE {known} AND NOT EXISTS ({parent})"


def _read_table(connection: sqlite3.Connection, name: str) -> SourceTable:
    info = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    own = [(column, key) for _, column, _, _, _, key, hidden in info if not hidden]
    names = [column for column, _ in own]
    rows = _rows(connection, name, names)
    keys = [tuple(place for place, (_, key) in enumerate(own) if key)]
    indexes = connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall()
    for _, index, is_unique, _, is_partial in indexes:
        parts = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        if is_unique and not is_partial and all(column in names for *_, column in parts):
            keys.append(tuple(names.index(column) for *_, column in parts))
    keys = [key for key in dict.fromkeys(keys) if key]
    columns = []
    for place, (column, key) in enumerate(own):
        values = [row[place] for row in rows]
        known = {value for value in values if isinstance(value, int | float | str)}
        ordered = sorted(known, key=lambda value: (isinstance(value, str), value))
        is_name = (
            len(known) == len(values) >= _ALL_DIFFERENT
            and all(isinstance(value, str) for value in values)
            and not all(map(day_of, values))
        )
        may_be_null = None in values and not key
        columns.append(
            SourceColumn(column, may_be_null, (place,) in keys or is_name, tuple(ordered))
        )
    return SourceTable(name, tuple(columns), tuple(rows), (), tuple(keys))


def _rows(connection: sqlite3.Connection, name: str, names: Sequence[str]) -> list[Row]:
    table, columns = quoted(name), ", ".join(map(quoted, names))
    taken = {each.lower() for each in names}
    number = next((each for each in ("rowid", "_rowid_", "oid") if each not in taken), "NULL")
    try:
        sql = f"SELECT min({number}), max({number}) FROM {table}"
        low, high = connection.execute(sql).fetchone()
    except sqlite3.OperationalError:  # a table without row numbers
        low = high = None
    if low is None or high - low < READ:
        return connection.execute(f"SELECT {columns} FROM {table} LIMIT {READ}").fetchall()
    found: dict[int, Row] = {}
    sql = f"SELECT {number}, {columns} FROM {table} WHERE {number} >= ? ORDER BY 1 LIMIT ?"
    for window in range(_WINDOWS):
        start = low + (high - low) * window // _WINDOWS
        for place, *row in connection.execute(sql, (start, READ // _WINDOWS)):
            found[place] = tuple(row)
    return list(found.values())


def _with_references(
    connection: sqlite3.Connection, table: SourceTable, tables: Sequence[SourceTable]
) -> SourceTable:
    """Add the references that a table declares, and those that its values imply."""
    by_name = {each.name.lower(): each for each in tables}
    declared: dict[int, list[tuple[int | None, int | None]]] = {}
    targets = {}
    listed = connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})").fetchall()
    for number, place, to_table, column, to_column, *_ in sorted(listed, key=lambda r: r[:2]):
        target = targets[number] = by_name.get(to_table.lower())
        if target is not None:
            primary = target.keys[0][place : place + 1] if target.keys else ()
            to = target.place(to_column) if to_column else next(iter(primary), None)
            declared.setdefault(number, []).append((table.place(column), to))
    references = []
    for number, pairs in declared.items():
        known = [(own, to) for own, to in pairs if own is not None and to is not None]
        target = targets[number]
        # A reference from a column without values would allow none in an instance.
        is_used = all(table.columns[own].values for own, _ in known)
        if target is not None and len(known) == len(pairs) and is_used:
            own_places, to_places = zip(*known, strict=True)
            references.append(Reference(own_places, target.name, to_places))
    taken = {place for reference in references for place in reference.columns}
    for place, column in enumerate(table.columns):
        for other in tables if place not in taken and column.values else ():
            at = other.place(column.name)
            if at is None or other is table or len(other.rows) >= READ:
                continue
            key = other.columns[at]
            is_child = not column.is_fresh or len(table.rows) < len(other.rows)
            if key.is_fresh and is_child and {*column.values} <= {*key.values}:
                references.append(Reference((place,), other.name, (at,)))
                break
    return replace(table, references=tuple(references))


def day_of(value: Any) -> date | None:
    """Return the date at the start of a string such as `2024-02-29 10:00`, or None."""
    if not isinstance(value, str) or len(value) < 10 or value[4] != "-":
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def parents_first(parents: Mapping[str, Set[str]]) -> list[str]:
    """Sort tables so that each table follows the tables to which it refers, except in cycles.

    Args:
        parents: The tables to which each table refers, by name.
    """
    ordered: list[str] = []
    left = dict.fromkeys(parents)
    while left:
        ready = [name for name in left if not (parents[name] - {name}) & left.keys()]
        ready = ready or [next(iter(left))]
        ordered += ready
        for name in ready:
            del left[name]
    return ordered

"""Rows of a database to make others of: read within bounds, with the rules that they keep.

Instances of a database (`sqlgym.judging.instances`) hold changed rows of it. What must not change
is declared in the file: keys, references, NOT NULL, CHECK, types, collations. An instance is made
by the file's own CREATE statements, so SQLite itself refuses what breaks one of these.

Data keeps rules that nobody declared, and a query that relies on one is right all the same. So a
column without NULL stays so, texts that are all different stay so (a name as a key), a column of 0
and 1 is a truth value, numbers that are never negative stay so, days stay days, and a column whose
values are all found under the same name in another table's key is a reference.

Of a large table `READ` rows are read, in windows over its row numbers, whatever its size.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from sqlgym.database.sqlite_file import connect_readonly, lenient_text, quoted, result_code
from toolgym.errors import EnvironmentFault

Row = tuple[Any, ...]
Kind = Literal["integer", "real", "text", "day", "truth", "other"]
READ: Final = 2_000
"""Rows of one table that are read."""
TABLES: Final = 60
"""Tables of a database that are filled; the others stay empty."""
_WINDOWS: Final = 20
_VIRTUAL: Final = re.compile(r"\s*create\s+virtual\b", re.IGNORECASE)
_SHADOWS: Final = (
    "data", "idx", "content", "docsize", "config", "segments", "segdir", "stat", "node", "parent",
    "rowid",
)  # fmt: skip
"""Endings of the names of tables in which SQLite keeps virtual ones."""
_DISK: Final = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
)
_STEPS: Final = 50_000_000
"""Virtual-machine steps that reading or writing may take."""
_ALL_DIFFERENT: Final = 5
"""So many different texts in a row are no chance."""


class NoInstance(Exception):
    """An instance of a database cannot be made; the text says why."""


@dataclass(frozen=True)
class SourceColumn:
    """A column that can be written.

    Attributes:
        has_nulls: It holds NULL, and may hold more.
        has_signs: It holds negative numbers.
        is_fresh: No two rows may have one value.
        values: The different values that were read, sorted, without NULL.
    """

    name: str
    kind: Kind
    has_nulls: bool
    has_signs: bool
    is_fresh: bool
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Reference:
    """Columns of a table, by place, that hold the values of others."""

    columns: tuple[int, ...]
    to_table: str
    to_columns: tuple[int, ...]
    to_names: tuple[str, ...]


@dataclass(frozen=True)
class SourceTable:
    """A table with rows that were read of it; `uniques` are undeclared keys of one column."""

    name: str
    columns: tuple[SourceColumn, ...]
    rows: tuple[Row, ...]
    references: tuple[Reference, ...] = ()
    keys: tuple[tuple[int, ...], ...] = ()
    uniques: tuple[int, ...] = ()

    def place(self, name: str) -> int | None:
        """The place of a column, whatever its case."""
        for place, column in enumerate(self.columns):
            if column.name.lower() == name.lower():
                return place
        return None


@dataclass(frozen=True)
class Source:
    """What instances of a database are made of: its tables, parents first, and its CREATEs."""

    encoding: str
    creates: tuple[str, ...]
    views: tuple[str, ...]
    tables: tuple[SourceTable, ...]

    def table(self, name: str) -> SourceTable | None:
        """The table of this name, whatever its case."""
        return next((t for t in self.tables if t.name.lower() == name.lower()), None)


def read_source(path: Path) -> Source:
    """Read a bounded part of a database.

    Raises:
        NoInstance: It holds no table that can be read.
        EnvironmentFault: The file cannot be read.
    """
    with closing(connect_readonly(path)) as connection:
        connection.text_factory = lenient_text
        end_after(connection, _STEPS)
        try:
            return _read(connection)
        except sqlite3.Error as error:
            raise NoInstance(f"it cannot be read: {error}") from None


def write_instance(source: Source, rows: dict[str, list[Row]], path: Path) -> None:
    """Write rows into a new file of the same schema; a row that breaks a rule is left out.

    Raises:
        NoInstance: The schema cannot be made, rows break references that cannot be mended, or a
            table has lost all of its rows.
        EnvironmentFault: The disk is full or cannot be written.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        end_after(connection, _STEPS)
        try:
            for pragma in ("journal_mode=OFF", "synchronous=OFF", f"encoding='{source.encoding}'"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("BEGIN")
            for statement in source.creates:
                connection.execute(statement)
            for table in source.tables:
                _fill(connection, table, rows.get(table.name, []))
            _drop_orphans(connection, source.tables)
            for table in source.tables:
                found = f"SELECT EXISTS (SELECT 1 FROM {quoted(table.name)})"
                if rows.get(table.name) and connection.execute(found).fetchone() == (0,):
                    raise NoInstance(f"{table.name} has lost all of its rows")
            for statement in source.views:
                connection.execute(statement)
            connection.execute("COMMIT")
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            if result_code(error) in _DISK:
                raise EnvironmentFault(
                    f"The instances of a database cannot be written to {path.parent}: {error}",
                    "Make room on the disk, or set TOOLGYM_CACHE to another folder.",
                ) from error
            raise NoInstance(f"it cannot be written: {error}") from None


def end_after(connection: sqlite3.Connection, steps: int) -> None:
    """End what a connection does once it has taken so many virtual-machine steps in all."""
    left = iter(range(steps // 10_000))
    connection.set_progress_handler(lambda: next(left, None) is None, 10_000)


def _fill(connection: sqlite3.Connection, table: SourceTable, rows: Sequence[Row]) -> None:
    name = quoted(table.name)
    for place in table.uniques:  # the rule holds while rows are written, and leaves no index
        column = quoted(table.columns[place].name)
        connection.execute(f'CREATE UNIQUE INDEX "toolgym {place}" ON {name} ({column})')
    columns = ", ".join(quoted(column.name) for column in table.columns)
    marks = ", ".join("?" * len(table.columns))
    insert = f"INSERT OR IGNORE INTO {name} ({columns}) VALUES ({marks})"
    for row in rows:
        try:
            connection.execute(insert, row)
        except sqlite3.IntegrityError:  # a type that a strict table does not take
            continue
    for place in table.uniques:
        connection.execute(f'DROP INDEX "toolgym {place}"')


def _drop_orphans(connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    """Delete rows that refer to none, and then those that referred to them."""
    deletes = [_delete_orphans(table, each) for table in tables for each in table.references]
    while any(connection.execute(sql).rowcount for sql in deletes):
        continue
    there = {table.name.lower() for table in tables}
    for table in tables:
        check = f"PRAGMA foreign_key_check({quoted(table.name)})"
        rowid = _row_number(column.name for column in table.columns)
        try:
            # A reference to a table that is not there breaks in the database as well.
            while orphans := [
                row for row in connection.execute(check).fetchall() if row[2].lower() in there
            ]:
                for number in {number for _, number, *_ in orphans}:
                    if number is None:
                        raise NoInstance(f"{table.name} has rows that refer to none")
                    delete = f"DELETE FROM {quoted(table.name)} WHERE {rowid} = ?"
                    connection.execute(delete, (number,))
        except sqlite3.OperationalError as error:
            if "mismatch" not in str(error):  # of a reference that SQLite cannot check
                raise


def _delete_orphans(table: SourceTable, reference: Reference) -> str:
    """A statement that deletes the rows that refer to none by one reference of the source."""
    own = [f"{quoted(table.name)}.{quoted(table.columns[at].name)}" for at in reference.columns]
    theirs = [f"parent.{quoted(name)}" for name in reference.to_names]
    same = " AND ".join(f"{b} = {a}" for a, b in zip(own, theirs, strict=True))
    known = " AND ".join(f"{column} IS NOT NULL" for column in own)
    parent = f"SELECT 1 FROM {quoted(reference.to_table)} AS parent WHERE {same}"
    return f"DELETE FROM {quoted(table.name)} WHERE {known} AND NOT EXISTS ({parent})"


def _read(connection: sqlite3.Connection) -> Source:
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    made = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    virtual = {n for kind, n, sql in made if kind == "table" and _VIRTUAL.match(sql)}
    plain = [each for each in made if each[1] not in virtual]
    names = [name for kind, name, _ in plain if kind == "table"]
    shadows = {f"{name}_{ending}" for name in virtual for ending in _SHADOWS}
    all_names = [name for name in names if name not in shadows]
    names = all_names[:TABLES]
    if not names:
        raise NoInstance("it holds no table")
    tables = [_read_table(connection, name) for name in names]
    tables = [_with_references(connection, table, tables) for table in tables]
    creates = [sql for kind, name, sql in plain if kind == "table" and name in all_names]
    creates += [
        sql
        for kind, name, sql in plain
        if kind == "index" and _owner(connection, name) in {each.lower() for each in all_names}
    ]
    views = [sql for kind, _, sql in plain if kind == "view"]
    by_name = {table.name: table for table in tables}
    order = parents_first({t.name: {r.to_table for r in t.references} for t in tables})
    return Source(encoding, tuple(creates), tuple(views), tuple(by_name[name] for name in order))


def _owner(connection: sqlite3.Connection, index: str) -> str:
    sql = "SELECT lower(tbl_name) FROM sqlite_master WHERE type = 'index' AND name = ?"
    return str(connection.execute(sql, (index,)).fetchone()[0])


def _read_table(connection: sqlite3.Connection, name: str) -> SourceTable:
    info = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    own = [(column, not_null, key) for _, column, _, not_null, _, key, hidden in info if not hidden]
    names = [column for column, *_ in own]
    rows = _rows(connection, name, names)
    keys = [tuple(p for p, (*_, key) in enumerate(own) if key)]
    for _, index, is_unique, _, partial in connection.execute(
        f"PRAGMA index_list({quoted(name)})"
    ).fetchall():
        parts = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        if is_unique and not partial and all(column in names for *_, column in parts):
            keys.append(tuple(names.index(column) for *_, column in parts))
    keys = [key for key in dict.fromkeys(keys) if key]
    single = {key[0] for key in keys if len(key) == 1}
    columns, uniques = [], []
    for place, (column, _, key) in enumerate(own):
        values = [row[place] for row in rows]
        if place not in single and _is_name(values):
            uniques.append(place)
        is_fresh = place in single or place in uniques
        may_be_null = None in values and not key
        columns.append(_column(column, values, may_be_null, is_fresh))
    return SourceTable(name, tuple(columns), tuple(rows), (), tuple(keys), tuple(uniques))


def _is_name(values: Sequence[Any]) -> bool:
    """Texts but days that are all different: a key that nobody declared."""
    if len(values) < _ALL_DIFFERENT or not all(isinstance(value, str) for value in values):
        return False
    return len(set(values)) == len(values) and not all(map(day_of, values))


def _column(name: str, values: Sequence[Any], has_nulls: bool, is_fresh: bool) -> SourceColumn:
    known = {value for value in values if isinstance(value, int | float | str)}
    ordered = sorted(known, key=lambda value: (isinstance(value, str), value))
    negative = any(not isinstance(value, str) and value < 0 for value in known)
    return SourceColumn(name, _kind(values, known), has_nulls, negative, is_fresh, tuple(ordered))


def _kind(values: Sequence[Any], known: set[Any]) -> Kind:
    types = {type(value) for value in values if value is not None}
    if not types:
        return "other"
    if types == {int}:
        return "truth" if known <= {0, 1} else "integer"
    if types <= {int, float}:
        return "real"
    if types == {str} and all(day_of(value) is not None for value in known):
        return "day"
    return "text" if str in types and bytes not in types else "other"


def day_of(value: Any) -> date | None:
    """The day that a text begins with, as in `2024-02-29 10:00`; None if it does not."""
    if not isinstance(value, str) or len(value) < 10 or value[4] != "-":
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def _rows(connection: sqlite3.Connection, name: str, names: Sequence[str]) -> list[Row]:
    table, columns, number = quoted(name), ", ".join(map(quoted, names)), _row_number(names)
    try:
        sql = f"SELECT min({number}), max({number}) FROM {table}"
        low, high = connection.execute(sql).fetchone()
    except sqlite3.OperationalError:  # a table without row numbers
        low = high = None
    if low is None or high - low < READ:
        sql = f"SELECT {columns} FROM {table} LIMIT {READ}"
        return [tuple(row) for row in connection.execute(sql)]
    found: dict[int, Row] = {}
    sql = f"SELECT {number}, {columns} FROM {table} WHERE {number} >= ? ORDER BY 1 LIMIT ?"
    for window in range(_WINDOWS):
        start = low + (high - low) * window // _WINDOWS
        for place, *row in connection.execute(sql, (start, READ // _WINDOWS)):
            found[place] = tuple(row)
    return list(found.values())


def _row_number(names: Iterable[str]) -> str:
    """The name for the number of a row that is no column of the table; NULL if all three are."""
    taken = {name.lower() for name in names}
    return next((each for each in ("rowid", "_rowid_", "oid") if each not in taken), "NULL")


def _with_references(
    connection: sqlite3.Connection, table: SourceTable, tables: Sequence[SourceTable]
) -> SourceTable:
    """The table with the references that it declares, and those that its values are."""
    by_name = {each.name.lower(): each for each in tables}
    declared: dict[int, list[Any]] = {}
    listed = connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})").fetchall()
    for number, place, to_table, column, to_column, *_ in sorted(listed, key=lambda r: r[:2]):
        declared.setdefault(number, []).append((place, to_table, column, to_column))
    references = []
    for parts in declared.values():
        target = by_name.get(parts[0][1].lower())
        if target is None:
            continue
        own = [table.place(column) for _, _, column, _ in parts]
        primary = target.keys[0] if target.keys else ()
        to = [
            primary[place]
            if to_column is None and place < len(primary)
            else target.place(to_column or "")
            for place, _, _, to_column in parts
        ]
        pairs = [(a, b) for a, b in zip(own, to, strict=True) if a is not None and b is not None]
        is_used = all(table.columns[place].values for place, _ in pairs)
        if len(pairs) == len(parts) and is_used:  # what refers to nothing stays so
            ours, theirs = zip(*pairs, strict=True)
            names = tuple(target.columns[at].name for at in theirs)
            references.append(Reference(tuple(ours), target.name, tuple(theirs), names))
    taken = {place for reference in references for place in reference.columns}
    for place, column in enumerate(table.columns):
        known = None if place in taken else _same_named_key(table, column, place, tables)
        references += [] if known is None else [known]
    return SourceTable(
        table.name, table.columns, table.rows, tuple(references), table.keys, table.uniques
    )


def _same_named_key(
    table: SourceTable, column: SourceColumn, own: int, tables: Sequence[SourceTable]
) -> Reference | None:
    """The reference to a key of another table that is called like a column and has its values."""
    for other in tables:
        place = other.place(column.name)
        if other.name == table.name or place is None or len(other.rows) >= READ:
            continue
        key = other.columns[place]
        is_part = bool(column.values) and set(column.values) <= set(key.values)
        is_child = not column.is_fresh or len(table.rows) < len(other.rows)
        if key.is_fresh and is_part and is_child:
            return Reference((own,), other.name, (place,), (key.name,))
    return None


def parents_first(parents: Mapping[str, Set[str]]) -> list[str]:
    """Tables, each behind those that it refers to, as far as references make no circle.

    Args:
        parents: The tables that each table refers to, by name.
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

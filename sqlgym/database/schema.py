"""The schema of a database, with lookup by name and suggestions for unknown names.

The schema is read once per file through its own connection, since the guard rejects the PRAGMAs
that list types, keys and references. Views count as tables. Internal tables of SQLite and shadow
tables of virtual tables are excluded. Lookup ignores case, quotes, brackets and a leading `main.`.

`sqlgym.database.description` writes the text that an agent reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process

from sqlgym.database.sqlite_file import broken_file, connect_readonly, lenient_text, quoted
from toolgym.errors import ToolError
from toolgym.lazy import lazy

SHADOW_QUERY = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'"
LONGEST_COMPARED = 1_000  # characters; the cost of a comparison is the product of the two lengths
NEAR = 60.0
"""Minimum similarity (rapidfuzz's ratio, 0 to 100) for a name to be suggested."""


@dataclass(frozen=True)
class Column:
    """One column. `type` is the declared type, which may be empty."""

    name: str
    type: str
    primary_key: bool = False


@dataclass(frozen=True)
class ForeignKey:
    """A reference from `table.column` to `to_table.to_column`."""

    table: str
    column: str
    to_table: str
    to_column: str


@dataclass(frozen=True)
class Table:
    """A table or view of the file, with its columns and references in declared order."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    is_view: bool = False

    def column(self, name: str) -> Column | None:
        """Return the column with this name, ignoring case, or None."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True, eq=False)
class Schema:
    """The tables and views of one file, in order of creation."""

    tables: tuple[Table, ...]

    @classmethod
    def read(cls, path: Path) -> Schema:
        """Read the schema of an SQLite file. For an open database, use `Database.schema`.

        Raises:
            EnvironmentFault: The file cannot be read as a database.
        """
        connection = connect_readonly(path)
        connection.text_factory = lenient_text
        try:
            return cls(_read_tables(connection))
        except sqlite3.Error as error:
            raise broken_file(path, error) from error
        finally:
            connection.close()

    @lazy
    def _by_name(self) -> dict[str, Table]:
        return {table.name.lower(): table for table in self.tables}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tables, as declared."""
        return tuple(table.name for table in self.tables)

    def get(self, name: str) -> Table | None:
        """Return the table with this name, or None. Case, quotes and `main.` are ignored."""
        return self._by_name.get(name.lower()) or self._by_name.get(bare_name(name).lower())

    def find(self, name: str) -> Table:
        """Return the table with this name. Case, quotes and `main.` are ignored.

        Raises:
            ToolError: `unknown_table`, with the most similar name.
        """
        table = self.get(name)
        if table is None:
            raise unknown_table(bare_name(name), self.names)
        return table

    def referring(self, table_name: str, column_name: str) -> tuple[ForeignKey, ...]:
        """Return the references to a column from all tables."""
        target = table_name.lower(), column_name.lower()
        keys = (key for table in self.tables for key in table.foreign_keys)
        return tuple(k for k in keys if (k.to_table.lower(), k.to_column.lower()) == target)

    def nearest_column(self, name: str, tables: Iterable[str] = ()) -> tuple[Table, Column] | None:
        """Return the column with the most similar name; on ties, one of `tables` is preferred.

        Args:
            name: The name as the agent wrote it; a qualifier and quotes are ignored.
            tables: Names of the tables that the agent most likely meant, in upper or lower case.
        """
        plain = bare_name(name).lower()[:LONGEST_COMPARED]
        preferred = {table.lower() for table in tables}
        scored = [
            (
                fuzz.ratio(plain, column.name.lower()[:LONGEST_COMPARED])
                + 10.0 * (table.name.lower() in preferred),
                (table, column),
            )
            for table in self.tables
            for column in table.columns
        ]
        score, best = max(scored, key=lambda each: each[0], default=(0.0, None))
        return best if score >= NEAR else None

    def with_references(self, extra: Iterable[ForeignKey]) -> Schema:
        """Return this schema with additional references. The result is cached.

        References with unknown names are dropped.
        """
        keys = tuple(extra)
        if not keys:
            return self
        if keys not in self._complemented:
            tables = {table.name: table for table in self.tables}
            for key in keys:
                table, target = self.get(key.table), self.get(key.to_table)
                column = table and table.column(key.column)
                to_column = target and target.column(key.to_column)
                if table and column and target and to_column:
                    own = tables[table.name].foreign_keys
                    new = ForeignKey(table.name, column.name, target.name, to_column.name)
                    if str(new).lower() not in [str(each).lower() for each in own]:
                        tables[table.name] = replace(tables[table.name], foreign_keys=(*own, new))
            self._complemented[keys] = Schema(tuple(tables.values()))
        return self._complemented[keys]

    @lazy
    def _complemented(self) -> dict[tuple[ForeignKey, ...], Schema]:
        return {}


def unknown_table(name: str, names: Sequence[str]) -> ToolError:
    """Return the error for a table that this database does not have."""
    near = nearest(name, names)
    hint = f"Did you mean {near!r}?"
    if near is None:
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        hint = f"The tables are: {listed}." if names else "The database has no tables."
    example = {"name": "describe", "arguments": {"table_name": near or names[0]}} if names else {}
    return ToolError("unknown_table", f"There is no table {shorten(name)!r}.", hint, example)


def nearest(name: str, names: Sequence[str], least: float = NEAR) -> str | None:
    """Return the most similar name, or None if no similarity reaches `least`.

    On ties, the first name is returned.
    """
    if len(name) > LONGEST_COMPARED:
        return None
    lowered = [n.lower()[:LONGEST_COMPARED] for n in names]
    match = process.extractOne(name.lower(), lowered, scorer=fuzz.ratio, score_cutoff=least)
    return names[match[2]] if match else None


def bare_name(name: str) -> str:
    """Return a name without its qualifier, quotes, backticks or brackets.

    >>> bare_name('main."Order Items"'), bare_name("[T1].[Name]"), bare_name("`a`")
    ('Order Items', 'Name', 'a')
    """
    name = name.strip().rstrip(";").strip()
    for closing, opening in (('"', '"'), ("]", "["), ("`", "`"), ("'", "'")):
        if len(name) > 1 and name.endswith(closing):
            start = name.rfind(opening, 0, len(name) - 1)
            return name[start + 1 : -1] if start >= 0 else name[:-1]
    return name.rpartition(".")[2]


def shorten(text: str, most: int = 80) -> str:
    """Return a name shortened for a message, since an agent can write names of any length."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _read_tables(connection: sqlite3.Connection) -> tuple[Table, ...]:
    has_table_list = sqlite3.sqlite_version_info >= (3, 37)
    shadows = {row[0] for row in connection.execute(SHADOW_QUERY)} if has_table_list else set()
    rows = connection.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    bare = {
        name.lower(): Table(name, _read_columns(connection, name), (), kind == "view")
        for name, kind in rows
        if name not in shadows
    }
    return tuple(replace(t, foreign_keys=_read_keys(connection, t, bare)) for t in bare.values())


def _read_columns(connection: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    try:
        rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    except sqlite3.OperationalError:  # a view of a missing table, or a missing module
        return ()
    return tuple(
        Column(name, kind or "", bool(key))
        for _, name, kind, _, _, key, hidden in rows
        if hidden != 1  # 1 is a hidden column of a virtual table; 2 and 3 are generated columns
    )


def _read_keys(
    connection: sqlite3.Connection, table: Table, tables: dict[str, Table]
) -> tuple[ForeignKey, ...]:
    """Return the declared references with the declared spelling of their targets.

    A reference without a column refers to the primary key.
    """
    rows: list[Any] = connection.execute(
        f"PRAGMA foreign_key_list({quoted(table.name)})"
    ).fetchall()
    rows.sort(key=lambda row: (-row[0], row[1]))  # SQLite lists the last declared key first
    keys = []
    for _, place, to_table, column, to_column, *_ in rows:
        target = tables.get(to_table.lower())
        primary = [c.name for c in target.columns if c.primary_key] if target else []
        if to_column is None and place < len(primary):
            to_column = primary[place]
        to = target.column(to_column) if target and to_column else None
        name = to.name if to else (to_column or "?")
        keys.append(ForeignKey(table.name, column, target.name if target else to_table, name))
    return tuple(keys)

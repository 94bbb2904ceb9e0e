"""Tables as text for an agent: descriptions with example values, or plain CREATE statements.

    singer (1,402 rows)
    Singer_ID INT primary key <- singer_in_concert.Singer_ID
    Country TEXT in ('France', 'Netherlands', 'United States')
    Stadium_ID INT -> stadium.Stadium_ID

`->` marks a reference to another table, and `<-` a reference from another table. If a column has
few distinct values, its line lists them as SQL literals. `in (...)` lists all of them. For a large
table, `such as ...` lists the values found in the first rows. Example values are shown only for
tables with more than `READ_AT_A_GLANCE` rows, since a single query shows all rows of a smaller
table. A description that exceeds the maximum length of an observation is truncated and ends with a
note on the omitted part.

`create_statements` is used in prompts without tools, and returns one line per table with types,
keys and references. The line of a view lists only its columns.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from sqlgym.database.database import Database
from sqlgym.database.render import MAX_CHARS
from sqlgym.database.schema import Column, Schema, Table
from sqlgym.database.sqlite_file import quoted
from toolgym.errors import ToolError

READ_AT_A_GLANCE = 20
"""Tables with at most this number of rows have no example values."""
FEW_TEXTS, FEW_NUMBERS = 8, 5
"""Maximum number of distinct values of a column that are listed."""
LONGEST_EXAMPLES = 100
"""Maximum total length of the example values of a column, in characters; longer lists are
omitted.
"""
LOOKED_AT = 20_000
"""Maximum number of rows, and of columns, that are searched for example values."""
COLUMNS_LOOKED_AT = 40
MANY_TABLES = 80
"""If there are at least this many tables, a list of tables contains only their names."""
_REFERRING = 6
_REMINDED = 5
_NAME = re.compile(r'"[^"]{1,200}"|`[^`]{1,200}`|\[[^\]]{1,200}\]|\w+')


def describe_table(table: Table, schema: Schema, database: Database | None = None) -> str:
    """Return the columns of one table with types, keys, references in both directions, and
    examples.

    Args:
        schema: The schema that contains the table; it may have additional references.
        database: Source of the row count and the examples; None omits both. The description is
            cached in the `Database`.
    """
    key = schema, table.name
    if database is not None and key in database.described:
        return database.described[key]
    rows = database.count(table.name) if database else None
    lines = [f"{table.name}{' view' if table.is_view else ''}{_row_count(rows)}"]
    lines += [_column(table, column, schema) for column in table.columns]
    if database and rows is not None and rows > READ_AT_A_GLANCE and not table.is_view:
        examples = _examples(table, database, rows)
        rich = [*lines[:1], *map(str.__add__, lines[1:], examples)]
        lines = rich if len("\n".join(rich)) < MAX_CHARS else lines
    text = "\n".join(_fitting(lines, "columns"))
    if database is not None:
        database.described[key] = text
    return text


def list_tables(schema: Schema, database: Database) -> str:
    """Return the tables of a database with their row counts; if there are very many, only their
    names.
    """
    if not schema.tables:
        return "The database has no tables."
    many = len(schema.tables) >= MANY_TABLES
    lines = [
        table.name + (" view" if table.is_view else _row_count(database.count(table.name)))
        for table in schema.tables[: 0 if many else None]
    ]
    return "\n".join(_fitting(lines or list(schema.names), "tables"))


def remind(text: str, schema: Schema, database: Database | None = None) -> str:
    """Return the columns of the tables that the text mentions, and the names of all tables.

    If the text mentions no table, the columns of all tables are returned.

    Args:
        text: The arguments of a call, which may be SQL; only the start is searched.
        schema: As for `describe_table`.
        database: As for `describe_table`.
    """
    found = map(schema.get, (text, *_NAME.findall(text[:MAX_CHARS])))
    named = list(dict.fromkeys(table for table in found if table is not None))
    lines = ["The columns:" if named else "The tables of the database:"]
    for table in named[:_REMINDED]:
        lines += describe_table(table, schema, database).split("\n")
    if named:
        lines.append(f"The tables of the database: {', '.join(schema.names[:MANY_TABLES])}")
    else:
        lines += map(_create_sql, schema.tables)
    return "\n".join(_fitting(lines, "lines"))


def _row_count(rows: int | None) -> str:
    return "" if rows is None else f" ({rows} row{'' if rows == 1 else 's'})"


def _column(table: Table, column: Column, schema: Schema) -> str:
    marks = [column.name if column.name.isidentifier() else quoted(column.name), column.type]
    marks += ["primary key"] if column.primary_key else []
    marks += [
        f"-> {key.to_table}.{key.to_column}"
        for key in table.foreign_keys
        if key.column.lower() == column.name.lower()
    ]
    referring = schema.referring(table.name, column.name)
    if referring:
        keys = ", ".join(f"{key.table}.{key.column}" for key in referring[:_REFERRING])
        more = len(referring) - _REFERRING
        marks.append(f"<- {keys}{f' and {more} more' if more > 0 else ''}")
    return " ".join(mark for mark in marks if mark)


def _examples(table: Table, database: Database, rows: int) -> list[str]:
    """Return the example values of each column as text with a leading space, or "" for none."""
    referring = {key.column.lower() for key in table.foreign_keys}
    texts: list[str] = []
    for column in table.columns:
        name, source = quoted(column.name), quoted(table.name)
        if rows > LOOKED_AT:
            source = f"(SELECT {name} FROM {source} LIMIT {LOOKED_AT})"
        sql = f"SELECT DISTINCT {name} FROM {source} WHERE {name} IS NOT NULL LIMIT {FEW_TEXTS + 1}"
        is_key = column.primary_key or column.name.lower() in referring
        text = ""
        if not is_key and len(texts) < COLUMNS_LOOKED_AT:
            with suppress(ToolError):  # a value is too long, or a module is missing
                text = _literals([row[0] for row in database.query(sql).rows])
        texts.append(text and (f" such as {text}" if rows > LOOKED_AT else f" in ({text})"))
    return texts


def _literals(values: list[Any]) -> str:
    """Return values as sorted SQL literals, or "" if there are too many or they are not plain."""
    texts = [v for v in values if isinstance(v, str) and v.isprintable() and "\ufffd" not in v]
    numbers = [v for v in values if isinstance(v, int)]
    if len(texts) == len(values) <= FEW_TEXTS:
        listed = ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))
    elif len(numbers) == len(values) <= FEW_NUMBERS:
        listed = ", ".join(map(str, sorted(numbers)))
    else:
        return ""
    return listed if len(listed) <= LONGEST_EXAMPLES else ""


def _fitting(lines: list[str], things: str) -> list[str]:
    """Return the lines that fit into an observation, and a note on the others."""
    if sum(len(line) + 1 for line in lines) <= MAX_CHARS + 1:
        return lines
    note = "... ({:,} more " + things + "; sqlite_master has their names)"
    shown: list[str] = []
    room = MAX_CHARS - len(note.format(len(lines))) - 1
    for line in lines:
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line[: MAX_CHARS // 2])
    return [*shown, note.format(len(lines) - len(shown))]


_WORDS = """
    ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CAST CHECK COLLATE COMMIT CONSTRAINT CREATE
    CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE DELETE DISTINCT DROP
    ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM FULL GROUP HAVING IN INDEX INNER INSERT INTERSECT
    INTO IS ISNULL JOIN LEFT LIMIT NATURAL NOT NOTHING NOTNULL NULL ON OR ORDER OUTER PRIMARY
    RAISE REFERENCES RETURNING RIGHT SELECT SET TABLE THEN TO TRANSACTION UNION UNIQUE UPDATE
    USING VALUES WHEN WHERE
"""
RESERVED = frozenset(_WORDS.split())
"""Words that SQLite accepts as names only in quotes."""


def create_statements(schema: Schema) -> str:
    """Return a CREATE line for every table and view of a schema, in order of creation."""
    return "\n".join(map(_create_sql, schema.tables))


def _create_sql(table: Table) -> str:
    keys = [column.name for column in table.columns if column.primary_key]
    parts = [_column_sql(table, column, alone=len(keys) == 1) for column in table.columns]
    if len(keys) > 1:
        parts.append(f"PRIMARY KEY ({', '.join(map(_name_sql, keys))})")
    kind = "VIEW" if table.is_view else "TABLE"
    return f"CREATE {kind} {_name_sql(table.name)} ({', '.join(parts)})"


def _column_sql(table: Table, column: Column, alone: bool) -> str:
    parts = [_name_sql(column.name), column.type]
    parts += ["PRIMARY KEY"] if column.primary_key and alone else []
    for key in table.foreign_keys:
        if key.column.lower() == column.name.lower():
            to_column = "" if key.to_column == "?" else f"({_name_sql(key.to_column)})"
            parts.append(f"REFERENCES {_name_sql(key.to_table)}{to_column}")
    return " ".join(part for part in parts if part)


def _name_sql(name: str) -> str:
    """Return a name as SQL, quoted if it is not a plain word."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in RESERVED
    return name if plain else quoted(name)

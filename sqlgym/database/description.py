"""Tables as text for an agent: descriptions with examples, or plain CREATE statements.

    singer (1,402 rows)
    Singer_ID INT primary key <- singer_in_concert.Singer_ID
    Country TEXT in ('France', 'Netherlands', 'United States')
    Stadium_ID INT -> stadium.Stadium_ID

`->` is a reference of this table, `<-` one to it. A column of few different values shows them, as
they stand in SQL: `in (...)` is all of them, `such as ...` those among the first rows of a large
table. Examples are for tables of more than `READ_AT_A_GLANCE` rows; a smaller one is read whole by
one query. A text too long for an observation ends with a note on what was left out.

`create_statements` is for a model that cannot ask: one line per table, with types, keys and
references and nothing else, so that a prompt holds much. The line of a view tells its columns only.
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
"""Rows of a table up to which no example values are shown."""
FEW_TEXTS, FEW_NUMBERS = 8, 5
"""So many different values are few."""
LONGEST_EXAMPLES = 100
"""Characters of all example values of one column together; a longer list is left out."""
LOOKED_AT = 20_000
"""Rows, from the first on, that are looked at for example values; so many columns, too:"""
COLUMNS_LOOKED_AT = 40
MANY_TABLES = 80
"""From so many tables on, a list of them tells their names only."""
_REFERRING = 6
_REMINDED = 5
_NAME = re.compile(r'"[^"]{1,200}"|`[^`]{1,200}`|\[[^\]]{1,200}\]|\w+')


def describe_table(table: Table, schema: Schema, database: Database | None = None) -> str:
    """Return the columns of one table with their types, keys, references both ways, and examples.

    Args:
        schema: What it is part of: a database's own, or that one with further references.
        database: Asked for rows and examples; the text is made once for it. Without it there are
            neither.
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
    """Return the tables of a database with their numbers of rows; of very many, the names only."""
    if not schema.tables:
        return "The database has no tables."
    many = len(schema.tables) >= MANY_TABLES
    lines = [
        table.name + (" view" if table.is_view else _row_count(database.count(table.name)))
        for table in schema.tables[: 0 if many else None]
    ]
    return "\n".join(_fitting(lines or list(schema.names), "tables"))


def remind(text: str, schema: Schema, database: Database | None = None) -> str:
    """Return the columns of the tables that a text names (of all if it names none), and all table
    names.

    Args:
        text: The arguments of a call, in SQL or not; only its start is searched.
        schema: As for `describe_table`, like `database`.
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
    """For each column the text of its values where they are few, behind a blank, or ""."""
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
            with suppress(ToolError):  # a value too long, a module that is not here
                text = _literals([row[0] for row in database.query(sql).rows])
        texts.append(text and (f" such as {text}" if rows > LOOKED_AT else f" in ({text})"))
    return texts


def _literals(values: list[Any]) -> str:
    """Few values as SQL literals, in order; "" where they are many, or no plain text or number."""
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
    """As many lines as fit into an observation, and a note on the others."""
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
"""Words that SQLite takes for no name unless they are quoted."""


def create_statements(schema: Schema) -> str:
    """Return all tables and views of a schema, one line each, in the order of their creation."""
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
    """Return a name as SQL has it; in quotes where it is no plain word."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in RESERVED
    return name if plain else quoted(name)

"""A schema as the CREATE statements that a model is shown when it cannot ask for it.

One line per table, with types, keys and references and nothing else, so that a prompt holds much:

    CREATE TABLE concert (concert_id INT PRIMARY KEY, stadium_id INT REFERENCES stadium(id))
    CREATE VIEW old_concerts (concert_id INT)

The lines of tables are SQL; that of a view tells its columns, not how it is made.
"""

from __future__ import annotations

from sqlgym.database.schema import Column, Schema, Table
from sqlgym.database.sqlite_file import quoted

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
    """All tables and views of a schema, one line each, in the order of their creation."""
    return "\n".join(map(_create, schema.tables))


def _create(table: Table) -> str:
    keys = [column.name for column in table.columns if column.primary_key]
    parts = [_column(table, column, alone=len(keys) == 1) for column in table.columns]
    if len(keys) > 1:
        parts.append(f"PRIMARY KEY ({', '.join(map(_name, keys))})")
    kind = "VIEW" if table.is_view else "TABLE"
    return f"CREATE {kind} {_name(table.name)} ({', '.join(parts)})"


def _column(table: Table, column: Column, alone: bool) -> str:
    parts = [_name(column.name), column.type]
    parts += ["PRIMARY KEY"] if column.primary_key and alone else []
    for key in table.foreign_keys:
        if key.column.lower() == column.name.lower():
            to_column = "" if key.to_column == "?" else f"({_name(key.to_column)})"
            parts.append(f"REFERENCES {_name(key.to_table)}{to_column}")
    return " ".join(part for part in parts if part)


def _name(name: str) -> str:
    """A name as SQL has it; in quotes where it is no plain word."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in RESERVED
    return name if plain else quoted(name)

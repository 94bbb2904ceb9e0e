"""A database as a `World`: its tables are looked at, once, in bounded time.

What cannot be used is left out with a reason and never stops the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlgym.database.database import Database
from sqlgym.database.schema import Table
from sqlgym.synthesis.reading import links, references
from sqlgym.synthesis.reading.entities import entity_of
from sqlgym.synthesis.reading.tables import LARGE, read_table
from sqlgym.synthesis.reading.world import World

MOST_TABLES = 60
"""Tables that are used, from the first on."""


def profile(database: Database, tables: Sequence[str] | None = None) -> World:
    """What questions can be about.

    Args:
        database: The open file.
        tables: The names of the tables to use; all, but for views, if None.
    """
    left_out: dict[str, str] = {}
    read = [
        found
        for table in _chosen(database, tables, left_out)
        if (found := read_table(database, table, left_out)) is not None
    ]
    if any(found.rows > LARGE for found in read):
        read = [replace(found, is_among_large=True) for found in read]
    kept = [found.table for found in read]
    known = references.declared(database, kept)
    guessed = list(references.inferred(database, kept, known))
    keys = [*known, *guessed]
    entities = links.with_distinct_nouns([entity_of(database, one, keys) for one in read], keys)
    found_links = links.links_of(database, entities, known, guessed)
    return World(tuple(entities), *links.finished(entities, found_links), left_out)


def _chosen(
    database: Database, tables: Sequence[str] | None, left_out: dict[str, str]
) -> list[Table]:
    every = database.schema.tables
    if tables is not None:
        wanted = {database.schema.find(name).name for name in tables}
        for table in every:
            if table.name not in wanted:
                left_out[table.name] = "It is not among the tables that were asked for."
        return [table for table in every if table.name in wanted][:MOST_TABLES]
    chosen: list[Table] = []
    for table in every:
        if table.is_view:
            left_out[table.name] = "It is a view: its rows are those of tables."
        elif len(chosen) >= MOST_TABLES:
            left_out[table.name] = f"Only the first {MOST_TABLES} tables are used."
        else:
            chosen.append(table)
    return chosen

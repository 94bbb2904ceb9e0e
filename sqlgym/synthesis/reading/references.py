"""Which columns refer to which tables, where the file does not say so.

A name proposes and the values decide. `singer_id` proposes `singer.singer_id` or `singer.id`,
`manager_id` a table of people, `campus` the table `Campuses`; kept is what refers to a unique
column that holds every value, up to `CHECKED` of them. Tables are compared by their singular words.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, ForeignKey, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.language import english, lexicon
from sqlgym.synthesis.language.naming import words_of
from toolgym.errors import ToolError

CHECKED = 500
"""Different values of a column that are looked up in the table that it may refer to."""
_ENDINGS = (("ID",), ("code",), ("number",), ("key",), ("reference",), ("ref",))
_CHIEFS = frozenset(
    ["manager", "supervisor", "boss", "head", "mentor", "advisor", "adviser", "chief"]
)
_STAFF = ("employee", "staff", "person", "teacher", "professor", "faculty", "instructor")


def declared(database: Database, tables: list[Table]) -> list[ForeignKey]:
    """The declared references to a unique column of one of these tables."""
    names = {table.name: table for table in tables}
    found = []
    for table in tables:
        for key in table.foreign_keys:
            target = names.get(key.to_table)
            if target is None or not target.column(key.to_column) or not table.column(key.column):
                continue
            if is_unique(database, target, key.to_column):
                found.append(key)
    return found


def inferred(
    database: Database, tables: list[Table], known: list[ForeignKey]
) -> Iterator[ForeignKey]:
    """References that names propose and values confirm, in the order of the tables."""
    taken = {(key.table, key.column) for key in known}
    pairs = {(key.table, key.to_table) for key in known}
    targets = [(table, key) for table in tables for key in _keys(database, table)]
    for table in tables:
        for column in table.columns:
            if (table.name, column.name) in taken:
                continue
            for target, key in targets:
                if not _proposes(table, column, target, key):
                    continue
                mutual = (target.name, table.name) in pairs and column.primary_key
                if not mutual and _holds(database, table, column, target, key):
                    pairs.add((table.name, target.name))
                    yield ForeignKey(table.name, column.name, target.name, key.name)
                    break


def is_unique(database: Database, table: Table, column: str) -> bool:
    """Whether no two rows share a value of a column; False where that takes too long to tell."""
    keys = [c.name for c in table.columns if c.primary_key]
    if keys == [column]:
        return True
    name = quoted(column)
    try:
        (row,) = database.query(
            f"SELECT count({name}) - count(DISTINCT {name}), count({name})"
            f" FROM {quoted(table.name)}"
        ).rows
    except ToolError:
        return False
    return bool(row[0] == 0 and row[1] > 0)


def table_words(table: str) -> tuple[str, ...]:
    """The words of a table's name, the last one in the singular, without "tbl" and the like."""
    words = list(words_of(table))
    while len(words) > 1 and words[0] in lexicon.ENTITY_PREFIXES:
        words.pop(0)
    while len(words) > 1 and words[-1] in lexicon.ENTITY_SUFFIXES | {"data", "info"}:
        words.pop()
    if words:
        words[-1] = english.singular(words[-1])
    return tuple(words)


def _keys(database: Database, table: Table) -> list[Column]:
    """Columns that may be referred to: the primary key, or else the first that looks like one."""
    primary = [column for column in table.columns if column.primary_key]
    if len(primary) == 1:
        return primary
    if primary:
        return []
    own = table_words(table.name)
    for column in table.columns[:3]:
        words = words_of(column.name)
        is_own = len(words) == 1 or words[:-1] == own[-len(words) + 1 :]
        if words[-1:] in _ENDINGS and is_own and is_unique(database, table, column.name):
            return [column]
    return []


def _proposes(table: Table, column: Column, target: Table, key: Column) -> bool:
    words, key_words = words_of(column.name), words_of(key.name)
    own = table_words(target.name)
    if not words:
        return False
    stem = words[:-1] if words[-1:] in _ENDINGS else words
    stem = (*stem[:-1], english.singular(stem[-1])) if stem else ()
    if table.name == target.name:
        chief = bool(stem) and (stem[-1] in _CHIEFS or stem[0] == "parent")
        return chief and column.name != key.name and words[-1] == "ID"
    if words == key_words and len(words) > 1:
        return not column.primary_key or not _is_own(table, column)
    if stem and own and stem[-len(own) :] == own:
        return words[-1:] in _ENDINGS or column.type.upper() == key.type.upper()
    chief = bool(stem) and stem[-1] in _CHIEFS and words[-1] == "ID"
    return chief and bool(own) and own[-1] in _STAFF


def _is_own(table: Table, column: Column) -> bool:
    """Whether a primary key is named after its own table."""
    own, words = table_words(table.name), words_of(column.name)
    return words[:-1] == own[-len(words) + 1 :] or len(words) == 1


def _holds(database: Database, table: Table, column: Column, target: Table, key: Column) -> bool:
    """Whether every value, of those looked at, is one of the key's, and there are some."""
    name, source = quoted(column.name), quoted(table.name)
    sql = (
        f"SELECT count(*), count(k) FROM (SELECT DISTINCT {name} AS v FROM {source}"
        f" WHERE {name} IS NOT NULL LIMIT {CHECKED}) LEFT JOIN"
        f" (SELECT {quoted(key.name)} AS k FROM {quoted(target.name)}) ON v = k"
    )
    try:
        ((looked_at, found),) = database.query(sql).rows
    except ToolError:
        return False
    return bool(looked_at == found and looked_at > (0 if table.name != target.name else 1))

"""Profiling: reads a database into a `World` of entities with nouns, columns with roles, and links.

A table of up to `READ_WHOLE` rows is read completely. From a larger table, a sample of rows spread
over the entire table is read. SQLite counts the rows, NULLs and distinct values of a large table if
the budget of a query allows it. Unusable tables are omitted with a reason. Columns and tables whose
names are not readable as words are omitted too, unless too few others remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, ForeignKey, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis import references, roles
from sqlgym.synthesis.lexicon import abbreviates, is_readable, word_set, words_of
from sqlgym.synthesis.nouns import (
    Noun,
    column_noun,
    quoted_column,
    quoted_table,
    table_noun,
    table_words,
)
from sqlgym.synthesis.roles import Role
from sqlgym.synthesis.schema import Entity, Field, Label, World
from toolgym.errors import ToolError

READ_WHOLE = 2_000
"""Maximum number of rows of a table that is read completely. From a larger table, about this many
rows are sampled.
"""
MOST_COLUMNS = 60
"""Maximum number of columns that are read from a table, starting with the first."""
MOST_TABLES = 60
"""Maximum number of tables that are read, starting with the first."""
ENOUGH = 4
"""Minimum number of readable columns with facts for all unreadable names to be omitted."""
_FACTS = (Role.QUANTITY, Role.YEAR, Role.DATE, Role.CATEGORY, Role.NAME, Role.TEXT)


@dataclass(frozen=True)
class TableRead:
    """A table with its row count, and its sampled values, NULLs and distinct values by column."""

    table: Table
    rows: int
    values: dict[str, tuple[Any, ...]]
    nulls: dict[str, int]
    distinct: dict[str, int]


def profile(database: Database, tables: Sequence[str] | None = None) -> World:
    """Profile a database.

    Args:
        database: The database to read.
        tables: Names of the tables to use; None means all except views.

    Raises:
        ToolError: A name in `tables` does not exist.
        EnvironmentFault: The file cannot be read.
    """
    left_out: dict[str, str] = {}
    chosen = _chosen(database, tables, left_out)
    reads = [read for table in chosen if (read := _read(database, table, left_out))]
    usable = [read.table for read in reads]
    declared = references.declared_keys(database, usable)
    inferred = list(references.inferred_keys(database, usable, declared))
    keys = [*declared, *inferred]
    names = [name for table in chosen for name in (table.name, *(c.name for c in table.columns))]
    only_listed = abbreviates(names)
    entities = [_entity(database, read, keys, only_listed) for read in reads]
    entities = references.with_links_marked(entities, keys)
    entities = _readable(entities) or entities
    for name in {read.table.name for read in reads} - {entity.name for entity in entities}:
        left_out[name] = "Its name cannot be read as words."
    links = references.links_of(database, entities, declared, inferred)
    bridges = references.bridges_of(entities, links)
    return World(tuple(entities), links, bridges, left_out)


def _chosen(
    database: Database, names: Sequence[str] | None, left_out: dict[str, str]
) -> list[Table]:
    named = None if names is None else {database.schema.find(name).name for name in names}
    chosen: list[Table] = []
    for table in database.schema.tables:
        if named is not None and table.name not in named:
            left_out[table.name] = "It is not one of the requested tables."
        elif named is None and table.is_view:
            left_out[table.name] = "It is a view, whose rows are those of tables."
        elif len(chosen) == MOST_TABLES:
            left_out[table.name] = f"Only the first {MOST_TABLES} tables are used."
        else:
            chosen.append(table)
    return chosen


def _read(database: Database, table: Table, left_out: dict[str, str]) -> TableRead | None:
    rows = database.count(table.name)
    if rows is None:
        left_out[table.name] = "It cannot be read within the budget of a query."
    elif rows == 0:
        left_out[table.name] = "It is empty."
    elif values := _sample(database, table, table.columns[:MOST_COLUMNS], rows):
        return TableRead(table, rows, values, *_counts(database, table, values, rows))
    else:
        left_out[table.name] = "None of its values can be read within the limits of a query."
    return None


def _sample(
    database: Database, table: Table, columns: Sequence[Column], rows: int
) -> dict[str, tuple[Any, ...]]:
    """Return the values of all rows, or of rows spread over the table, by column.

    Columns whose values exceed the limits of a query are omitted.
    """
    if not columns:
        return {}
    source = f"FROM {quoted(table.name)}{_spread(database, table, rows)} LIMIT {READ_WHOLE}"
    try:
        result = database.query(f"SELECT {', '.join(quoted(c.name) for c in columns)} {source}")
        if not result.truncated:
            cells = zip(*result.rows, strict=True)
            return {c.name: values for c, values in zip(columns, cells, strict=True)}
    except ToolError:
        pass
    if len(columns) == 1:
        return {}
    samples = [_sample(database, table, [column], rows) for column in columns]
    return {name: values for sample in samples for name, values in sample.items()}


def _spread(database: Database, table: Table, rows: int) -> str:
    """Return a WHERE clause that selects rows spread over a large table with row numbers."""
    if rows <= READ_WHOLE:
        return ""
    name = quoted(table.name)
    try:
        ((first, last),) = database.query(f"SELECT min(rowid), max(rowid) FROM {name}").rows
    except ToolError:
        return ""
    if not isinstance(first, int) or not isinstance(last, int):
        return ""
    step = max((last - first) // READ_WHOLE, 1)
    return f" WHERE rowid IN ({', '.join(map(str, range(first, last + 1, step)))})"


def _counts(
    database: Database, table: Table, sample: dict[str, tuple[Any, ...]], rows: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of NULLs and distinct values by column, exact where they can be
    counted.
    """
    nulls = {name: cells.count(None) for name, cells in sample.items()}
    distinct = {name: len(set(cells) - {None}) for name, cells in sample.items()}
    if len(next(iter(sample.values()))) < rows:
        for name in sample:
            column, source = quoted(name), quoted(table.name)
            present = references.numbers_of(database, f"SELECT count({column}) FROM {source}")
            different = references.numbers_of(
                database, f"SELECT count(DISTINCT {column}) FROM {source}"
            )
            nulls[name] = rows - present[0] if present else nulls[name]
            distinct[name] = different[0] if different else distinct[name]
    return nulls, distinct


def _entity(
    database: Database, read: TableRead, keys: Sequence[ForeignKey], only_listed: bool
) -> Entity:
    """Return the entity of a table that was read.

    Args:
        keys: The references of all tables.
        only_listed: Accept only words of the lexicon in names.
    """
    table, own = read.table, table_words(read.table.name)
    primary = [column.name for column in table.columns if column.primary_key]
    first = table.columns[0].name
    if not primary and references.is_key_name(first, table):
        primary = [first] if read.distinct.get(first) == read.rows else []
    refers = {key.column for key in keys if key.table == table.name}
    targets = sorted({(key.to_table, key.to_column) for key in keys if key.to_table != table.name})
    fields = []
    for name, cells in read.values.items():
        words, values = words_of(name), tuple(value for value in cells if value is not None)
        is_own = bool(own) and words == own[-len(words) :]
        if name in refers or [name] == primary:
            role = Role.REFERENCE if name in refers else Role.KEY
        else:
            present = read.rows - read.nulls[name]
            role = roles.role_of(name, values, read.distinct[name], present, is_own)
        if role is Role.QUANTITY and not roles.is_measure(name):
            may_refer = (references.holds(database, table.name, name, *key, 5) for key in targets)
            role = Role.CODE if any(may_refer) else role  # such as `country.capital`
        is_number = role in (Role.QUANTITY, Role.YEAR)
        is_whole = is_number and all(float(value).is_integer() for value in values)
        kind = {Role.DATE: "date", Role.YEAR: "year"}.get(role, "")
        kind = ("count" if is_whole else "number") if role is Role.QUANTITY else kind
        noun = quoted_column(name)
        if is_own and (role is Role.NAME or (role is Role.KEY and roles.are_names(values))):
            noun = Noun("name", "names")  # `campus` in `campuses`
        elif is_own and role is Role.KEY:
            noun = Noun("code", "codes")
        elif role is Role.KEY and roles.is_clipped_id(name):
            noun = Noun("ID", "IDs")
        elif is_readable(name, only_listed):
            noun = column_noun(name, () if role is Role.REFERENCE else own, kind)
        elif role is Role.KEY and words[-1:] == ("ID",):
            noun = Noun("ID", "IDs")
        if role is Role.QUANTITY and is_whole and not noun.is_readable:
            role = Role.CODE
        fields.append(
            Field(
                table.name,
                name,
                role,
                noun,
                read.nulls[name],
                read.distinct[name],
                read.distinct[name] == read.rows,
                _values(role, values),
                any(map(roles.is_blank, values)),
                is_number and isinstance(values[0], str),
                is_whole,
                role is Role.DATE and any(len(value) > 10 for value in values),
            )
        )
    fields = _without_twins(fields)
    key = next((field for field in fields if [field.name] == primary), None)
    noun = quoted_table(table.name)
    if is_readable(" ".join(own), only_listed):
        noun = table_noun(table.name, any(field.role is Role.NAME for field in fields))
        counted = [field.noun.counts.rpartition(" ")[2] for field in fields]
        totals = [{"total", own[-1]} <= set(words_of(name)) for name in read.values]
        if noun.many.rpartition(" ")[2] in counted or any(totals):  # `degrees.degrees`
            noun = Noun(f"{noun.one} record", f"{noun.one} records")
    entity = Entity(table.name, noun, read.rows, tuple(fields), key, None)
    label = _label(database, entity)
    if label is not None:
        rows = zip(*(read.values[field.name] for field in label.fields), strict=True)
        label = replace(label, rows=tuple(rows)[:READ_WHOLE])
    return replace(entity, label=label)


def _values(role: Role, values: tuple[Any, ...]) -> tuple[Any, ...]:
    values = tuple(value for value in values if not roles.is_blank(value))
    if role in (Role.CATEGORY, Role.CODE, Role.NAME, Role.TEXT):
        counts = Counter(values)
        ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
        return tuple(ranked[: 4 * roles.FEW])
    if role in (Role.QUANTITY, Role.YEAR):
        return tuple(sorted(values, key=float))
    return tuple(sorted(values)) if role is Role.DATE else ()


def _without_twins(fields: list[Field]) -> list[Field]:
    """Give fields that share a noun their full or quoted names instead."""
    for rename in (lambda name: column_noun(name), quoted_column):
        counts = Counter(field.noun.one.lower() for field in fields)
        fields = [
            replace(field, noun=rename(field.name)) if counts[field.noun.one.lower()] > 1 else field
            for field in fields
        ]
    return fields


_NO_LABEL = word_set("""
    description comment comments detail details note notes text address password URL date time
    location number phone email code country city town state county region status type
""")


def _label(database: Database, entity: Entity) -> Label | None:
    """Return the columns that identify a row: a unique name, a unique short text, or the key."""
    nouns = {field.noun.one: field for field in entity.fields}
    first, last = nouns.get("first name"), nouns.get("last name") or nouns.get("surname")
    if first and last and first.is_full and last.is_full:
        pair = f"{quoted(first.name)}, {quoted(last.name)} FROM {quoted(entity.name)}"
        sql = f"SELECT count(*) FROM (SELECT DISTINCT {pair})"
        if references.numbers_of(database, sql) == (entity.rows,):
            return Label((first, last), True)
    for field in entity.fields:
        words = field.noun.one.split(" ")
        is_own = words in (["name"], ["title"]) or words[0] in ("full", "common", "official")
        is_own = is_own or entity.noun.one.endswith(field.noun.one)
        if field.role is Role.NAME and field.is_full and field.is_unique and is_own:
            return Label((field,), True)
    for field in entity.fields:
        is_text = field.role in (Role.TEXT, Role.NAME) and field.noun.is_readable
        short = all(len(str(v)) <= roles.LONGEST and roles.is_typable(v) for v in field.values)
        is_other = set(field.noun.one.split(" ")) & (_NO_LABEL | {"first", "last", "middle"})
        if is_text and short and field.is_full and field.is_unique and not is_other:
            return Label((field,), False)
    if entity.key is not None and entity.key.is_unique and not entity.key.nulls:
        return Label((entity.key,), False)
    codes = [f for f in entity.fields if f.role is Role.CODE and f.is_unique and not f.nulls]
    return Label((codes[0],), False) if codes else None


def _readable(entities: list[Entity]) -> list[Entity]:
    """Return the entities without unreadable names, or none if too few facts remain."""
    kept = [entity for entity in entities if entity.noun.is_readable or entity.is_link]
    said = [f for e in kept if e.noun.is_readable for f in e.fields if f.noun.is_readable]
    facts = [field for field in said if field.role in _FACTS]
    if len(facts) < ENOUGH:
        return []
    needed = (Role.KEY, Role.REFERENCE)
    return [
        replace(
            entity,
            fields=tuple(f for f in entity.fields if f.noun.is_readable or f.role in needed),
            label=None
            if entity.label and not all(f.noun.is_readable for f in entity.label.fields)
            else entity.label,
        )
        for entity in kept
    ]

"""The profile of a database as a `World`: entities with nouns, columns with roles, keys and labels.

Its tables are looked at once, in bounded time. Of a table of up to `READ_WHOLE` rows everything is
read; of a larger one a sample of rows from all over it, while the counts (rows, NULLs, different
values) are SQLite's own wherever its budget allows. What cannot be used is left out with a reason
and never stops the others. Columns whose nouns would be the same are told apart by their whole
names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, ForeignKey, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis import english, lexicon, references, roles
from sqlgym.synthesis.flags import flag_of
from sqlgym.synthesis.nouns import Noun, column_noun, quoted_column, table_noun
from sqlgym.synthesis.parts import words_of
from sqlgym.synthesis.roles import Sample
from sqlgym.synthesis.schema import LARGE, Entity, Field, Label, Role, World
from toolgym.errors import ToolError

READ_WHOLE = 2_000
"""Rows up to which a table is read whole; of others, about so many rows are looked at."""
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


def read_table(
    database: Database, table: Table, left_out: dict[str, str], small: Database | None = None
) -> TableRead | None:
    """The values of a table; None, with a reason in `left_out`, if it cannot be used.

    Args:
        small: Holds some rows of each table; the values of large ones are taken from there.
    """
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
        if small is not None and rows > READ_WHOLE:
            sample = _copied(small, table, tuple(sample)) or sample
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


def _copied(small: Database, table: Table, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """The values of rows from all over a table of a small copy."""
    rows = small.count(table.name) or 0
    columns = ", ".join(map(quoted, names))
    numbered = f'SELECT *, row_number() OVER () AS "toolgym place" FROM {quoted(table.name)}'
    step = max(rows // READ_WHOLE, 1)
    sql = (
        f'SELECT {columns} FROM ({numbered}) WHERE "toolgym place" % {step} = 0 LIMIT {READ_WHOLE}'
    )
    try:
        result = small.query(sql)
    except ToolError:
        return {}
    if result.truncated or not result.rows:
        return {}
    return dict(zip(names, zip(*result.rows, strict=True), strict=True))


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


# What the rows of a table are called by in an answer: a name if it is unique, else the key.
#
# First and last name count as one name. A label never has a NULL and never two rows the same, so an
# answer that gives it is well defined.

_LAST_NAMES = ("last name", "surname", "family name")
_IDENTIFIERS = frozenset(["ID", "code", "number", "key"])


def is_key_name(column: str, table_words: tuple[str, ...]) -> bool:
    """Whether a column is named like the key of its table: `id`, `singer_id`."""
    words = words_of(column)
    if not words or words[-1] not in _IDENTIFIERS:
        return False
    return len(words) == 1 or words[:-1] == table_words[-len(words) + 1 :]


def label_of(database: Database, entity: Entity) -> Label | None:
    """The label of a table's rows; None if they cannot be told apart."""
    full = _full_name(entity)
    if full and _is_unique_together(database, entity, full):
        return Label(full, True)
    names = [f for f in entity.fields if f.role is Role.NAME and f.is_full]
    own = [field for field in names if _is_own(field, entity) and field.is_unique]
    if own:
        return Label((own[0],), True)
    if not full and len(names) == 1 and names[0].is_unique and not _is_of_another(names[0]):
        return Label((names[0],), False)
    texts = [field for field in entity.fields if field.role is Role.TEXT and _says_what(field)]
    if texts and not names:
        return Label((texts[0],), False)
    key = entity.key
    if key is not None and key.is_unique and not key.nulls:
        return Label((key,), False)
    unique = [f for f in entity.fields if f.role is Role.CODE and f.is_unique and not f.nulls]
    return Label((unique[0],), False) if unique else None


def _is_own(field: Field, entity: Entity) -> bool:
    """Whether a name is that of the row, not of something else in it (`manager_name`)."""
    words = field.noun.one.split(" ")
    plain = len(words) == 1 and words[0] in ("name", "title")
    of_table = entity.noun.one.endswith(field.noun.one)
    return plain or of_table or words[0] in ("full", "common", "official", "display")


def _is_of_another(field: Field) -> bool:
    words = field.noun.one.split(" ")
    return words[0] in lexicon.PERSONS or words[0] in ("first", "last", "middle", "user", "login")


def _says_what(field: Field) -> bool:
    """Whether a text is one short line, different in each row and no address or number."""
    clean = field.is_full and field.is_unique
    words = set(field.noun.one.split(" "))
    return (
        clean
        and field.noun.is_readable
        and not words & roles.NO_LABEL
        and all(len(value) <= 40 and roles.is_typable(value) for value in field.values)
    )


def _full_name(entity: Entity) -> tuple[Field, Field] | None:
    nouns = {field.noun.one: field for field in entity.fields}
    first = nouns.get("first name") or nouns.get("given name")
    last = next((nouns[name] for name in _LAST_NAMES if name in nouns), None)
    if first is None or last is None or first.nulls or last.nulls:
        return None
    both = (first, last)
    if any(f.has_blanks or any(map(roles.is_unclean, map(str, f.values))) for f in both):
        return None
    return both


def _is_unique_together(database: Database, entity: Entity, fields: tuple[Field, ...]) -> bool:
    names = ", ".join(quoted(field.name) for field in fields)
    source = quoted(entity.name)
    try:
        twice = database.query(
            f"SELECT count(*) FROM (SELECT 1 FROM {source} GROUP BY {names} HAVING count(*) > 1)"
        )
    except ToolError:
        return False
    return bool(twice.rows[0][0] == 0)


def entity_of(database: Database, read: TableRead, keys: list[ForeignKey]) -> Entity:
    """The entity of a table that was read."""
    words = references.table_words(read.table.name)
    refers = {key.column for key in keys if key.table == read.table.name}
    primary = [column.name for column in read.table.columns if column.primary_key]
    samples = [
        _column_sample(column, read, primary, refers, words)
        for column in read.table.columns
        if column.name in read.values
    ]
    fields = _without_twins([_field(read.table.name, sample, read) for sample in samples])
    fields = _graded(fields, words)
    key = next((f for f in fields if [f.name] == primary), None) or next(
        (f for f in fields if f.role is Role.KEY and f.is_unique), None
    )
    name, noun = read.table.name, _row_noun(read.table.name, words, fields)
    entity = Entity(name, noun, read.rows, tuple(fields), key, None, read.first_row)
    label = label_of(database, entity)
    if label is not None:
        cells = [read.values[field.name] for field in label.fields]
        label = replace(label, rows=tuple(zip(*cells, strict=True))[:READ_WHOLE])
    return replace(entity, label=label)


_OF_PEOPLE = frozenset(["sex", "gender", "birth", "age", "salary"])


def _row_noun(table: str, words: tuple[str, ...], fields: list[Field]) -> Noun:
    noun = table_noun(table, any(field.role is Role.NAME for field in fields))
    if noun.is_readable and _is_measured(words, fields):
        return Noun(f"{noun.one} record", f"{noun.one} records")
    is_named = any(field.role is Role.NAME for field in fields)
    if words == ("faculty",) and is_named and not {f.noun.last for f in fields} & _OF_PEOPLE:
        return Noun("faculty", "faculties")  # a part of a university
    return noun


def _is_measured(words: tuple[str, ...], fields: list[Field]) -> bool:
    """Whether a row holds a number of what its table is named after: `degrees.degrees`.

    Then a row is not a degree but a record, and counting rows is not counting degrees.
    """
    if not words:
        return False
    many = english.plural(words[-1])
    measures = [field.noun for field in fields if field.role is Role.QUANTITY]
    heads = [f for f in fields if f.role is Role.CODE and words_of(f.name) == words]
    if heads and words[-1] in lexicon.GROUPS:
        return True  # a number of people that is named after them
    return any(
        noun.counts.split(" ")[-1:] == [many]
        or ("total" in noun.one and {words[-1], many} & set(noun.one.split(" ")))
        for noun in measures
    )


def _column_sample(
    column: Column, read: TableRead, primary: list[str], refers: set[str], words: tuple[str, ...]
) -> Sample:
    name = column.name
    cells = tuple(value for value in read.values[name] if value is not None)
    is_key = [name] == primary or (not primary and name in _looks_like_key(read, words))
    counts = read.rows, read.nulls[name], read.distinct[name]
    return Sample(name, column.type, *counts, cells, is_key, name in refers, words)


def _looks_like_key(read: TableRead, words: tuple[str, ...]) -> list[str]:
    """Of a table without a primary key, a first column that is named like one and is unique."""
    first = read.table.columns[0].name
    return [first] if is_key_name(first, words) and read.distinct.get(first) == read.rows else []


def _field(table: str, sample: Sample, read: TableRead) -> Field:
    role = roles.role_of(sample)
    values = sample.values
    texts = bool(values) and isinstance(values[0], str)
    is_number = role in (Role.QUANTITY, Role.YEAR)
    numbers = [float(value) for value in values] if is_number else []
    return Field(
        table,
        sample.name,
        role,
        _noun(sample, role),
        sample.nulls,
        sample.distinct,
        sample.distinct == sample.rows,
        _kept_values(role, sample),
        any(map(roles.is_blank, values)),
        is_number and texts,
        all(number.is_integer() for number in numbers),
        role is Role.DATE and any(len(value) > 10 for value in values),
        read.is_among_large,
    )


_KINDS = {
    Role.DATE: "date",
    Role.YEAR: "year",
    Role.QUANTITY: "figure",
    Role.CATEGORY: "value",
    Role.TEXT: "value",
    Role.NAME: "value",
}
"""What a column of a role holds, for names that are no nouns."""


def _noun(sample: Sample, role: Role) -> Noun:
    table = () if role is Role.REFERENCE else sample.table_words
    noun = column_noun(
        sample.name, table, role is Role.QUANTITY, role is Role.KEY, _KINDS.get(role, "")
    )
    if role is Role.REFERENCE and noun.is_readable and noun.last not in _IDENTIFIERS:
        return Noun(f"{noun.one} ID", f"{noun.one} IDs")
    if (
        role is Role.NAME
        and sample.table_words
        and noun.one == " ".join(sample.table_words)[-len(noun.one) :]
    ):
        return Noun("name", "names")  # the `campus` of `campuses` is its name
    if role is Role.FLAG:
        return replace(noun, is_odd=flag_of(sample.name) is None)
    return _year_noun(sample, noun) if role is Role.YEAR else noun


def _year_noun(sample: Sample, noun: Noun) -> Noun:
    """Of `start_from` and `birth`, which hold years: the start year."""
    words = [w for w in words_of(sample.name) if w not in lexicon.LINK_WORDS and w != "from"]
    if words == ["since"]:
        return replace(noun, one="start year", many="start years", is_readable=True, is_odd=False)
    if "year" in noun.one.split(" ") or not noun.is_readable or not words:
        return noun
    one = f"{' '.join(words)} year"
    return replace(noun, one=one, many=f"{one}s")


def _kept_values(role: Role, sample: Sample) -> tuple[Any, ...]:
    """Of a category the values that occur most, of a flag yes and no, else all in their order."""
    if role is Role.FLAG:
        return roles.flag_values(sample) or ()
    values = [value for value in sample.values if not roles.is_blank(value)]
    if role in (Role.CATEGORY, Role.CODE, Role.NAME, Role.TEXT):
        counts = Counter(values)
        ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
        return tuple(ranked[: 4 * roles.FEW])
    if role is Role.QUANTITY or role is Role.YEAR:
        return tuple(sorted(values, key=float))
    return tuple(sorted(values)) if role is Role.DATE else ()


def _without_twins(fields: list[Field]) -> list[Field]:
    """Fields whose nouns collide are spoken of by the names of their columns."""
    counts = Counter(field.noun.one.lower() for field in fields)
    result = []
    for field in fields:
        if counts[field.noun.one.lower()] > 1:
            kind = _KINDS.get(field.role, "")
            full = column_noun(field.name, (), field.role is Role.QUANTITY, kind=kind)
            field = replace(field, noun=full)
        result.append(field)
    counts = Counter(field.noun.one.lower() for field in result)
    return [
        replace(field, noun=quoted_column(field.name))
        if counts[field.noun.one.lower()] > 1
        else field
        for field in result
    ]


def _graded(fields: list[Field], table: tuple[str, ...]) -> list[Field]:
    """Fields with the adjectives that fit them, where no other of the table has the same."""
    row = table[-1] if table else ""
    kinds = [_quantity_of(field, row) for field in fields]
    return [
        replace(field, noun=replace(field.noun, graded=kind))
        if kind in lexicon.SUPERLATIVES
        and kinds.count(kind) == 1
        and not (kind == "height" and "length" in kinds)  # both make things shorter
        else field
        for field, kind in zip(fields, kinds, strict=True)
    ]


def _quantity_of(field: Field, row: str) -> str:
    """What is measured, as far as it makes rows longer or heavier: a route by its distance."""
    noun = field.noun
    if field.role is not Role.QUANTITY or noun.one not in (noun.last, f"{row} {noun.last}"):
        return ""
    if noun.last == "duration" or (noun.last == "distance" and row in lexicon.PATHS):
        return "length"
    return noun.last


MOST_TABLES = 60
"""Tables that are used, from the first on."""


def profile(
    database: Database, tables: Sequence[str] | None = None, small: Database | None = None
) -> World:
    """The profile of a database: all that questions can be about.

    Args:
        tables: The names of the tables to use; all, but for views, if None.
        small: Holds some rows of each table; the values of large ones are taken from there.
    """
    left_out: dict[str, str] = {}
    read = [
        one
        for table in _chosen(database, tables, left_out)
        if (one := read_table(database, table, left_out, small)) is not None
    ]
    if any(one.rows > LARGE for one in read):
        read = [replace(one, is_among_large=True) for one in read]
    usable = [one.table for one in read]
    declared = references.declared_keys(database, usable)
    inferred = list(references.inferred_keys(database, usable, declared))
    keys = [*declared, *inferred]
    entities = references.with_distinct_nouns(
        [entity_of(database, one, keys) for one in read], keys
    )
    links = references.links_of(database, entities, declared, inferred)
    return World(tuple(entities), *references.distinct_links(entities, links), left_out)


def _chosen(
    database: Database, tables: Sequence[str] | None, left_out: dict[str, str]
) -> list[Table]:
    every = database.schema.tables
    if tables is not None:
        names = {database.schema.find(name).name for name in tables}
        for table in every:
            if table.name not in names:
                left_out[table.name] = "It is not among the tables that were asked for."
        return [table for table in every if table.name in names][:MOST_TABLES]
    chosen: list[Table] = []
    for table in every:
        if table.is_view:
            left_out[table.name] = "It is a view: its rows are those of tables."
        elif len(chosen) >= MOST_TABLES:
            left_out[table.name] = f"Only the first {MOST_TABLES} tables are used."
        else:
            chosen.append(table)
    return chosen

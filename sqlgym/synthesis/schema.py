"""The parts of a database that questions use: entities with nouns, columns with roles, and links.

`profiling.profile` creates these objects, and the templates read them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.description import RESERVED
from sqlgym.database.parsing import parse
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.lexicon import PERSONS, word_set
from sqlgym.synthesis.nouns import Noun
from sqlgym.synthesis.roles import Role
from toolgym.lazy import lazy

__all__ = ["Bridge", "Entity", "Field", "Label", "Link", "Noun", "Role", "World"]

LARGE = 50_000
"""Number of rows above which a table is large. Large tables are skipped by templates that read a
table repeatedly.
"""


@dataclass(frozen=True)
class Field:
    """A column.

    Attributes:
        nulls: Number of rows without a value.
        distinct: Number of distinct values.
        is_unique: Whether no value occurs twice.
        values: Values for questions. Strings are sorted by frequency, and numbers and dates in
            ascending order.
        has_blanks: Whether some values are empty strings or words such as "N/A".
        as_number: Whether numbers are stored as text and compared with a CAST.
        is_whole: Whether all numbers are whole.
        has_time: Whether dates have a time of day.
    """

    table: str
    name: str
    role: Role
    noun: Noun
    nulls: int = 0
    distinct: int = 0
    is_unique: bool = False
    values: tuple[Any, ...] = ()
    has_blanks: bool = False
    as_number: bool = False
    is_whole: bool = True
    has_time: bool = False

    @property
    def shown(self) -> Noun:
        """The noun in questions that ask for values of the column: "closing date and time"."""
        noun = self.noun
        if not self.has_time or not noun.is_readable:
            return noun
        one = re.sub(r"\bdate\b", "date and time", noun.one)
        return replace(noun, one=one, many=re.sub(r"\bdates\b", "dates and times", noun.many))

    @property
    def is_full(self) -> bool:
        """Whether every row has a value in this column."""
        return not self.nulls and not self.has_blanks

    @lazy
    def numbers(self) -> tuple[float, ...]:
        """Return the values of the column as numbers, in ascending order."""
        return tuple(float(value) for value in self.values)

    @lazy
    def distinct_numbers(self) -> tuple[float, ...]:
        """Return the distinct values of the column as numbers, in ascending order."""
        return tuple(sorted(set(self.numbers)))

    @lazy
    def years(self) -> tuple[str, ...]:
        """Return the years of the dates in the column, in ascending order."""
        return tuple(sorted({value[:4] for value in self.values}))

    @lazy
    def is_added(self) -> bool:
        """Return whether a sum of the values is meaningful, as for amounts but not for ages."""
        words = self.noun.one.split(" ")
        if self.role is not Role.QUANTITY or not self.noun.is_readable or _NOT_ADDED & set(words):
            return False
        return bool(self.noun.counts) or words[-1] in _ADDED

    def sql(self, alias: str = "") -> str:
        """Return the column in SQL, qualified by the alias of its table if one is given."""
        return f"{alias}.{identifier(self.name)}" if alias else identifier(self.name)

    def value_sql(self, alias: str = "") -> str:
        """Return the column as a number in SQL, with a CAST if it stores numbers as text."""
        if not self.as_number:
            return self.sql(alias)
        return f"CAST({self.sql(alias)} AS {'INTEGER' if self.is_whole else 'REAL'})"


_NOT_ADDED = word_set(
    "average minimum maximum rate per mean median standard percentage stars points"
)
_ADDED = word_set("""
    quantity amount total sales population salary cost revenue budget profit fee fees bonus
    attendance expense expenses income payment donation turnover capacity enrollment production
    gross charge fine prize
""")


@dataclass(frozen=True)
class Label:
    """The columns that identify a row in an answer: its name, or its key.

    Attributes:
        fields: One or two columns whose combined values are unique.
        is_name: Whether the label is the row's own name, so that a question may say "the singer Joe
            Sharp".
        rows: The values of these columns in a sample of rows.
    """

    fields: tuple[Field, ...]
    is_name: bool
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def is_said(self) -> bool:
        """Whether none of the columns is a key, a reference or a code."""
        return all(f.role not in (Role.KEY, Role.REFERENCE, Role.CODE) for f in self.fields)


@dataclass(frozen=True)
class Entity:
    """A table with rows that questions can be about.

    Attributes:
        noun: The noun for a row.
        rows: The number of rows.
        key: The column that identifies a row; None if there is none.
        label: The columns that identify a row in an answer; None if rows cannot be distinguished.
        is_link: Whether its rows only link rows of other tables, so that no question is about them.
    """

    name: str
    noun: Noun
    rows: int
    fields: tuple[Field, ...]
    key: Field | None
    label: Label | None
    is_link: bool = False

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return identifier(self.name)

    def having(self, *roles: Role) -> list[Field]:
        """Return the columns of the table that have one of these roles."""
        return [field for field in self.fields if field.role in roles]

    @property
    def is_large(self) -> bool:
        """Whether a query that reads the table several times would be too slow."""
        return self.rows > LARGE

    @property
    def is_person(self) -> bool:
        """Whether the rows of the table are people."""
        return self.noun.last in PERSONS or any(f.noun.one in _OF_PEOPLE for f in self.fields)

    @property
    def its(self) -> str:
        """The possessive pronoun for a row."""
        return "their" if self.is_person else "its"


_OF_PEOPLE = frozenset(["first name", "last name", "full name", "hire date", "salary", "job title"])


@dataclass(frozen=True)
class Link:
    """A many-to-one reference from child rows to parent rows.

    Attributes:
        child: The referring table.
        parent: The table referred to.
        column: The referring column.
        target: The column referred to.
        role: The role of the parent for the child: "manager", "stadium".
        is_plain: Whether the role is the parent's noun, and no other link joins the two tables.
        is_single: Whether a parent has at most one child.
        childless: The number of parents without a child.
        is_inferred: Whether the reference is inferred rather than declared in the file.
    """

    child: Entity
    parent: Entity
    column: str
    target: str
    role: str
    is_plain: bool
    is_single: bool
    childless: int
    is_inferred: bool = False

    def on(self, child: str, parent: str) -> str:
        """Return the join condition for the given aliases of both tables."""
        return f"{child}.{identifier(self.column)} = {parent}.{identifier(self.target)}"


@dataclass(frozen=True)
class Bridge:
    """A many-to-many relation: two links from one junction table to two different tables.

    Attributes:
        is_only_way: Whether only the junction relates the two tables. For example, `is_only_way` is
            False for the followers of artists if plays of songs also relate listeners and artists.
    """

    left: Link
    right: Link
    is_only_way: bool = True


@dataclass(frozen=True)
class World:
    """The parts of a database that questions can be about.

    Attributes:
        entities: Tables, in the order of the file.
        bridges: Pairs of links through a junction table, in both directions.
        left_out: The reason why each unused table is not used, by table name.
    """

    entities: tuple[Entity, ...]
    links: tuple[Link, ...]
    bridges: tuple[Bridge, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def identifier(name: str) -> str:
    """Return a name in SQL, unquoted if both SQLite and sqlglot accept it as a name.

    >>> identifier("age"), identifier("order"), identifier("Song Name")
    ('age', '"order"', '"Song Name"')
    """
    if not (name.isascii() and name.isidentifier()) or name.upper() in RESERVED | _KEYWORDS:
        return quoted(name)
    try:
        tree = parse(f"SELECT t.{name}, {name} FROM {name} AS t")
    except SqlglotError:
        return quoted(name)
    columns = [column.name for column in tree.find_all(exp.Column)]
    return name if columns == [name, name] else quoted(name)


_KEYWORDS = word_set("""
    ABORT ACTION AFTER ALWAYS ANALYZE ANY ASC ATTACH BEFORE BEGIN BY CASCADE COLUMN CONFLICT
    CURRENT DATABASE DESC DETACH DO EACH EXCLUDE EXCLUSIVE EXPLAIN FAIL FILTER FIRST FOLLOWING
    FOR GENERATED GLOB GROUPS IF IGNORE IMMEDIATE INDEXED INITIALLY INSTEAD KEY LAST LIKE
    MATCH MATERIALIZED NO NULLS OF OFFSET OTHERS OVER PARTITION PLAN PRAGMA PRECEDING QUERY
    RANGE RECURSIVE REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT ROW ROWS SAVEPOINT TEMP
    TEMPORARY TIES TRIGGER UNBOUNDED VACUUM VIEW VIRTUAL WINDOW WITH WITHOUT CASE INTERVAL
    DATE TIME TIMESTAMP LEFT RIGHT USER VALUES
""")
"""Words that are always quoted in SQL."""


def literal(value: Any) -> str:
    """Return a string or number as an SQL literal.

    >>> literal("O'Hara"), literal(3), literal(2.5)
    ("'O''Hara'", '3', '2.5')
    """
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)

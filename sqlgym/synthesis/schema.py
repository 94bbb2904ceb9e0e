"""A database as questions see it: entities with readable nouns, columns with roles, and links.

Made by `profiling`; read by everything that drafts questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.description import RESERVED
from sqlgym.database.parsing import parse
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis import lexicon
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.nouns import Noun
from toolgym.lazy import lazy

LARGE = 50_000
"""Rows from which on a table is large: what reads all of it is thought over first."""


class Role(StrEnum):
    """The use of a column."""

    KEY = "key"
    REFERENCE = "reference"
    NAME = "name"
    CATEGORY = "category"
    QUANTITY = "quantity"
    YEAR = "year"
    DATE = "date"
    FLAG = "flag"
    CODE = "code"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True)
class Field:
    """A column.

    Attributes:
        noun: What it is called in a sentence.
        nulls: How many rows lack it.
        distinct: How many different values it has; of a large table, at least so many.
        is_unique: No value occurs twice.
        values: Values for questions, in their order: of a category all that are known to be
            common, else a sample.
        has_blanks: It holds empty texts or words for nothing, beside or in place of NULL.
        as_number: It holds numbers as text, and is compared as a number by a CAST.
        has_time: Its dates have a time of day.
        is_large: A table here has so many rows that no function is called on each.
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
    is_large: bool = False

    @property
    def is_odd(self) -> bool:
        """Nobody would say what it is called."""
        return self.noun.is_odd or not self.noun.is_readable

    @lazy
    def shown(self) -> Noun:
        """What it is called where its values are asked for: "closing date and time"."""
        noun = self.noun
        if not self.has_time or not noun.is_readable or noun.last != "date":
            return noun
        if all(value[11:16] == "00:00" for value in self.values[:100]):
            return noun
        return replace(noun, one=f"{noun.one} and time", many=f"{noun.many} and times")

    @property
    def is_ordered(self) -> bool:
        """Its values can be more or less."""
        return self.role in (Role.QUANTITY, Role.YEAR, Role.DATE)

    @property
    def is_full(self) -> bool:
        """Every row has a value, and none of them stands for nothing."""
        return not self.nulls and not self.has_blanks

    @lazy
    def numbers(self) -> tuple[float, ...]:
        """Its values as numbers, also those that are stored as text."""
        return tuple(float(value) for value in self.values)

    @lazy
    def distinct_numbers(self) -> tuple[float, ...]:
        """The same in their order, each once."""
        return tuple(sorted(set(self.numbers)))

    @lazy
    def years(self) -> tuple[str, ...]:
        """The years of its dates, in order."""
        return tuple(sorted({value[:4] for value in self.values}))

    @lazy
    def months(self) -> frozenset[str]:
        """The months of its dates, of whatever year."""
        return frozenset(value[5:7] for value in self.values)

    @lazy
    def is_added(self) -> bool:
        """A sum of its values means something."""
        if self.role is not Role.QUANTITY or not self.noun.is_readable:
            return False
        words = self.noun.one.split(" ")
        if self.noun.counts:
            return words[-1] not in ("stars", "points")
        if {"average", "minimum", "maximum", "rate", "per", "mean", "standard"} & set(words):
            return False
        return words[-1] in lexicon.ADDED

    def sql(self, alias: str = "") -> str:
        """The column in SQL, behind the alias of its table if it has one."""
        return f"{alias}.{identifier(self.name)}" if alias else identifier(self.name)

    def value_sql(self, alias: str = "") -> str:
        """The column as it is compared and computed with."""
        if not self.as_number:
            return self.sql(alias)
        return f"CAST({self.sql(alias)} AS {'INTEGER' if self.is_whole else 'REAL'})"


@dataclass(frozen=True)
class Label:
    """The columns that tell a row apart: its name, or its key.

    Attributes:
        fields: One or several columns that no two rows share.
        is_name: It is a name, so a question may speak of "the singer Joe Sharp".
        rows: Its values in a sample of rows.
    """

    fields: tuple[Field, ...]
    is_name: bool
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def is_said(self) -> bool:
        """People would call a row by it: it is no key and no code."""
        return all(f.role not in (Role.KEY, Role.REFERENCE, Role.CODE) for f in self.fields)


@dataclass(frozen=True)
class Entity:
    """A table whose rows questions are about.

    Attributes:
        noun: What a row is.
        key: The column that identifies a row, if there is one.
        label: What its rows are called by in an answer, if they can be told apart.
        first_row: Its first row, as texts: an answer that stands there is seen at once.
    """

    name: str
    noun: Noun
    rows: int
    fields: tuple[Field, ...]
    key: Field | None
    label: Label | None
    first_row: frozenset[str] = frozenset()

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return identifier(self.name)

    def having(self, *roles: Role) -> list[Field]:
        """Its columns of these roles."""
        return [field for field in self.fields if field.role in roles]

    @property
    def is_large(self) -> bool:
        """It has so many rows that a query which reads them several times is too slow."""
        return self.rows > LARGE

    @property
    def is_link(self) -> bool:
        """Its rows have no name of their own: they only link rows of other tables."""
        return self.noun.last == "link"

    @property
    def is_person(self) -> bool:
        """Its rows are people."""
        return self.noun.last in lexicon.PERSONS or any(
            field.noun.one in _OF_PEOPLE for field in self.fields
        )

    @property
    def its(self) -> str:
        """The possessive pronoun of a row."""
        return "their" if self.is_person else "its"

    @property
    def is_place(self) -> bool:
        """Its rows are places or houses."""
        return self.noun.last in lexicon.PLACES


_OF_PEOPLE = frozenset(["first name", "last name", "full name", "hire date", "salary", "job title"])
"""Columns that only people have."""


@dataclass(frozen=True)
class Link:
    """A reference of many children to one parent each.

    Attributes:
        child: The table that refers.
        parent: The table referred to.
        role: What the parent is to the child: "manager", "stadium".
        is_plain: The role is the parent's own noun, and there is no other way between the two.
        is_single: A parent has at most one child.
        childless: How many parents have no child.
        orphans: How many children have no parent.
        is_inferred: The file does not declare it.
        is_odd: Its role is no word that anybody would say.
    """

    child: Entity
    parent: Entity
    column: str
    target: str
    role: str
    is_plain: bool
    is_single: bool
    childless: int
    orphans: int
    is_inferred: bool = False
    is_odd: bool = False

    def on(self, child: str, parent: str) -> str:
        """The condition of a join, for the aliases of both tables."""
        return f"{child}.{identifier(self.column)} = {parent}.{identifier(self.target)}"


@dataclass(frozen=True)
class Bridge:
    """Many to many: two links from one junction table to two different tables."""

    left: Link
    right: Link


@dataclass(frozen=True)
class World:
    """All that questions can be about.

    Attributes:
        entities: Tables that stand for things, in the order of the file.
        bridges: Pairs of links over a junction, both ways round.
        left_out: Tables that are not used: why.
    """

    entities: tuple[Entity, ...]
    links: tuple[Link, ...]
    bridges: tuple[Bridge, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    @lazy
    def plain(self) -> World:
        """The same without what nobody would say, where enough is left of it.

        Columns, tables and references whose names have a part that is no word are left out. What
        rows are called by stays, and so do keys.
        """
        kept = {
            entity.name: _plain_entity(entity)
            for entity in self.entities
            if entity.noun.is_readable and not entity.noun.is_odd
        }
        if sum(field.role in _TOLD for e in kept.values() for field in e.fields) < _ENOUGH:
            return self
        links = {
            id(link): replace(link, child=kept[link.child.name], parent=kept[link.parent.name])
            for link in self.links
            if link.child.name in kept and link.parent.name in kept and not link.is_odd
        }
        bridges = tuple(
            Bridge(links[id(bridge.left)], links[id(bridge.right)])
            for bridge in self.bridges
            if id(bridge.left) in links and id(bridge.right) in links
        )
        return World(tuple(kept.values()), tuple(links.values()), bridges, self.left_out)


_TOLD = frozenset(
    [Role.QUANTITY, Role.YEAR, Role.DATE, Role.CATEGORY, Role.FLAG, Role.NAME, Role.TEXT]
)
_ENOUGH = 6
"""So many columns that tell something are enough to ask about."""


def _plain_entity(entity: Entity) -> Entity:
    label = entity.label.fields if entity.label else ()
    fields = tuple(
        field
        for field in entity.fields
        if field in label or not field.is_odd or field.role in (Role.KEY, Role.REFERENCE)
    )
    return replace(entity, fields=fields)


@lru_cache(maxsize=4096)
def identifier(name: str) -> str:
    """A name in SQL: as it is where SQLite and sqlglot both take it for a name, else in quotes.

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
"""Words that are quoted in SQL for safety."""


def literal(value: Any) -> str:
    """A text or number in SQL.

    >>> literal("O'Hara"), literal(3), literal(2.5)
    ("'O''Hara'", '3', '2.5')
    """
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)

"""Drafts of questions: a source of choices, the pieces of a query and a question, and the shapes.

A shape asks a `Draft` for tables, columns and conditions and for one of several wordings; what the
database does not have ends the attempt with `Unfit`. All choices come from one `random.Random`, so
that a seed gives the same drafts everywhere. `shape` adds one of your own:

    @shape("my-shape")
    def my_shape(draft: Draft) -> Candidate: ...

A shape drafts one question. It may raise `Unfit` as often as it likes, need not look at results,
and does not say how hard it is: that is measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from sqlgym.synthesis import english, roles, spoken_values
from sqlgym.synthesis.nouns import Noun
from sqlgym.synthesis.schema import Entity, Field, Role, World, literal
from toolgym.errors import ConfigurationError

T = TypeVar("T")


class Unfit(Exception):
    """The database does not have what a shape asks for, or it was not drawn this time."""


@dataclass(frozen=True)
class Query:
    """A SELECT statement by its clauses.

    Attributes:
        where: Conditions, all of which hold.
        limit: How many rows; 0 for all.
    """

    select: tuple[str, ...]
    source: str
    where: tuple[str, ...] = ()
    group: str = ""
    having: str = ""
    order: str = ""
    limit: int = 0
    distinct: bool = False

    def sql(self) -> str:
        """The statement."""
        parts = [f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(self.select)}"]
        parts.append(f"FROM {self.source}")
        if self.where:
            parts.append(f"WHERE {' AND '.join(self.where)}")
        clauses = (("GROUP BY", self.group), ("HAVING", self.having), ("ORDER BY", self.order))
        parts += [f"{word} {text}" for word, text in clauses if text]
        if self.limit:
            parts.append(f"LIMIT {self.limit}")
        return " ".join(parts)

    def count_sql(self) -> str:
        """The statement that counts the rows it computes over."""
        return replace(self, select=("count(*)",), group="", having="", order="", limit=0).plain()

    def plain(self) -> str:
        """The statement without DISTINCT."""
        return replace(self, distinct=False).sql()

    def weaker(self) -> tuple[str, ...]:
        """The same without one of its conditions, for each of them: these must differ."""
        wheres = [self.where[:i] + self.where[i + 1 :] for i in range(len(self.where))]
        weaker = [replace(self, where=where) for where in wheres]
        weaker += [replace(self, having="")] if self.having else []
        # One row more shows that the LIMIT matters, and in any order, so nothing is sorted for it.
        weaker += [replace(self, limit=self.limit + 1, order="")] if self.limit else []
        return tuple(query.sql() for query in weaker)


@dataclass(frozen=True)
class Candidate:
    """A question with its SQL, and what has to be shown of it before it is kept.

    Attributes:
        question: The question; its first letter is made a capital later.
        tables: What it reads.
        contrasts: Statements that must have another result: each condition matters.
        readings: Statements that must have the same result: other ways to read the question.
        supports: Statements that count rows: each must give at least two.
        one_row: The question speaks of one row.
        several: The question speaks of several rows.
        number: The question speaks of so many rows; 0 if of no number.
        alphabetical: Columns of the result, by place, whose order has to be the alphabet's.
    """

    question: str
    sql: str
    tables: tuple[str, ...]
    contrasts: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    one_row: bool = False
    several: bool = False
    number: int = 0
    alphabetical: tuple[int, ...] = ()
    shape: str = ""


@dataclass(frozen=True)
class Draft:
    """One attempt to write a question.

    Attributes:
        commas: Its numbers from a thousand on are written with commas.
        keys: How often rows without a name are spoken of by their keys.
        style: "whose" or "with": how its conditions are said where both would do.
        says_named: It says "the singer named Joe Sharp", not "the singer Joe Sharp".
    """

    world: World
    rng: random.Random
    commas: bool = False
    keys: float = 1.0
    style: str = "whose"
    says_named: bool = False

    def pick(self, options: Iterable[T]) -> T:
        """One of several things; `Unfit` if there are none."""
        choices = list(options)
        if not choices:
            raise Unfit
        return choices[int(self.rng.random() * len(choices))]

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.rng.random() < probability

    def say(self, *wordings: str | None) -> str:
        """One of several wordings; None stands for one that is not to be had."""
        return self.pick(wording for wording in wordings if wording)

    def entity(self, fits: Callable[[Entity], Any] = bool) -> Entity:
        """A table that fits, and does not only link others: nobody asks for such rows."""
        return self.pick(e for e in self.world.entities if not e.is_link and fits(e))

    def unless(self, wrong: Any) -> None:
        """End the attempt if something is wrong."""
        if wrong:
            raise Unfit


def the(fields: Sequence[Field]) -> str:
    """Columns in the singular: "the name and the price".

    >>> the([])
    ''
    """
    return _listed(fields, "the first and last name", lambda noun: f"the {noun.one}")


def names(fields: Sequence[Field]) -> str:
    """Columns in the plural: "names and prices"."""
    return _listed(fields, "first and last names", lambda noun: noun.many)


def bare(fields: Sequence[Field]) -> str:
    """Columns in the singular without an article: "name and price"."""
    return _listed(fields, "first and last name", lambda noun: noun.one)


def _listed(fields: Sequence[Field], full_name: str, word: Callable[[Noun], str]) -> str:
    is_clear = len(fields) < 2 or word(fields[0].noun).startswith("the ")
    nouns = [field.shown if is_clear else field.noun for field in fields]
    if [noun.one for noun in nouns] == ["first name", "last name"]:
        return full_name
    return english.join_words(list(map(word, nouns)))


def label_of(entity: Entity) -> tuple[Field, ...]:
    """The columns by which the rows of a table are told apart."""
    if entity.label is None:
        raise Unfit
    return entity.label.fields


def named(draft: Draft, entity: Entity) -> tuple[Field, ...]:
    """The columns by which rows are told apart, mostly of a table whose rows have names."""
    draft.unless(entity.label and not entity.label.is_said and not draft.chance(draft.keys))
    return label_of(entity)


def columns(fields: Iterable[Field], alias: str = "") -> tuple[str, ...]:
    """Fields as result columns."""
    return tuple(field.sql(alias) for field in fields)


# One row of a table, spoken of by its label.
#
# "the singer Joe Sharp" where the label is a name, "the order with the ID 12" where it is a key. A
# label that another row has but for its case is not used.


@dataclass(frozen=True)
class Named:
    """A row by its label.

    Attributes:
        said: As a noun phrase.
        clause: Behind a noun for it: "is Balmoor", "has the ID 2".
    """

    fields: tuple[Field, ...]
    cells: tuple[Any, ...]
    said: str
    clause: str

    def where(self, alias: str = "") -> tuple[str, ...]:
        """The conditions that pick the row."""
        pairs = zip(self.fields, self.cells, strict=True)
        return tuple(f"{field.sql(alias)} = {literal(cell)}" for field, cell in pairs)


def row_of(draft: Draft, entity: Entity, besides: tuple[Any, ...] = ()) -> Named:
    """Some row of a table that has a label; none whose label is `besides`."""
    label = entity.label
    if label is None or not (label.is_said or draft.chance(draft.keys)):
        raise Unfit
    cells = draft.pick(row for row in label.rows if row != besides)
    typable = all(roles.is_typable(cell) and cell is not None for cell in cells)
    draft.unless(not typable or _has_twin(label.rows, cells))
    said, clause = _said(draft, entity, label.fields, cells, label.is_name)
    return Named(label.fields, cells, said, clause)


def _said(
    draft: Draft, entity: Entity, fields: tuple[Field, ...], cells: tuple[Any, ...], is_name: bool
) -> tuple[str, str]:
    noun = entity.noun.one
    if len(fields) == 2:
        full = spoken_values.quoted_text(f"{cells[0]} {cells[1]}")
        return f"the {noun} {'named ' * draft.says_named}{full}", f"is {full}"
    field, cell = fields[0], cells[0]
    shown = spoken_values.quoted_text(cell) if isinstance(cell, str) else f"{cell:.10g}"
    if not field.noun.is_readable:
        where = f'the value {shown} in column "{field.name}"'
        return f"the {noun} with {where}", f"has {where}"
    if not is_name:
        if field.role is Role.KEY or field.role is Role.CODE or field.role is Role.REFERENCE:
            clause = f"is {shown}" if isinstance(cell, str) else f"has the {field.noun.one} {shown}"
            return f"the {noun} with the {field.noun.one} {shown}", clause
        return f"the {noun} whose {field.noun.one} is {shown}", f"has the {field.noun.one} {shown}"
    return f"the {noun} {'named ' * draft.says_named}{shown}", f"is {shown}"


def said_alike(*rows: Named) -> list[str]:
    """Rows by their labels, the names all bare or all in quotes."""
    if any(len(row.cells) > 1 or not isinstance(row.cells[0], str) for row in rows):
        return [row.said for row in rows]
    names = [row.cells[0] for row in rows]
    starts = [row.said.removesuffix(spoken_values.quoted_text(row.cells[0])) for row in rows]
    return [
        start + name for start, name in zip(starts, spoken_values.quoted_texts(names), strict=True)
    ]


def _has_twin(rows: tuple[tuple[Any, ...], ...], cells: tuple[Any, ...]) -> bool:
    """Whether another row has the same label but for its case."""
    folded = [str(cell).casefold().strip() for cell in cells]
    return sum([str(c).casefold().strip() for c in row] == folded for row in rows) > 1


Shape = Callable[[Draft], Candidate]

SHAPES: dict[str, Shape] = {}
"""All shapes, in the order in which they were added."""


def shape(name: str, large: bool = True) -> Callable[[Shape], Shape]:
    """Add a function as the shape of this name.

    Args:
        name: What it is called in reports.
        large: Whether its SQL is fit for a table that only part of was read; without it, what is
            drafted about such tables is dropped.

    Raises:
        ConfigurationError: There is one of this name already.
    """

    def add(function: Shape) -> Shape:
        if name in SHAPES:
            raise ConfigurationError(f"there is a shape {name!r} already; take another name.")
        SHAPES[name] = function if large else _of_small_tables(function)
        return function

    return add


def _of_small_tables(function: Shape) -> Shape:
    """A shape that drafts nothing about large tables, which it would read too often."""

    @wraps(function)
    def drafted(draft: Draft) -> Candidate:
        candidate = function(draft)
        entities = draft.world.entities
        draft.unless(any(e.is_large and e.name in candidate.tables for e in entities))
        return candidate

    return drafted

"""Drafts of questions: random choices, SELECT statements and candidates.

A template is a function that makes a `Candidate` from a `Draft`. A template raises `Unfit` if the
database has no suitable table or column. The decorator `template` registers the function:

    @template("my-template", weight=2)
    def my_template(draft: Draft) -> Candidate: ...
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlgym.synthesis.schema import World
from toolgym.errors import ConfigurationError

T = TypeVar("T")
F = TypeVar("F", bound="Callable[[Draft], Candidate]")


class Unfit(Exception):
    """Raised if the database or the random draw lacks something that a template needs."""


@dataclass(frozen=True)
class Query:
    """A SELECT statement, stored as its clauses.

    Attributes:
        where: Conditions that are joined by AND.
        limit: Maximum number of rows; 0 means all.
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
        """The statement as text."""
        text = f"SELECT {'DISTINCT ' * self.distinct}{', '.join(self.select)} FROM {self.source}"
        clauses = (
            ("WHERE", " AND ".join(self.where)),
            ("GROUP BY", self.group),
            ("HAVING", self.having),
            ("ORDER BY", self.order),
            ("LIMIT", str(self.limit or "")),
        )
        return text + "".join(f" {word} {clause}" for word, clause in clauses if clause)

    def weaker(self) -> tuple[str, ...]:
        """Return, for each condition, the statement without that condition."""
        wheres = [self.where[:i] + self.where[i + 1 :] for i in range(len(self.where))]
        weaker = [replace(self, where=where) for where in wheres]
        weaker += [replace(self, having="")] if self.having else []
        # If one more row exists, the LIMIT has an effect in any order, so no sort is needed.
        weaker += [replace(self, limit=self.limit + 1, order="")] if self.limit else []
        return tuple(query.sql() for query in weaker)


@dataclass(frozen=True)
class Candidate:
    """A question with its SQL, and the requirements that must be proved before it becomes a task.

    Attributes:
        question: The question; its first letter is capitalized later.
        tables: Names of the tables that the SQL reads.
        contrasts: Statements that must have a different result, so that each condition matters.
        readings: Statements for other interpretations of the question, which must have the same
            result.
        supports: Statements that count rows; each count must be at least two.
        one_row: Whether the answer must consist of one row.
        several: Whether the answer must consist of several rows.
    """

    question: str
    sql: str
    tables: tuple[str, ...]
    contrasts: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    one_row: bool = False
    several: bool = False


def is_unclear(candidate: Candidate, world: World) -> bool:
    """Return whether "the number of" things can mean either a column or a count of rows.

    If the table of schools has a column `pupils` and there is also a table of pupils, "the school
    with the most pupils" has two interpretations.
    """
    return any(
        field.noun.counts.split(" ")[-1:] == entity.noun.many.split(" ")[-1:]
        and field.table in candidate.tables
        and (
            re.search(rf"(?<!FROM |JOIN ){re.escape(field.sql())}\b", candidate.sql)
            or (entity.name in candidate.tables and "count(" in candidate.sql)
        )
        for entity in world.entities
        for other in world.entities
        for field in other.fields
        if field.noun.counts
    )


@dataclass(frozen=True)
class Draft:
    """One attempt to write a question about a database."""

    world: World
    rng: random.Random

    def pick(self, options: Iterable[T]) -> T:
        """Choose one option at random; raise `Unfit` if there is none."""
        choices = list(options)
        self.unless(not choices)
        return choices[int(self.rng.random() * len(choices))]

    def chance(self, probability: float) -> bool:
        """Return True with a given probability."""
        return self.rng.random() < probability

    def unless(self, wrong: Any) -> None:
        """Raise `Unfit` if the argument is true."""
        if wrong:
            raise Unfit


@dataclass(frozen=True)
class Template:
    """A kind of question.

    Attributes:
        weight: Relative share of the template's questions among those of all templates that fit.
        draft: Makes one candidate.
    """

    name: str
    weight: float
    draft: Callable[[Draft], Candidate]


TEMPLATES: dict[str, Template] = {}
"""Registered templates by name."""


def template(name: str, weight: float = 1.0) -> Callable[[F], F]:
    """Register a function as a template.

    Raises:
        ConfigurationError: The name is taken.
    """

    def add(function: F) -> F:
        if name in TEMPLATES:
            raise ConfigurationError(f"a template {name!r} already exists; choose another name.")
        TEMPLATES[name] = Template(name, weight, function)
        return function

    return add

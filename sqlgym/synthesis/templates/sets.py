"""Questions about the values of a column that two kinds of rows share, or that one kind lacks."""

from __future__ import annotations

from sqlgym.synthesis import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Role
from sqlgym.synthesis.templates.phrases import ask, grouping
from sqlgym.synthesis.templates.rows import entity_of


def _values(draft: Draft, word: str, joined: str) -> Candidate:
    entity = entity_of(draft, lambda e: e.having(Role.CATEGORY))
    field = grouping(draft, entity)
    first, second = conditions.opposites(draft, entity)
    draft.unless(field.name in first.columns)
    sides = [Query((field.sql(),), entity.sql, (each.sql,)) for each in (first, second)]
    sql = f" {word} ".join(side.sql() for side in sides)
    alone = tuple(side.sql().replace("SELECT", "SELECT DISTINCT", 1) for side in sides)
    a, b = (f"{entity.noun.many}{conditions.after(draft, [each])}" for each in (first, second))
    what = f"{field.noun.many} that occur {joined.format(a, b)}"
    question = ask(draft, what)
    return Candidate(question, sql, (entity.name,), alone if word == "INTERSECT" else alone[:1])


@template("values-of-both", weight=1)
def values_of_both(draft: Draft) -> Candidate:
    """Values that occur among rows of two kinds."""
    return _values(draft, "INTERSECT", "both among the {} and among the {}")


@template("values-of-one", weight=1)
def values_of_one(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind and not of another."""
    return _values(draft, "EXCEPT", "among the {} but not among the {}")

"""Two queries put together: what is in both, in one but not in the other, in either.

Neither of the two alone may have the result of both together.
"""

from __future__ import annotations

from dataclasses import replace

from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import (
    Candidate,
    Draft,
    Query,
    bare,
    columns,
    named,
    names,
    shape,
    the,
)
from sqlgym.synthesis.reading.world import Entity, Field, Link, Role
from sqlgym.synthesis.shapes import asking, joins, per_parent


def _two_ways(
    draft: Draft, entity: Entity, besides: tuple[str, ...], alias: str = ""
) -> tuple[Condition, Condition]:
    """Two conditions, most often on the same column."""
    first = conditions.condition(draft, entity, alias, besides)
    field = next(f for f in entity.fields if f.name == first.column)
    if draft.chance(0.7):
        second = conditions.on_field(draft, entity, field, alias)
    else:
        second = conditions.condition(draft, entity, alias, (*besides, first.column))
    draft.unless(first.sql == second.sql)
    return first, second


def _together(
    select: tuple[str, ...], source: str, word: str, *sides: Condition
) -> tuple[str, tuple[str, ...]]:
    """The set operation, and what it must differ from: each side alone."""
    queries = [Query(select, source, (side.sql,)) for side in sides]
    alone = tuple(replace(query, distinct=True).sql() for query in queries)
    return f" {word} ".join(query.sql() for query in queries), alone


def _valued(entity: Entity) -> list[Field]:
    return [
        f
        for f in entity.having(Role.CATEGORY, Role.YEAR)
        if f.is_full and 3 <= f.distinct < entity.rows
    ]


def _of_values(
    draft: Draft, word: str, is_free: bool = False
) -> tuple[Entity, Field, str, tuple[str, ...], list[str]]:
    """A set operation on the values of a column among rows of two kinds, and what to call these."""
    entity = draft.entity(_valued)
    field = draft.pick(_valued(entity))
    if is_free:
        first = conditions.condition(draft, entity, besides=(field.name,))
        second = conditions.condition(draft, entity, besides=(field.name, first.column))
    else:
        first, second = _two_ways(draft, entity, (field.name,))
    sql, contrasts = _together(columns((field,)), entity.sql, word, first, second)
    rows = [f"{entity.noun.many} {one.after(draft)}" for one in (first, second)]
    return entity, field, sql, contrasts, rows


@shape("values-in-both")
def values_in_both(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind and among rows of another."""
    entity, field, sql, contrasts, (a, b) = _of_values(draft, "INTERSECT")
    values = field.noun.many
    question = asking.ask(
        draft,
        f"the {values} that occur both among the {a} and among the {b}",
        f"Which {values} occur both among the {a} and among the {b}?",
        f"Find the {values} that are shared by {a} and {b}.",
        f"Which {values} have {a} as well as {b}?",
    )
    return Candidate(question, sql, (entity.name,), contrasts)


@shape("values-in-one-only")
def values_in_one_only(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind and not among rows of another."""
    entity, field, sql, contrasts, (a, b) = _of_values(draft, "EXCEPT")
    values = field.noun.many
    question = asking.ask(
        draft,
        f"the {values} that occur among the {a} but not among the {b}",
        f"Which {values} occur among the {a} but not among the {b}?",
        f"Find the {values} of the {a}, leaving out those that also occur among the {b}.",
        f"Which {values} have {a} but no {b}?",
    )
    return Candidate(question, sql, (entity.name,), contrasts[:1])


@shape("values-in-either")
def values_in_either(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind or of another."""
    entity, field, sql, contrasts, (a, b) = _of_values(draft, "UNION", is_free=True)
    values = field.noun.many
    question = asking.ask(
        draft,
        f"the {values} that occur among the {a} or among the {b}, each only once",
        f"Which {values} occur among the {a} or among the {b}? List each once.",
        f"List, each once, the {values} of the {a} and those of the {b}.",
    )
    return Candidate(question, sql, (entity.name,), contrasts)


def _of_parents(
    draft: Draft, word: str
) -> tuple[Link, tuple[Field, ...], str, tuple[str, ...], list[str]]:
    """A set operation on parents that have children of two kinds, and what these are like."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    sides = _two_ways(draft, link.child, (), "T2")
    sql, contrasts = _together(columns(label, "T1"), per_parent.source(link), word, *sides)
    return link, label, sql, contrasts, [side.after_one(draft) for side in sides]


@shape("parents-with-both")
def parents_with_both(draft: Draft) -> Candidate:
    """Parents that have children of one kind and children of another."""
    link, label, sql, contrasts, (a, b) = _of_parents(draft, "INTERSECT")
    child, parents = link.child.noun.one, link.parent.noun.many
    both = joins.haves(link, f"at least one {child} {a} and at least one {child} {b}")
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that {both}",
        f"Which {parents} {both}? Give {the(label)} of each.",
        f"List the {names(label)} of the {parents} that {both}.",
    )
    return Candidate(question, sql, (link.parent.name, link.child.name), contrasts)


@shape("parents-with-one-only")
def parents_with_one_only(draft: Draft) -> Candidate:
    """Parents that have children of one kind and none of another."""
    link, label, sql, contrasts, (a, b) = _of_parents(draft, "EXCEPT")
    child, parents = link.child.noun.one, link.parent.noun.many
    if link.is_plain:
        rest = f"have at least one {child} {a} but no {child} {b}"
    else:
        rest = f"are the {link.role} of at least one {child} {a} but of no {child} {b}"
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that {rest}",
        f"Which {parents} {rest}? Give each {bare(label)} once.",
        f"List the {names(label)} of the {parents} that {rest}.",
    )
    return Candidate(question, sql, (link.parent.name, link.child.name), contrasts[:1])

"""Two queries put together: what is in both, in one but not in the other, in either.

Neither of the two alone may have the result of both together.
"""

from __future__ import annotations

from dataclasses import replace

from sqlgym.synthesis import english
from sqlgym.synthesis.conditions import conditions, opposites
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
from sqlgym.synthesis.lexicon import PLACE_COLUMNS
from sqlgym.synthesis.schema import Entity, Field, Link, Role
from sqlgym.synthesis.shapes import asking, groups, joins, per_parent


def _two_ways(
    draft: Draft, entity: Entity, besides: tuple[str, ...], alias: str = ""
) -> tuple[Condition, Condition]:
    """Two conditions of which nobody asks why: two values of a column, or one on each of two."""
    if draft.chance(0.7):
        fields = [f for f in entity.having(*_PARTED) if f.name not in besides and not f.has_blanks]
        return opposites.opposites(draft, entity, draft.pick(fields), alias)
    first = _said_of_kind(draft, entity, alias, besides)
    second = _said_of_kind(draft, entity, alias, (*besides, first.column))
    return first, second


_PARTED = (Role.CATEGORY, Role.YEAR, Role.DATE, Role.QUANTITY)


def _said_of_kind(draft: Draft, entity: Entity, alias: str, besides: tuple[str, ...]) -> Condition:
    """A condition that tells a kind of row: none on what is not so."""
    found = conditions.condition(draft, entity, alias, besides)
    draft.unless(found.is_negative)
    return found


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
        for f in entity.having(Role.CATEGORY) or entity.having(Role.YEAR)
        if f.is_full and 3 <= f.distinct < entity.rows and not groups.is_long(f)
    ]


def _of_values(
    draft: Draft, word: str, is_free: bool = False
) -> tuple[Entity, Field, str, tuple[str, ...], list[str]]:
    """A set operation on the values of a column among rows of two kinds, and what to call these."""
    entity = draft.entity(_valued)
    field = draft.pick(_valued(entity))
    if is_free:
        first = _said_of_kind(draft, entity, "", (field.name,))
        second = _said_of_kind(draft, entity, "", (field.name, first.column))
    else:
        first, second = _two_ways(draft, entity, (field.name,))
    sql, contrasts = _together(columns((field,)), entity.sql, word, first, second)
    alike = [form.kind for form in first.forms if form.kind in {f.kind for f in second.forms}]
    kinds = [draft.pick(alike)] if alike else []
    rows = [f"{entity.noun.many} {one.after(draft, *kinds)}" for one in (first, second)]
    those = f"those {rows[1].removeprefix(f'{entity.noun.many} ')}"
    return entity, field, sql, contrasts, [*rows, those]


@shape("values-in-both")
def values_in_both(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind and among rows of another."""
    entity, field, sql, contrasts, (a, b, those) = _of_values(draft, "INTERSECT")
    values, is_place = field.noun.many, field.noun.one in PLACE_COLUMNS
    question = asking.ask(
        draft,
        f"the {values} that occur both among the {a} and among {those}",
        f"Which {values} occur both among the {a} and among {those}?",
        f"Which {values} have {a} as well as {b}?" if is_place else None,
    )
    return Candidate(question, sql, (entity.name,), contrasts)


@shape("values-in-one-only")
def values_in_one_only(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind and not among rows of another."""
    entity, field, sql, contrasts, (a, b, those) = _of_values(draft, "EXCEPT")
    values, is_place = field.noun.many, field.noun.one in PLACE_COLUMNS
    question = asking.ask(
        draft,
        f"the {values} that occur among the {a} but not among {those}",
        f"Which {values} occur among the {a} but not among {those}?",
        f"Which {values} have {a} but no {b}?" if is_place else None,
    )
    return Candidate(question, sql, (entity.name,), contrasts[:1])


@shape("values-in-either")
def values_in_either(draft: Draft) -> Candidate:
    """Values that occur among rows of one kind or of another."""
    entity, field, sql, contrasts, (a, b, those) = _of_values(draft, "UNION", is_free=True)
    values, is_place = field.noun.many, field.noun.one in PLACE_COLUMNS
    question = asking.ask(
        draft,
        f"the {values} that occur among the {a} or among {those}, each only once",
        f"Which {values} occur among the {a} or among {those}? List each once.",
        f"Which {values} have {a} or {b}? List each once." if is_place else None,
    )
    return Candidate(question, sql, (entity.name,), contrasts)


@shape("values-of-two-tables", large=False)
def values_of_two_tables(draft: Draft) -> Candidate:
    """Values of a column that two tables have: those in both, in one only, or in either."""
    first, field, second, other = draft.pick(_shared(draft))
    word = draft.pick(("INTERSECT", "EXCEPT", "UNION"))
    own, after, _ = conditions.perhaps(draft, 0.35, second, besides=(other.name,))
    sides = [
        Query(columns((field,)), first.sql),
        Query(columns((other,)), second.sql, own),
    ]
    sql = f" {word} ".join(side.sql() for side in sides)
    values, one, two = field.noun.many, first.noun.many, f"{second.noun.many}{after}"
    what = {
        "INTERSECT": f"the {values} that have both {one} and {two}",
        "EXCEPT": f"the {values} that have {one} but no {two}",
        "UNION": f"the {values} that have {one} or {two}, each only once",
    }[word]
    which = what.removeprefix("the ").replace("that have", "have").removesuffix(", each only once")
    others = {
        "INTERSECT": (f"Which {values} have {one} as well as {two}?",),
        "EXCEPT": (f"Which {values} have {one}, but do not have any {two}?",),
        "UNION": (f"List, each once, the {values} of the {one} and those of the {two}.",),
    }[word]
    once = " Give each once." if word == "UNION" else ""
    question = asking.ask(draft, what, f"Which {which}?{once}", *others)
    alone = [replace(side, distinct=True).sql() for side in sides]
    contrasts = alone[:1] if word == "EXCEPT" else alone
    contrasts += [f" {word} ".join((sides[0].sql(), side)) for side in sides[1].weaker()]
    return Candidate(question, sql, (first.name, second.name), tuple(contrasts))


def _shared(draft: Draft) -> list[tuple[Entity, Field, Entity, Field]]:
    """Columns of two tables that are called alike and have values in common, either way round."""
    found = []
    for first in draft.world.entities:
        for second in draft.world.entities:
            if first.name == second.name:
                continue
            for field in first.having(Role.CATEGORY, Role.YEAR):
                found += [
                    (first, field, second, other)
                    for other in second.having(field.role)
                    if field.noun.is_readable
                    and field.noun.one == other.noun.one
                    and field.noun.one in _SHARED_NOUNS
                    and field.is_full
                    and other.is_full
                    and set(field.values) & set(other.values)
                ]
    return found


_SHARED_NOUNS = PLACE_COLUMNS | {"year", "colour", "color", "language", "nationality"}
"""Columns that mean the same in every table; two "types" are types of different things."""


def _of_parents(
    draft: Draft, word: str
) -> tuple[Link, tuple[Field, ...], str, tuple[str, ...], list[str]]:
    """A set operation on parents that have children of two kinds, and what these are like."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    sides = _two_ways(draft, link.child, (), "T2")
    sql, contrasts = _together(columns(label, "T1"), per_parent.source(link), word, *sides)
    alike = [form.kind for form in sides[0].forms if form.kind in {f.kind for f in sides[1].forms}]
    kinds = [draft.pick(alike)] if alike else []
    said = [english.of_one(side.after(draft, *kinds)) for side in sides]
    return link, label, sql, contrasts, said


@shape("parents-with-both")
def parents_with_both(draft: Draft) -> Candidate:
    """Parents that have children of one kind and children of another."""
    link, label, sql, contrasts, (a, b) = _of_parents(draft, "INTERSECT")
    child, parents = link.child.noun.one, link.parent.noun.many
    both = joins.haves(link, f"at least one {child} {a} and at least one {b}")
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
    if joins.is_owner(link):
        rest = f"have at least one {child} {a} but none {b}"
    else:
        rest = f"are the {link.role} of at least one {child} {a} but of none {b}"
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that {rest}",
        f"Which {parents} {rest}? Give each {bare(label)} once.",
        f"List the {names(label)} of the {parents} that {rest}.",
    )
    return Candidate(question, sql, (link.parent.name, link.child.name), contrasts[:1])

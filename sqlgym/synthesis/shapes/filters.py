"""One table: which rows fulfil one or two conditions, how many, and what one row is like.

The plainest questions; most of them are easy or medium.
"""

from __future__ import annotations

from typing import Any

from sqlgym.synthesis import drafting
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking


def readings(query: Query, *conditions: Condition) -> tuple[str, ...]:
    """The query with other readings of its conditions, where these have any."""
    sql = query.sql()
    return tuple(sql.replace(one.sql, other, 1) for one in conditions for other in one.readings)


def asked(
    question: str, query: Query, tables: tuple[str, ...], *conditions: Condition, **proofs: Any
) -> Candidate:
    """A question whose conditions must all matter, however they are read.

    Args:
        proofs: What else has to be shown, as in `Candidate`.
    """
    contrasts, others = query.weaker(), readings(query, *conditions)
    return Candidate(question, query.sql(), tables, contrasts, others, **proofs)


def listing(draft: Draft, entity: Entity, *conditions: Condition) -> tuple[Field, ...]:
    """The columns to show of rows: the label, alone or with one that no condition is about."""
    used = [one.column for one in conditions]
    label = asking.shown(draft, entity, *used)
    if entity.label is None or label != entity.label.fields:
        return label
    others = [field for field in asking.outputs(entity) if field.name not in used]
    if others and draft.chance(0.35):
        return (*label, draft.pick(others))
    return label


@shape("list-filtered")
def list_filtered(draft: Draft) -> Candidate:
    """Rows that fulfil a condition."""
    entity = draft.entity(lambda e: e.label)
    condition = conditions.condition(draft, entity, names=True)
    fields = listing(draft, entity, condition)
    draft.unless(condition.column in [field.name for field in fields[:1]])
    query = Query(columns(fields), entity.sql, (condition.sql,))
    question = asking.list_rows(
        draft, entity, fields, condition.after(draft), condition.verb(draft)
    )
    return asked(question, query, (entity.name,), condition)


@shape("list-filtered-twice")
def list_filtered_twice(draft: Draft) -> Candidate:
    """Rows that fulfil two conditions, or one of two."""
    entity = draft.entity(lambda e: e.label)
    first, second = conditions.two_conditions(draft, entity)
    fields = listing(draft, entity, first, second)
    if draft.chance(0.3):
        after, verb = conditions.either(draft, first, second), None
        query = Query(columns(fields), entity.sql, (f"({first.sql} OR {second.sql})",))
        sql = query.sql().replace(f"({first.sql} OR {second.sql})", f"{first.sql} OR {second.sql}")
        contrasts = tuple(
            sql.replace(f"{first.sql} OR {second.sql}", one.sql) for one in (first, second)
        )
        question = asking.list_rows(draft, entity, fields, after)
        return Candidate(
            question,
            sql,
            (entity.name,),
            (*contrasts, *query.weaker()),
            readings(query, first, second),
        )
    after, verb = conditions.both(draft, first, second)
    query = Query(columns(fields), entity.sql, (first.sql, second.sql))
    question = asking.list_rows(draft, entity, fields, after, verb)
    return asked(question, query, (entity.name,), first, second)


@shape("count-filtered")
def count_filtered(draft: Draft) -> Candidate:
    """How many rows fulfil a condition."""
    entity = draft.entity()
    condition = conditions.condition(draft, entity, names=True)
    query = Query(("count(*)",), entity.sql, (condition.sql,))
    question = asking.count_rows(draft, entity, condition.after(draft), condition.verb(draft))
    return asked(question, query, (entity.name,), condition)


@shape("count-filtered-twice")
def count_filtered_twice(draft: Draft) -> Candidate:
    """How many rows fulfil two conditions."""
    entity = draft.entity()
    first, second = conditions.two_conditions(draft, entity)
    after, verb = conditions.both(draft, first, second)
    query = Query(("count(*)",), entity.sql, (first.sql, second.sql))
    question = asking.count_rows(draft, entity, after, verb)
    return asked(question, query, (entity.name,), first, second)


@shape("lookup")
def lookup(draft: Draft) -> Candidate:
    """One or two facts of one row."""
    entity = draft.entity(lambda e: e.label and e.rows > 3)
    row = drafting.row_of(draft, entity)
    field = draft.pick(f for f in asking.outputs(entity) if f not in row.fields)
    fields: tuple[Field, ...] = (field,)
    if draft.chance(0.3):
        others = [f for f in asking.outputs(entity) if f not in (*row.fields, field)]
        fields = (field, draft.pick(others))
    query = Query(columns(fields), entity.sql, row.where())
    what, unit = the(fields), asking.unit_text(field)
    question = asking.ask(
        draft,
        f"{what} of {row.said}",
        f"What {'is' if len(fields) == 1 else 'are'} {what} of {row.said}{unit}?",
        f"Give {what} of {row.said}.",
        _how(field, row.said) if len(fields) == 1 else None,
        f"Look up {what} of {row.said}.",
        is_many=len(fields) > 1,
    )
    return Candidate(question, query.sql(), (entity.name,), one_row=True)


def _how(field: Field, said: str) -> str | None:
    """A question of its own for some columns."""
    if field.noun.counts and field.role is Role.QUANTITY and not field.noun.unit:
        return f"How many {field.noun.counts} does {said} have?"
    if field.noun.one == "age" and field.role is Role.QUANTITY:
        return f"How old is {said}?"
    return None


@shape("distinct-values")
def distinct_values(draft: Draft) -> Candidate:
    """The different values of a column among rows that fulfil a condition, each once."""
    entity = draft.entity(lambda e: e.having(Role.CATEGORY, Role.YEAR))
    field = draft.pick(f for f in entity.having(Role.CATEGORY, Role.YEAR) if f.is_full)
    condition = conditions.condition(draft, entity, besides=(field.name,))
    query = Query(columns((field,)), entity.sql, (condition.sql,), distinct=True)
    after, many, one = condition.after(draft), entity.noun.many, field.noun.many
    question = asking.ask(
        draft,
        f"the different {one} of the {many} {after}",
        f"Which different {one} occur among the {many} {after}?",
        f"List the {one} of the {many} {after}, each only once.",
        f"What are the different {one} of the {many} {after}?",
        f"Give the {one} of the {many} {after}, without repeating any.",
    )
    return asked(question, query, (entity.name,), condition)


@shape("count-distinct")
def count_distinct(draft: Draft) -> Candidate:
    """How many different values a column has, in all or among some rows."""
    entity = draft.entity(lambda e: e.having(Role.CATEGORY, Role.YEAR, Role.NAME))
    field = draft.pick(
        f
        for f in entity.having(Role.CATEGORY, Role.YEAR, Role.NAME)
        if not f.is_unique and f.distinct > 2 and not f.has_blanks
    )
    condition = conditions.condition(draft, entity, besides=(field.name,))
    with_filter = draft.chance(0.7)
    after = f" {condition.after(draft)}" if with_filter else ""
    query = Query(
        (f"count(DISTINCT {field.sql()})",), entity.sql, (condition.sql,) if with_filter else ()
    )
    many, values = entity.noun.many, field.noun.many
    question = asking.ask(
        draft,
        f"the number of different {values} among the {many}{after}",
        f"How many different {values} are there among the {many}{after}?",
        f"What is the number of distinct {values} of the {many}{after}?",
        f"Count the different {values} of the {many}{after}.",
        is_many=False,
    )
    contrasts = (*query.weaker(), query.sql().replace("DISTINCT ", ""))
    return Candidate(question, query.sql(), (entity.name,), contrasts)

"""Questions that compare rows with an average, with one row, or with rows of another kind."""

from __future__ import annotations

from functools import partial

from sqlgym.synthesis import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Role
from sqlgym.synthesis.templates.phrases import ask, functions, grouping, measures, names
from sqlgym.synthesis.templates.rows import (
    compound,
    entity_of,
    listing,
    rows_of,
)


@template("above-average", weight=0.8)
def above_average(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """Ask for rows, or their number, above or below the average of all rows."""
    rows = rows_of(draft, measures, own, parents)
    draft.unless(rows.after and not rows.after.startswith(" whose"))
    field = draft.pick(f for f in rows.free(measures(rows.entity)) if "avg" in functions(f))
    sign, words = draft.pick(((">", "more than"), ("<", "less than")))
    average = f"(SELECT avg({field.value_sql()}) FROM {rows.entity.sql})"
    where = (*rows.where, f"{field.value_sql(rows.alias)} {sign} {average}")
    one, many = field.noun.one, rows.entity.noun.many
    said = f"{many}{rows.after}{' and' * bool(rows.after)} whose {one} is {words}"
    said += f" the average {one} of all {many}"
    if draft.chance(0.35):
        query = Query(("count(*)",), rows.source, where)
        return rows.candidate(f"What is the number of {said}?", query)
    fields = listing(draft, rows.entity, rows.where)
    query = Query(rows.columns(fields), rows.source, where)
    return rows.candidate(ask(draft, f"{names(fields)} of the {said}"), query)


template("above-average-of-parent", weight=2)(partial(above_average, own=(0,), parents=1))


@template("values-of-two-kinds", weight=2)
def values_of_two_kinds(draft: Draft) -> Candidate:
    """Ask for values that occur in rows of both kinds, or in rows of the first kind only."""
    entity = entity_of(draft, lambda e: e.having(Role.CATEGORY))
    field, pair = grouping(draft, entity.fields, entity), conditions.opposites(draft, entity)
    draft.unless(field.name in pair[0].columns)
    word, said = draft.pick(
        (("INTERSECT", "both among the {} and"), ("EXCEPT", "among the {} but not"))
    )
    sides = [Query((field.sql(),), entity.sql, (each.sql,)) for each in pair]
    a, b = (f"{entity.noun.many}{conditions.after(draft, [each])}" for each in pair)
    question = ask(draft, f"{field.noun.many} that occur {said.format(a)} among the {b}")
    return compound(question, word, sides, [entity.name])

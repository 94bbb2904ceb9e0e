"""Questions that compare rows with an average, with all rows of another kind, or with one row."""

from __future__ import annotations

from functools import partial

from sqlgym.synthesis import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Role
from sqlgym.synthesis.templates.phrases import ask, functions, measures, names
from sqlgym.synthesis.templates.rows import (
    entity_of,
    is_said,
    label_of,
    listing,
    named_row,
    reference,
    role_of,
    rows_of,
)


@template("above-average", weight=0.8)
def above_average(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """Rows, or their number, with more or less than the average of all rows."""
    rows = rows_of(draft, lambda e: e.label and measures(e), own, parents)
    field = draft.pick(f for f in measures(rows.entity) if f.name not in rows.used)
    draft.unless("avg" not in functions(field))
    sign, words = draft.pick(((">", "more than"), ("<", "less than")))
    inner = f"(SELECT avg({field.value_sql()}) FROM {rows.entity.sql})"
    one, many = field.noun.one, rows.entity.noun.many
    own_sql = f"{field.value_sql(rows.alias)} {sign} {inner}"
    whose = f"whose {one} is {words} the average {one} of all {many}"
    said = f"{many}{f'{rows.after} and' if rows.after else ''} {whose}"
    draft.unless(rows.after and not rows.after.startswith(" whose"))
    where = (*rows.where, own_sql)
    if draft.chance(0.35):
        query = Query(("count(*)",), rows.source, where)
        return rows.candidate(f"What is the number of {said}?", query)
    fields = listing(draft, rows.entity)
    query = Query(rows.columns(fields), rows.source, where)
    return rows.candidate(ask(draft, f"{names(fields)} of the {said}"), query)


template("above-average-of-parent", weight=2)(partial(above_average, own=(0,), parents=1))


@template("than-a-row", weight=0.25)
def than_a_row(draft: Draft) -> Candidate:
    """Rows with more or less of something than a named row."""
    entity = entity_of(draft, lambda e: e.label and e.label.is_said and measures(e))
    row, field = named_row(draft, entity), draft.pick(measures(entity))
    sign, words = draft.pick(((">", "more than"), ("<", "less than")))
    inner = Query((field.value_sql(),), entity.sql, row.where()).sql()
    fields, one = label_of(draft, entity), field.noun.one
    where = (f"{field.value_sql()} {sign} ({inner})",)
    what = f"the {entity.noun.many} whose {one} is {words} that of {row.said}"
    if draft.chance(0.4):
        query = Query(("count(*)",), entity.sql, where)
        question = f"What is the number of {what.removeprefix('the ')}?"
    else:
        query = Query(tuple(f.sql() for f in fields), entity.sql, where)
        question = ask(draft, f"{names(fields)} of {what}")
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@template("same-as", weight=0.3)
def same_as(draft: Draft) -> Candidate:
    """The other rows that share a value, or what they refer to, with a named row."""
    entity = entity_of(draft, lambda e: e.label and e.label.is_said)
    row, label = named_row(draft, entity), label_of(draft, entity)
    ways = [(f.sql(), f.noun.one) for f in entity.having(Role.CATEGORY) if f.is_full]
    links = [k for k in draft.world.links if k.child is entity and is_said(k)]
    ways += [(reference(k), role_of(k)) for k in links] * 2
    column, one = draft.pick(ways)
    inner = Query((column,), entity.sql, row.where()).sql()
    other = " OR ".join(
        f"{f.sql()} <> {v.partition(' = ')[2]}"
        for f, v in zip(row.fields, row.where(), strict=True)
    )
    where = (f"{column} = ({inner})", f"({other})" if len(row.fields) > 1 else other)
    query = Query(tuple(f.sql() for f in label), entity.sql, where)
    what = f"{names(label)} of the other {entity.noun.many} that have the same {one} as"
    return Candidate(ask(draft, f"{what} {row.said}"), query.sql(), (entity.name,), query.weaker())


@template("extreme-among", weight=0.25)
def than_all(draft: Draft) -> Candidate:
    """Rows with more than every row of a kind, or less."""
    entity = entity_of(draft, lambda e: e.label and measures(e))
    field = draft.pick(measures(entity))
    found = conditions.condition(draft, entity, besides=[field.name])
    sign, words, function = draft.pick(((">", "more than", "max"), ("<", "less than", "min")))
    inner = Query((f"{function}({field.value_sql()})",), entity.sql, (found.sql,))
    label, one, many = label_of(draft, entity), field.noun.one, entity.noun.many
    query = Query(
        tuple(f.sql() for f in label), entity.sql, (f"{field.value_sql()} {sign} ({inner.sql()})",)
    )
    end = "highest" if sign == ">" else "lowest"
    what = f"{names(label)} of the {many} whose {one} is {words} the {end} {one} of the {many}"
    said = conditions.after(draft, [found])
    plain = Query(
        query.select,
        entity.sql,
        (f"{field.value_sql()} {sign} ({inner.sql().partition(' WHERE ')[0]})",),
    )
    readings = tuple(query.sql().replace(found.sql, other) for other in found.readings)
    contrasts = (*query.weaker(), plain.sql())
    return Candidate(ask(draft, what + said), query.sql(), (entity.name,), contrasts, readings)

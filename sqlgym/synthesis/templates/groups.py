"""Questions about groups of rows: by a column of their own, or of the row to which they refer."""

from __future__ import annotations

from functools import partial

from sqlgym.synthesis import lexicon, spoken_values
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Entity, Role
from sqlgym.synthesis.templates.phrases import (
    aggregate_noun,
    ask,
    functions,
    grouping,
    measures,
)
from sqlgym.synthesis.templates.rows import Rows, entity_of, is_said, role_of, rows_of


def _groupable(entity: Entity) -> bool:
    return bool(entity.having(Role.CATEGORY, Role.YEAR))


def _without_where(query: Query, select: str) -> str:
    """Another reading of "for each group": groups without a row that fulfills the conditions."""
    return Query((query.select[0], select), query.source, group=query.group).sql()


@template("count-per-group", weight=2)
def count_per_group(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """The number of rows for each value of a column."""
    rows = rows_of(draft, _groupable, own, parents)
    field = grouping(draft, rows.entity, rows.used)
    column, one = field.sql(rows.alias), field.noun.one
    query = rows.query(column, "count(*)", group=column)
    question = draft.pick(
        (
            f"For each {one}, how many {rows.entity.noun.many} are there{rows.after}?"
            f" Give the {one} and the number.",
            f"How many {rows.many} are there for each {one}? Give the {one} and the number.",
        )
    )
    where = " AND ".join(rows.where)
    every = (_without_where(query, f"count(CASE WHEN {where} THEN 1 END)"),) * bool(where)
    return rows.candidate(question, query, several=True, readings=every)


@template("aggregate-per-group", weight=2)
def aggregate_per_group(draft: Draft) -> Candidate:
    """One or two aggregates for each value of a column."""
    rows = rows_of(draft, lambda e: _groupable(e) and measures(e), (0, 0, 1))
    field = grouping(draft, rows.entity, rows.used)
    measure = draft.pick(f for f in measures(rows.entity) if f.name not in rows.used)
    first, second = draft.pick(functions(measure)), draft.pick(functions(measure))
    chosen = [first] if first == second or draft.chance(0.6) else [first, second]
    sums = [f"{function}({measure.value_sql()})" for function in chosen]
    query = rows.query(field.sql(), *sums, group=field.sql())
    what, one = aggregate_noun(chosen, measure), field.noun.one
    question = draft.pick(
        (
            f"For each {one}, show the {one} and the {what} of the {rows.many}.",
            f"What {'are' if len(chosen) > 1 else 'is'} the {what} of the {rows.many} for each"
            f" {one}? Give the {one} first.",
        )
    )
    where = " AND ".join(rows.where)
    value = f"{first}(CASE WHEN {where} THEN {measure.value_sql()} END)"
    if where and len(chosen) > 1:
        draft.unless(True)
    every = (_without_where(query, value),) * bool(where)
    return rows.candidate(question, query, several=True, readings=every)


_KINDS = lexicon.PLACE_COLUMNS | {"type", "category", "kind", "genre", "department", "year"}
"""Columns whose values "have" the rows that share them."""


@template("groups-with-many", weight=1.5)
def groups_with_many(draft: Draft) -> Candidate:
    """Values that enough rows share."""
    rows = rows_of(draft, _groupable, (0, 0, 1))
    field = grouping(draft, rows.entity, rows.used)
    sign, least = draft.pick(((">", 1), (">=", 2), (">", 2), (">=", 3), (">=", 5), (">", 10)))
    words = f"{'more than' if sign == '>' else 'at least'} {least}"
    with_count, many = draft.chance(0.3), field.noun.many
    select = (field.sql(), "count(*)") if with_count else (field.sql(),)
    query = rows.query(*select, group=field.sql(), having=f"count(*) {sign} {least}")
    things = rows.entity.noun.one + rows.after if least == 1 else rows.many
    have = "have" if field.noun.last in _KINDS else "are shared by"
    also = f" Give the {field.noun.one} and the number of {rows.entity.noun.many}." * with_count
    question = f"Which {many} {have} {words} {things}?{also}"
    return rows.candidate(question, query)


@template("most-common", weight=2)
def most_common(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """The value that most rows share."""
    rows = rows_of(draft, _groupable, own, parents)
    field = grouping(draft, rows.entity, rows.used)
    is_most, column = draft.chance(0.8) or bool(rows.after), field.sql(rows.alias)
    order = f"count(*) {'DESC' if is_most else 'ASC'}"
    query = rows.query(column, group=column, order=order, limit=1)
    what = f"{'most' if is_most else 'least'} common {field.noun.one} of the {rows.many}"
    return rows.candidate(ask(draft, what, many=False), query, one_row=True)


template("most-common-of-parent", weight=2)(partial(most_common, own=(0,), parents=1))


@template("group-with-top-aggregate", weight=0.6)
def group_with_top_aggregate(draft: Draft) -> Candidate:
    """The value whose rows have the highest or lowest average or sum."""
    rows = rows_of(draft, lambda e: _groupable(e) and measures(e), (0, 0, 1))
    field = grouping(draft, rows.entity, rows.used)
    measure = draft.pick(f for f in measures(rows.entity) if f.name not in rows.used)
    function = draft.pick(f for f in functions(measure) if f in ("avg", "sum"))
    is_most = draft.chance(0.7)
    order = f"{function}({measure.value_sql()}) {'DESC' if is_most else 'ASC'}"
    query = rows.query(field.sql(), group=field.sql(), order=order, limit=1)
    question = (
        f"For which {field.noun.one} is the {aggregate_noun([function], measure)} of the"
        f" {rows.many} the {'highest' if is_most else 'lowest'}?"
    )
    return rows.candidate(question, query, one_row=True)


@template("groups-by-average", weight=0.4)
def groups_by_average(draft: Draft) -> Candidate:
    """Values whose rows have an average above or below a limit."""
    entity = entity_of(draft, lambda e: _groupable(e) and measures(e))
    field, measure = grouping(draft, entity), draft.pick(measures(entity))
    draft.unless("avg" not in functions(measure))
    limit = spoken_values.threshold(measure, draft.rng) or 0.0
    sign, words = draft.pick(((">", "more than"), ("<", "less than")))
    having = f"avg({measure.value_sql()}) {sign} {spoken_values.number_sql(limit)}"
    query = Query((field.sql(),), entity.sql, group=field.sql(), having=having)
    amount = spoken_values.amount(measure, limit, False)
    question = (
        f"For which {field.noun.many} is the average {measure.noun.one} of the"
        f" {entity.noun.many} {words} {amount}?"
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@template("count-per-parent-column", weight=2)
def count_per_parent_column(draft: Draft) -> Candidate:
    """The number of rows for each value of a column of what they refer to."""
    link = draft.pick(k for k in draft.world.links if is_said(k) and not k.child.is_link)
    junctions = {bridge.left.child.name for bridge in draft.world.bridges}
    draft.unless(link.child.name in junctions)
    field, is_top = grouping(draft, link.parent), draft.chance(0.4)
    source = f"{link.child.sql} AS T1 JOIN {link.parent.sql} AS T2 ON {link.on('T1', 'T2')}"
    rows = Rows(link.child, source, "T1", (link.child.name, link.parent.name))
    column, many = field.sql("T2"), link.child.noun.many
    said = f"{role_of(link)} {field.noun.one}"
    if is_top:
        query = rows.query(column, group=column, order="count(*) DESC", limit=1)
        return rows.candidate(f"Which {said} has the most {many}?", query, one_row=True)
    query = rows.query(column, "count(*)", group=column)
    counted = f"count({link.on('T1', 'T2').partition(' = ')[0]})"
    every = query.sql().replace("count(*)", counted).replace(" JOIN ", " RIGHT JOIN ")
    question = (
        f"For each {said}, how many {many} are there? Give the {field.noun.one} and the number."
    )
    return rows.candidate(question, query, several=True, readings=(every,))

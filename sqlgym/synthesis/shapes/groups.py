"""One table, grouped by a column or by the years or months of a date.

How many, how much, which groups, and which has the most. A column to group by has few values, all
of them known and none alike but for their case. How a month is to be written is said, since it is
the SQL that decides it.
"""

from __future__ import annotations

from sqlgym.synthesis import english, lexicon, spoken_values
from sqlgym.synthesis.conditions import conditions, forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, shape
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import aggregates, asking
from sqlgym.synthesis.shapes.filters import asked


def _dated(entity: Entity) -> list[Field]:
    return [
        f
        for f in entity.having(Role.DATE)
        if f.noun.is_readable and f.is_full and len(conditions.years_of(f)) > 1
    ]


@shape("count-per-year")
def count_per_year(draft: Draft) -> Candidate:
    """How many rows there are in each year or calendar month of a date."""
    entity = draft.entity(_dated)
    field = draft.pick(_dated(entity))
    part = draft.pick(("year", "year", "month"))
    key = conditions.date_part(field, part, field.sql())
    where, after, filters = conditions.perhaps(
        draft, 0.3, entity, besides=(field.name,), kinds=conditions.PHRASES
    )
    query = Query((key, "count(*)"), entity.sql, where, key)
    how = "" if part == "year" else " Write the month in two digits, from 01 to 12."
    calendar = "year" if part == "year" else "calendar month, whatever the year"
    many, when = f"{entity.noun.many}{after}", asking.event_of(field)
    by, give = asking.by_date(entity, field), f"Give the {part} and the number.{how}"
    draft.unless(not when and " when " in by)
    those = f"{many} that {when}" if when else many
    by = "" if when else by
    question = asking.ask(
        draft,
        f"the number of {those} in each {calendar}{by}, with the {part} first",
        f"How many {many} {when or 'were there'} in each {calendar}{by}? {give}",
        f"How many {many} {when or 'were there'} in each {calendar}{by}? {give}",
        f"In each {calendar}, how many {many} {when or 'were there'}{by}? {give}",
        f"Count the {those} in each {calendar}{by}. {give}",
        is_many=None,
        then=how,
    )
    return asked(question, query, (entity.name,), *filters, several=True)


@shape("year-with-most")
def year_with_most(draft: Draft) -> Candidate:
    """The year with the most rows."""
    entity = draft.entity(_dated)
    field = draft.pick(_dated(entity))
    key = conditions.date_part(field, "year", field.sql())
    where, after, filters = conditions.perhaps(
        draft, 0.5, entity, besides=(field.name,), kinds=("be", "with")
    )
    query = Query((key,), entity.sql, where, key, "", "count(*) DESC", 1)
    most, when = f"the most {entity.noun.many}{after}", asking.event_of(field)
    by = asking.by_date(entity, field)
    draft.unless(not when and " when " in by)
    question = asking.ask(
        draft,
        f"the year in which {most} {when}" if when else f"the year with {most}{by}",
        _did(f"In which year {{}} {most} {{}}?", when),
        _did(f"In which year {{}} {most} {{}}?", when),
        f"Which year had {most}{by}?" if not when else None,
        f"In which year were there {most}{by}?" if not when else None,
        is_many=False,
    )
    return asked(question, query, (entity.name,), *filters, one_row=True)


def _did(question: str, event: str) -> str | None:
    """A question with a verb around what does it: "were ... hired", "did ... join"."""
    if not event:
        return None
    if event.startswith("were "):
        return question.format("were", event.removeprefix("were "))
    return question.format("did", english.base_verb(event))


MOST_GROUPS = 25
"""More groups than this make no fair answer."""


def grouping(draft: Draft, entity: Entity) -> Field:
    """A column to group by: few values, none of them missing, none alike but for its case."""
    return draft.pick(
        field
        for field in entity.having(Role.CATEGORY, Role.YEAR)
        if 2 <= field.distinct <= MOST_GROUPS
        and not is_long(field)
        and field.is_full
        and field.distinct < entity.rows
        and len({str(value).casefold().strip() for value in field.values}) == len(set(field.values))
    )


def is_long(field: Field) -> bool:
    """Whether it holds sentences, by which nobody groups."""
    if field.noun.last in lexicon.FREE_TEXTS:
        return True
    return any(isinstance(v, str) and (len(v) > 40 or v.count(" ") > 4) for v in field.values)


def _groupable(entity: Entity) -> bool:
    return bool(entity.having(Role.CATEGORY, Role.YEAR))


@shape("group-count")
def group_count(draft: Draft) -> Candidate:
    """How many rows there are for each value, in all or among some rows."""
    entity = draft.entity(_groupable)
    field = grouping(draft, entity)
    where, after, filters = conditions.perhaps(draft, 0.4, entity, besides=(field.name,))
    only = f" Leave out {field.noun.many} without such {entity.noun.many}." if where else ""
    query = Query((field.sql(), "count(*)"), entity.sql, where, field.sql())
    many, one = entity.noun.many, field.noun.one
    each = f"{forms.placed_by(entity, field) or 'for'} each {one}"
    is_plain = not asking.is_clause(after)
    question = asking.ask(
        draft,
        f"the number of {many}{after} {each}, with the {one} first" if is_plain else None,
        f"How many {many}{after} are there {each}? Give the {one} and the number.{only}"
        if is_plain
        else None,
        f"For each {one}, how many {many} are there{after}? Give the {one} and the number.{only}"
        if not is_plain
        else None,
        f"For each {one}, give the {one} and the number of {many}{after}.{only}",
        f"For each {one}, count the {many}{after}. Show the {one} and the count.{only}",
        f"Group the {many}{after} by {one}, and give each {one} with the number of {many}.",
        f"List each {one} with its number of {many}{after}.{only}",
        is_many=None,
        then=only,
    )
    return asked(question, query, (entity.name,), *filters, several=True)


@shape("group-aggregate")
def group_aggregate(draft: Draft) -> Candidate:
    """An aggregate for each value of a column."""
    entity = draft.entity(lambda e: _groupable(e) and e.having(Role.QUANTITY))
    field = grouping(draft, entity)
    measure = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_full)
    function = draft.pick(aggregates.functions(measure))
    noun = aggregates.aggregate_noun(draft, function, measure)
    where, after, filters = conditions.perhaps(
        draft, 0.3, entity, besides=(field.name, measure.name)
    )
    each = f"{forms.placed_by(entity, field) or 'for'} each {field.noun.one}"
    is_plain = not asking.is_clause(after)
    select = (field.sql(), aggregates.aggregate_sql(function, measure))
    query = Query(select, entity.sql, where, field.sql())
    many, one = entity.noun.many, field.noun.one
    question = asking.ask(
        draft,
        f"the {noun} of the {many}{after} {each}, with the {one} first" if is_plain else None,
        f"What is the {noun} of the {many}{after} {each}? Give the {one} and the {noun}."
        if is_plain
        else None,
        f"For each {one}, find the {noun} of the {many}{after}. Show the {one} first.",
        f"For each {one}, what is the {noun} of the {many}{after}? Give the {one} first.",
        f"Per {one}, find the {noun} of the {many}{after}. Show the {one} first.",
        is_many=None,
    )
    return asked(question, query, (entity.name,), *filters, several=True)


@shape("group-having")
def group_having(draft: Draft) -> Candidate:
    """Values that occur often enough."""
    entity = draft.entity(_groupable)
    field = grouping(draft, entity)
    sign, least = draft.pick(
        ((">", 1), (">=", 2), (">", 2), (">=", 3), ("<", 3), (">=", 5), (">", 10))
    )
    words = {">": "more than", ">=": "at least", "<": "fewer than"}[sign]
    with_count = draft.chance(0.5)
    select = (field.sql(), "count(*)") if with_count else (field.sql(),)
    query = Query(select, entity.sql, (), field.sql(), f"count(*) {sign} {least}")
    things = entity.noun.many if least > 1 or sign != ">" else entity.noun.one
    times = f"{words} {english.number_word(least)}"
    one, nouns = field.noun.one, field.noun.many
    extra = f" Give the {one} and the number of {entity.noun.many}." if with_count else ""
    share = f"the {nouns} with {times} {things}"
    draft.unless(sign == "<" and forms.placed_by(entity, field))
    also = f", each with the number of {entity.noun.many}" if with_count else ""
    question = asking.ask(
        draft,
        share + also if least > 1 else None,
        f"Which {nouns} have {times} {things}?{extra}" if sign != "<" else None,
        f"For which {nouns} are there {times} {things}?{extra}" if sign == "<" else None,
        f"Find the {nouns} with {times} {things}.{extra}" if sign != "<" else None,
        f"List each {one} with {times} {things}.{extra}" if sign != "<" and least > 1 else None,
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@shape("group-having-aggregate")
def group_having_aggregate(draft: Draft) -> Candidate:
    """Values whose rows have a high or low average."""
    entity = draft.entity(lambda e: _groupable(e) and e.having(Role.QUANTITY))
    field = grouping(draft, entity)
    measure = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_full)
    limit = spoken_values.threshold(measure, draft.rng)
    draft.unless(limit is None)
    sign = draft.pick((">", "<"))
    shown = spoken_values.number_sql(limit or 0.0)
    having = f"{aggregates.aggregate_sql('avg', measure)} {sign} {shown}"
    query = Query((field.sql(),), entity.sql, (), field.sql(), having)
    word = {">": "above", "<": "below"}[sign]
    amount = spoken_values.amount(measure, limit or 0.0, draft.commas)
    many, one, nouns = entity.noun.many, measure.noun.one, field.noun.many
    question = asking.ask(
        draft,
        f"the {nouns} for which the average {one} of the {many} is {word} {amount}",
        f"For which {nouns} is the average {one} of the {many} {word} {amount}?",
        f"List every {field.noun.one} for which the average {one} of the {many} is {word}"
        f" {amount}.",
        f"Find the {nouns} for which the {many} have an average {one} {word} {amount}.",
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@shape("group-most")
def group_most(draft: Draft) -> Candidate:
    """The value with the most or the fewest rows."""
    entity = draft.entity(_groupable)
    field = grouping(draft, entity)
    where, after, filters = conditions.perhaps(draft, 0.5, entity, besides=(field.name,))
    with_count = draft.chance(0.5)
    is_most = draft.chance(0.75) or bool(where)
    select = (field.sql(), "count(*)") if with_count else (field.sql(),)
    order = f"count(*) {'DESC' if is_most else 'ASC'}"
    query = Query(select, entity.sql, where, field.sql(), "", order, 1)
    extra = ", and how many are there" if with_count else ""
    many, one = entity.noun.many, field.noun.one
    question = asking.ask(
        draft,
        f"the {'most' if is_most else 'least'} common {one} among the {many}{after}"
        f"{', and how often it occurs' if with_count else ''}",
        f"Which {one} has the most {many}{after}{extra}?" if is_most else None,
        f"Which {one} occurs {'most' if is_most else 'least'} often among the {many}{after}{extra}?"
        if not with_count
        else f"Which {one} is {'most' if is_most else 'least'} frequent among the {many}{after},"
        f" and how often does it occur?",
        f"What is the {'most' if is_most else 'least'} common {one} among the {many}{after}"
        f"{', and how often does it occur' if with_count else ''}?",
        is_many=None if with_count else False,
    )
    return asked(question, query, (entity.name,), *filters, one_row=True)


@shape("group-top-aggregate")
def group_top_aggregate(draft: Draft) -> Candidate:
    """The value whose rows have the highest or lowest average or sum."""
    entity = draft.entity(lambda e: _groupable(e) and e.having(Role.QUANTITY))
    field = grouping(draft, entity)
    measure = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_full)
    function = draft.pick(f for f in aggregates.functions(measure) if f in ("avg", "sum"))
    is_most = draft.chance(0.6)
    where, after, filters = conditions.perhaps(
        draft, 0.4, entity, besides=(field.name, measure.name)
    )
    order = f"{aggregates.aggregate_sql(function, measure)} {'DESC' if is_most else 'ASC'}"
    query = Query((field.sql(),), entity.sql, where, field.sql(), "", order, 1)
    noun = aggregates.aggregate_noun(draft, function, measure)
    many, one, end = entity.noun.many, field.noun.one, "highest" if is_most else "lowest"
    whose = "whose" if forms.placed_by(entity, field) else "for which the"
    question = asking.ask(
        draft,
        f"the {one} {whose} {many}{after} have the {end} {noun}",
        f"For which {one} is the {noun} of the {many}{after} the {end}?",
        f"For which {one} do the {many}{after} have the {end} {noun}?",
        f"Find the {one} for which the {noun} of the {many}{after} is the {end}.",
        is_many=False,
    )
    return asked(question, query, (entity.name,), *filters, one_row=True)

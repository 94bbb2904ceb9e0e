"""From year to year: the change between two years, the year of the largest rise, running totals.

A change "from the year before" needs all years in between, so where one has no rows nothing is
asked. That a rise is one, and not a fall, is shown by a reading with its amount or its sign.
"""

from __future__ import annotations

from sqlgym.synthesis import english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, shape
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import aggregates, asking, comparing, groups


def _timed(entity: Entity) -> list[Field]:
    """Dates and years whose year can be counted by."""
    return [
        f
        for f in entity.having(Role.DATE, Role.YEAR)
        if f.noun.is_readable and f.is_full and f.distinct > 1
    ]


def _year(field: Field) -> str:
    """The year in SQL, as text of a date and as a number of a year."""
    if field.role is Role.YEAR:
        return field.value_sql()
    return conditions.date_part(field, "year", field.sql())


def _years(field: Field) -> list[str]:
    if field.role is Role.YEAR:
        return [str(int(float(value))) for value in sorted(set(field.values))]
    return list(conditions.years_of(field))


def _is_year(field: Field, year: str) -> str:
    return f"{_year(field)} = {year}" if field.role is Role.YEAR else f"{_year(field)} = '{year}'"


_event = asking.event_of


def _of_year(entity: Entity, field: Field) -> str:
    """Behind a noun in the plural: by which column its rows belong to a year."""
    if event := _event(field):
        return f" {event.removeprefix('were ')}" if event.startswith("were ") else f" that {event}"
    return asking.by_date(entity, field).replace(",", "", 1)


@shape("change-between-years", large=False)
def change_between_years(draft: Draft) -> Candidate:
    """How many more or fewer rows there are in a year than in an earlier one."""
    entity = draft.entity(_timed)
    field = draft.pick(_timed(entity))
    years = _years(field)
    draft.unless(len(years) < 2)
    place = draft.pick(range(len(years) - 1))
    early, late = years[place], years[min(place + draft.pick((1, 1, 1, 2)), len(years) - 1)]
    is_rise = draft.chance(0.6)
    where, after, _ = conditions.perhaps(
        draft, 0.3, entity, besides=(field.name,), kinds=conditions.PHRASES
    )
    more, fewer = (comparing.counted(_is_year(field, y)) for y in (late, early))
    if not is_rise:
        more, fewer = fewer, more
    query = Query((f"{more} - {fewer}",), entity.sql, where)
    by = asking.by_date(entity, field)
    event = _event(field) or ("are from" if field.noun.one == "year" else "were there")
    told = "there were" if event == "were there" else event  # in an indirect question
    inside = "" if event == "are from" else "in "
    things = f"{entity.noun.many}{after}"
    rose, word = ("rise", "more") if is_rise else ("fall", "fewer")
    number = f"the number of {things}{_of_year(entity, field)} per year"
    again = "from " if event == "are from" else inside
    by = by if event == "were there" else ""
    draft.unless(" when " in by)
    question = asking.ask(
        draft,
        None,
        f"How many {word} {things} {event} {inside}{late} than {again}{early}{by}?",
        f"How many {word} {things} {event} {inside}{late} than {again}{early}{by}?",
        f"From {early} to {late}, by how much did {number} {rose}?",
        f"By how much did {number} {rose} from {early} to {late}?",
        f"Find out how many {word} {things} {told} {inside}{late} than {again}{early}{by}.",
        f"Tell me how many {word} {things} {told} {inside}{late} than {again}{early}{by}.",
        f"Compared with {early}, how many {word} {things} {event} {inside}{late}{by}?",
        is_many=False,
    )
    sql = query.sql()
    reading = sql.replace(query.select[0], f"abs({query.select[0]})", 1)
    alone = sql.replace(query.select[0], more, 1)
    return Candidate(question, sql, (entity.name,), (*query.weaker(), alone), (reading,))


@shape("year-of-largest-rise", large=False)
def year_of_largest_rise(draft: Draft) -> Candidate:
    """The year in which a count or a sum rose or fell the most over the year before."""
    entity = draft.entity(_timed)
    field = draft.pick(_timed(entity))
    chance = 0.4 if _event(field) else 0.0
    where, after, _ = conditions.perhaps(
        draft, chance, entity, besides=(field.name,), kinds=("be",)
    )
    is_rise = draft.chance(0.65)
    year = _year(field) if field.role is Role.YEAR else f"CAST({_year(field)} AS INTEGER)"
    measures = [f for f in entity.having(Role.QUANTITY) if f.is_added and f.is_full]
    measure = draft.pick(measures) if measures and draft.chance(0.4) else None
    figure = aggregates.aggregate_sql("sum", measure) if measure else "count(*)"
    before = f"lag({figure}) OVER (ORDER BY {year})"
    change = f"{figure} - {before}" if is_rise else f"{before} - {figure}"
    with_amount = measure is None and draft.chance(0.4)
    inner = Query((f"{year} AS year", f"{change} AS change"), entity.sql, where, year)
    shown = ("year", "change") if with_amount else ("year",)
    query = Query(shown, f"({inner.sql()})", order="change DESC", limit=1)
    things, rose = f"{entity.noun.many}{after}", "rise" if is_rise else "fall"
    what = f"the number of {things}"
    if measure:
        what = f"the {aggregates.aggregate_noun(draft, 'sum', measure)} of the {things}"
    of = _of_year(entity, field)
    if not _event(field):
        what = what.replace("the ", "the yearly ", 1)
        of = f"{asking.by_date(entity, field)}," if of else ""
    over, also = "compared with the year before", ", and by how much" if with_amount else ""
    question = asking.ask(
        draft,
        f"the year in which {what}{of} {'rose' if is_rise else 'fell'} the most {over}"
        f"{', and by how much' if with_amount else ''}",
        f"In which year did {what}{of} {rose} the most {over}{also}?",
        f"Which year saw the largest {rose} in {what}{of} {over}{also}?",
        f"Going from each year to the next, in which one did {what}{of} {rose} the most{also}?",
        is_many=None if with_amount else False,
    )
    number = f"count(DISTINCT {year})"
    no_gap = f"max({year}) - min({year}) + 1 = {number} AND {number} > 2"
    years = Query((no_gap,), entity.sql, where)
    strict = Query(
        shown, query.source, ("change > 0", f"({years.sql()})"), order="change DESC", limit=1
    )
    contrasts = [*query.weaker()]
    if where:
        plain = Query(inner.select, entity.sql, (), year).sql()
        contrasts.append(query.sql().replace(inner.sql(), plain))
    most = Query(
        (f"{year}", figure)[: len(shown)], entity.sql, where, year, "", f"{figure} DESC", 1
    ).sql()  # the year with the most of all is another question
    return Candidate(
        question, query.sql(), (entity.name,), (*contrasts, most), (strict.sql(),), one_row=True
    )


@shape("running-count", large=False)
def running_count(draft: Draft) -> Candidate:
    """How many rows there were up to the end of each year."""
    entity = draft.entity(_timed)
    field = draft.pick(f for f in _timed(entity) if _event(f))
    draft.unless(len(_years(field)) > groups.MOST_GROUPS)
    where, after, _ = conditions.perhaps(
        draft, 0.35, entity, besides=(field.name,), kinds=conditions.PHRASES
    )
    year, event = _year(field), _event(field)
    had = english.past_participle(event)
    query = Query((year, f"sum(count(*)) OVER (ORDER BY {year})"), entity.sql, where, year)
    things = f"{entity.noun.many}{after}"
    question = asking.ask(
        draft,
        None,
        f"For each year in which any {things} {event}, how many had {had} in total by the end of"
        " the year? Give the year first.",
        f"For each year in which any {things} {event}, give the year and the total number that had"
        f" {had} by the end of it.",
        f"How many {things} had {had} in total by the end of each year? Give the year and the"
        f" number for every year in which any {event}.",
        f"List each year in which any {things} {event}, and the total number that had {had} by the"
        " end of it.",
        f"For every year with any {things} that {event}, show the year, then how many had {had} in"
        " total by the end of it.",
        f"What was the total number of {things} that had {had} by the end of each year? Give the"
        f" year first, for every year in which any {event}.",
        f"By the end of each year, how many {things} had {had} in total? Leave out years in which"
        f" none {event}. Give the year first.",
    )
    contrasts = [query.sql().replace("sum(count(*)) OVER", "max(count(*)) OVER")]
    contrasts += query.weaker() if where else []
    return Candidate(question, query.sql(), (entity.name,), tuple(contrasts), several=True)

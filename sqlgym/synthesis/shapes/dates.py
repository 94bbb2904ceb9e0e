"""Days between two dates of a row, and days of the week.

Days are counted with `julianday`, of columns that hold dates without a time of day. Which of two
dates is the later one is told by their values; rows that lack one have no number of days.
"""

from __future__ import annotations

from sqlgym.synthesis import english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.forms import event_forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking, comparing
from sqlgym.synthesis.shapes.filters import asked, readings

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _dates(entity: Entity) -> list[Field]:
    return [
        f
        for f in entity.having(Role.DATE)
        if f.noun.is_readable and not f.has_time and not f.has_blanks and not f.is_large
    ]


def _spanned(entity: Entity) -> list[Field]:
    """Dates between which days are counted; of a life they are too many."""
    return [f for f in _dates(entity) if not {"birth", "death"} & set(f.noun.one.split(" "))]


def _span(draft: Draft) -> tuple[Entity, Field, Field]:
    """Two dates of a table, the one that is mostly earlier first."""
    entity = draft.entity(lambda e: len(_spanned(e)) > 1)
    first, second = draft.rng.sample(_spanned(entity), 2)
    middle = [sorted(field.values)[len(field.values) // 2] for field in (first, second)]
    return (entity, first, second) if middle[0] <= middle[1] else (entity, second, first)


def _days(first: Field, second: Field) -> str:
    return f"julianday({second.sql()}) - julianday({first.sql()})"


def _mostly_later(entity: Entity, first: Field, second: Field) -> str:
    """A count that is above 1 where the second date is later in most rows that have both."""
    later = f"count(CASE WHEN {second.sql()} > {first.sql()} THEN 1 END)"
    return Query((f"2 * {later} - count({_days(first, second)})",), entity.sql).sql()


def _in_order(query: Query, first: Field, second: Field) -> str:
    """The same without rows whose second date is before the first."""
    test = f"{second.sql()} >= {first.sql()}"
    where = f" WHERE {test} AND " if query.where else f" WHERE {test}"
    sql = query.sql()
    if query.where:
        return sql.replace(" WHERE ", where, 1)
    return sql.replace(f"FROM {query.source}", f"FROM {query.source}{where}", 1)


def _between(draft: Draft, one: str, other: str) -> str:
    """Between which days, of one row: "between the date lent and the date returned"."""
    return draft.say(f"between the {one} and the {other}", f"from the {one} to the {other}")


def _known(entity: Entity, first: Field, second: Field) -> str:
    """That rows are left out that lack a date, where there are any."""
    missing = [
        english.a(asking.called_date(entity, field)) for field in (first, second) if field.nulls
    ]
    if not missing:
        return ""
    return f" Leave out {entity.noun.many} without {english.join_words(missing, 'or')}."


@shape("days-apart", large=False)
def days_apart(draft: Draft) -> Candidate:
    """Rows whose two dates are more or fewer than so many days apart."""
    entity, first, second = _span(draft)
    number = draft.pick((2, 3, 5, 7, 10, 14, 20, 21, 28, 30, 60, 90, 180, 365))
    sign = draft.pick((">", ">", "<", ">=", "<="))
    phrase = {
        ">": "more than {}",
        "<": "less than {}",
        ">=": "at least {}",
        "<=": "at most {}",
    }[sign].format(f"{english.number_word(number)} days")
    where, after, filters = conditions.perhaps(
        draft, 0.25, entity, besides=(first.name, second.name), kinds=conditions.SHORT
    )
    test = f"{_days(first, second)} {sign} {number}"
    shown = () if draft.chance(0.5) else asking.shown(draft, entity, first.name, second.name)
    query = Query(columns(shown) or ("count(*)",), entity.sql, (*where, test))
    clause, verb = _apart(draft, entity, first, second, phrase)
    question = asking.list_or_count(
        draft, entity, shown, f"{after.strip()} {clause}".strip(), None if after else verb
    )
    question = _of_each(question, entity, clause)
    candidate = asked(question, query, (entity.name,), *filters)
    others = (*candidate.readings, _in_order(query, first, second))
    return Candidate(question, candidate.sql, candidate.tables, candidate.contrasts, others)


def _of_each(question: str, entity: Entity, clause: str) -> str:
    """The question with its clause in the singular where it speaks of each row."""
    one = entity.noun.one
    if not any(f"{word} {one} " in question for word in ("each", "every")):
        return question
    single = clause.replace("that were ", "that was ", 1)
    if not entity.is_person:
        single = single.replace(" they were ", " it was ").replace(" they ", " it ")
        single = single.replace(" after their ", " after its ")
    return question.replace(clause, single)


def _apart(
    draft: Draft, entity: Entity, first: Field, second: Field, phrase: str
) -> tuple[str, str | None]:
    """So many days apart, behind a noun and as a verb."""
    one, other = asking.called_date(entity, first), asking.called_date(entity, second)
    plain = f"whose {other} is {phrase} after their {one}"
    events, earlier = event_forms(second, ""), event_forms(first, "")
    ways: list[tuple[str, str | None]] = [
        (plain, None),
        (f"with {phrase} between the {one} and the {other}", None),
    ]
    if events:
        verb = f"{events[0].text.strip()} {phrase} after their {one}"
        ways.append((f"that {verb}", verb))
    if events and earlier and draft.chance(0.8):
        verb = f"{events[0].text.strip()} {phrase} after they {earlier[0].text.strip()}"
        return f"that {verb}", verb
    return draft.pick(ways)


@shape("average-days", large=False)
def average_days(draft: Draft) -> Candidate:
    """The average, lowest or highest number of days between two dates."""
    entity, first, second = _span(draft)
    function, word = draft.pick(
        (("avg", "average"), ("avg", "average"), ("max", "largest"), ("min", "smallest"))
    )
    where, after, filters = conditions.perhaps(
        draft, 0.5, entity, besides=(first.name, second.name)
    )
    days = f"{function}({_days(first, second)})"
    is_exact = function != "avg"
    figure = comparing.Rounded(days, "", ()) if is_exact else comparing.rounded(draft, days, 1)
    query = Query((figure.sql,), entity.sql, where)
    between = _between(draft, asking.called_date(entity, first), asking.called_date(entity, second))
    things = f"{entity.noun.many}{after}"
    all_ = "the" if where else "all"
    rest = f"{_known(entity, first, second)}{figure.said}"
    question = asking.ask(
        draft,
        f"the {word} number of days {between} of {all_} {things}",
        f"How many days passed on average {between} of {all_} {things}?{rest}"
        if function == "avg"
        else None,
        f"Over {all_} {things}, what is the {word} number of days {between}?{rest}",
        f"Among {all_} {things}, find the {word} number of days {between}.{rest}",
        is_many=False,
        then=rest,
    )
    count = Query((f"count(DISTINCT {_days(first, second)})",), entity.sql, where).sql()
    nudged = tuple(query.sql().replace(figure.sql, other, 1) for other in figure.nudged)
    others = (*readings(query, *filters), *nudged, _in_order(query, first, second))
    later = _mostly_later(entity, first, second)
    return Candidate(
        question, query.sql(), (entity.name,), query.weaker(), others, (count, later), one_row=True
    )


@shape("longest-span", large=False)
def longest_span(draft: Draft) -> Candidate:
    """The row with the most days between two dates."""
    entity, first, second = _span(draft)
    where, after, filters = conditions.perhaps(
        draft, 0.4, entity, besides=(first.name, second.name), kinds=conditions.SHORT
    )
    shown = asking.shown(draft, entity, first.name, second.name)
    query = Query(columns(shown), entity.sql, where, order=f"{_days(first, second)} DESC", limit=1)
    start, end = asking.called_date(entity, first), asking.called_date(entity, second)
    between = f"between the {start} and the {end}"
    one, rest = f"{entity.noun.one} {english.of_one(after.strip())}".strip(), the(shown)
    question = asking.ask(
        draft,
        f"{rest} of the {one} with the longest time {between}",
        f"Which {one} has the longest time {between}? Give {rest}.",
        f"For which {one} did the most days pass {between}? Give {rest}.",
        f"For which {one} was the time {between} the longest? Show {rest}.",
        is_many=len(shown) > 1,
    )
    return asked(question, query, (entity.name,), *filters, one_row=True)


@shape("on-weekday", large=False)
def on_weekday(draft: Draft) -> Candidate:
    """How many rows have a date on a day of the week, or at a weekend."""
    entity = draft.entity(lambda e: _dates(e) and e.rows > 20)
    field = draft.pick(_dates(entity))
    column = f"strftime('%w', {field.sql()})"
    if draft.chance(0.25):
        test, when = f"{column} IN ('0', '6')", "on a Saturday or Sunday"
    else:
        number = draft.pick(range(7))
        test, when = f"{column} = '{number}'", f"on a {_DAYS[number]}"
    others = tuple(f.name for f in entity.having(Role.DATE))
    own, after, filters = conditions.perhaps(
        draft, 0.3, entity, besides=others, kinds=conditions.SHORT
    )
    query = Query(("count(*)",), entity.sql, (*own, test))
    events = event_forms(field, when)
    verb = events[0].text if events else None
    clause = events[0].after() if events else f"whose {field.noun.one} falls {when}"
    if not events and not asking.by_date(entity, field):
        verb = f"were there {when}"
    question = asking.count_rows(
        draft, entity, f"{after.strip()} {clause}".strip(), None if after else verb
    )
    return asked(question, query, (entity.name,), *filters)

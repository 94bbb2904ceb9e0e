"""Conditions on dates: before and after a day, in a month, in a year.

Dates are ISO texts, with or without a time of day. "After 3 May" leaves that day out, also where a
time stands behind it; "from 3 May on" does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from sqlgym.synthesis.conditions.forms import Form, happened
from sqlgym.synthesis.drafting import Draft
from sqlgym.synthesis.language import english
from sqlgym.synthesis.reading import spoken_values
from sqlgym.synthesis.reading.world import Entity, Field


def condition(
    draft: Draft, entity: Entity, field: Field, alias: str = ""
) -> tuple[str, tuple[Form, ...]]:
    """Some condition on a date: SQL, and the ways to say it."""
    ways = [_before, _after, _in_month]
    if len(years_of(field)) > 1:
        ways += [_in_year, _in_year, _before_year]
    if len({value[5:7] for value in field.values}) > 2 and len(years_of(field)) > 1:
        ways.append(_in_month_of_any_year)
    return draft.pick(ways)(draft, field, field.sql(alias))


def part(field: Field, name: str, column: str) -> str:
    """The year or month of a date in SQL, as text.

    SQLite's date functions run outside its own machine here, a hundred times slower than `substr`.
    """
    if field.is_large:
        return f"substr({column}, {'1, 4' if name == 'year' else '6, 2'})"
    return f"strftime('{'%Y' if name == 'year' else '%m'}', {column})"


def years_of(field: Field) -> Sequence[str]:
    """The years that occur, in order."""
    return sorted({value[:4] for value in field.values})


def _before(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    sign = draft.pick(("<", "<="))
    if sign == "<":
        return f"{column} < '{day}'", _forms(field, f"before {english.written_date(day)}")
    until = f"{column} <= '{day}'"
    if field.has_time:
        until = f"{column} < '{day + timedelta(days=1)}'"
    return until, _forms(field, f"on or before {english.written_date(day)}")


def _after(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    if draft.chance(0.4):
        return f"{column} >= '{day}'", _forms(field, f"on or after {english.written_date(day)}")
    since = f"{column} > '{day}'"
    if field.has_time:
        since = f"{column} >= '{day + timedelta(days=1)}'"
    return since, _forms(field, f"after {english.written_date(day)}")


def _in_month(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    month = f"{english.month_name(day.month)} {day.year}"
    sql = f"{column} LIKE '{day:%Y-%m}-%'"
    if draft.chance(0.5) and not field.is_large:
        sql = f"strftime('%Y-%m', {column}) = '{day:%Y-%m}'"
    return sql, _forms(field, f"in {month}")


def _in_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    year = draft.pick(years_of(field))
    return f"{part(field, 'year', column)} = '{year}'", _forms(
        field, draft.say(f"in {year}", f"in the year {year}")
    )


def _before_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    year = draft.pick(years_of(field)[1:])
    return f"{column} < '{year}-01-01'", _forms(field, f"before {year}")


def _in_month_of_any_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    month = _day(draft, field).month
    said = f"in {english.month_name(month)} of any year"
    return f"{part(field, 'month', column)} = '{month:02d}'", _forms(field, said)


def _forms(field: Field, when: str) -> tuple[Form, ...]:
    if " when " in field.noun.one:
        return tuple(happened(field, when))
    found = [Form("whose", f"{field.noun.one} is {when}"), *happened(field, when)]
    if field.noun.is_readable:
        found.append(Form("with", f"{field.noun.a} {when}"))
    return tuple(found)


def _day(draft: Draft, field: Field) -> date:
    """A day that occurs, away from the first and the last."""
    days = field.values
    place = int(len(days) * (0.15 + 0.7 * draft.rng.random()))
    return spoken_values.day_of(days[place])

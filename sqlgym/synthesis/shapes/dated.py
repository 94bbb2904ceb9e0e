"""Dates as parts: how many in each year or month, and in which year the most.

How a month is to be written is said, since it is the SQL that decides it.
"""

from __future__ import annotations

from sqlgym.synthesis.conditions import conditions, dates
from sqlgym.synthesis.conditions.forms import happened
from sqlgym.synthesis.drafting import Candidate, Draft, Query
from sqlgym.synthesis.reading.world import Entity, Field, Role
from sqlgym.synthesis.shapes.filters import asked
from sqlgym.synthesis.shapes.registry import shape


def _dated(entity: Entity) -> list[Field]:
    return [
        f
        for f in entity.having(Role.DATE)
        if f.noun.is_readable and f.is_full and len(dates.years_of(f)) > 1
    ]


@shape("count-per-year")
def count_per_year(draft: Draft) -> Candidate:
    """How many rows there are in each year or calendar month of a date."""
    entity = draft.entity(_dated)
    field = draft.pick(_dated(entity))
    part = draft.pick(("year", "year", "month"))
    key = dates.part(field, part, field.sql())
    where, after, found = conditions.perhaps(draft, 0.3, entity, besides=(field.name,))
    query = Query((key, "count(*)"), entity.sql, where, key)
    how = "" if part == "year" else " Write the month in two digits, from 01 to 12."
    calendar = "year" if part == "year" else "calendar month, whatever the year"
    many, when = entity.noun.many, _when(field)
    question = draft.say(
        f"How many {many}{after} {when} in each {calendar}? Give the {part} and the number.{how}",
        f"Count the {many}{after} that {when} in each {calendar}; show the {part} and the"
        f" count.{how}",
    )
    return asked(question, query, (entity.name,), *found, several=True)


@shape("year-with-most")
def year_with_most(draft: Draft) -> Candidate:
    """The year with the most rows."""
    entity = draft.entity(_dated)
    field = draft.pick(_dated(entity))
    key = dates.part(field, "year", field.sql())
    where, after, found = conditions.perhaps(draft, 0.5, entity, besides=(field.name,))
    query = Query((key,), entity.sql, where, key, "", "count(*) DESC", 1)
    many, when = entity.noun.many, _when(field)
    event = when.removeprefix("were ")
    question = draft.say(
        f"In which year were the most {many}{after} {event}?" if event != when else None,
        f"In which year did the most {many}{after} fall, by their {field.noun.one}?"
        if " when " not in field.noun.one
        else None,
        f"Which year is the one in which the most {many}{after} {when}?" if event == when else None,
    )
    return asked(question, query, (entity.name,), *found, one_row=True)


def _when(field: Field) -> str:
    """What rows do at their date: "were hired", "have their invoice date"."""
    events = happened(field, "")
    return events[0].text.strip() if events else f"have their {field.noun.one}"

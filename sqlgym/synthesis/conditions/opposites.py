"""Conditions on one column of which no row fulfils two: two values, or little and much of it.

Who asks which kinds have rows of this sort and also of that sort thinks of two sorts that exclude
each other. "Above 5" and "under 10" do not, and a question with both is read twice.
"""

from __future__ import annotations

from sqlgym.synthesis import spoken_values
from sqlgym.synthesis.conditions import conditions, forms
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Draft, Unfit
from sqlgym.synthesis.schema import Entity, Field, Role, literal


def opposites(
    draft: Draft, entity: Entity, field: Field, alias: str = ""
) -> tuple[Condition, Condition]:
    """Two conditions on a column that exclude each other."""
    if field.role is Role.QUANTITY:
        return _little_and_much(draft, field, alias)
    first, second = two_values(draft, field)
    return (
        of_value(draft, entity, field, first, alias),
        of_value(draft, entity, field, second, alias),
    )


def _little_and_much(draft: Draft, field: Field, alias: str) -> tuple[Condition, Condition]:
    found = [spoken_values.threshold(field, draft.rng) for _ in range(2)]
    limits = sorted(limit for limit in found if limit is not None)
    if len(limits) < 2 or limits[0] == limits[1]:
        raise Unfit
    sides = [
        Condition(
            f"{field.value_sql(alias)} {sign} {spoken_values.number_sql(limit)}",
            forms.comparison(draft, field, sign, limit),
            field.name,
        )
        for sign, limit in (("<", limits[0]), (">", limits[1]))
    ]
    return (sides[0], sides[1]) if draft.chance(0.5) else (sides[1], sides[0])


def two_values(draft: Draft, field: Field) -> tuple[str, str]:
    """Two values that occur; of a date, two years."""
    if field.role is Role.CATEGORY:
        values = conditions.distinct_values(field)[:12]
    elif field.role is Role.DATE:
        values = list(conditions.years_of(field))
    else:
        values = sorted(set(field.values))
    first = draft.pick(values)
    return first, draft.pick(value for value in values if value != first)


def of_value(draft: Draft, entity: Entity, field: Field, value: str, alias: str = "") -> Condition:
    """A column has a value; a date is of a year."""
    column = field.sql(alias)
    if field.role is Role.DATE:
        sql, said = conditions.in_year(field, value, column)
        return Condition(sql, said, field.name)
    sql = f"{column} = {literal(value)}"
    if field.role is Role.CATEGORY:
        said = forms.equal_text(entity, field, value)
    elif field.role is Role.FLAG:
        said = forms.flag(field, value, value == field.values[0])
    else:
        said = forms.equal_number(draft, field, float(value))
    return Condition(sql, said, field.name)

"""Conditions on one column, as SQL and in words.

* `age > 30` becomes "with an age of more than 30" or "whose age is more than 30".
* `country = 'France'` becomes "whose country is France".
* `day >= '2019-05-03'` becomes "whose day is on or after 2019-05-03".

The words have exactly the meaning of the SQL: "more than" is `>`, and "at least" is `>=`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlgym.synthesis import english, lexicon, roles, spoken_values
from sqlgym.synthesis.drafting import Draft
from sqlgym.synthesis.schema import Entity, Field, Role, literal

_SIGNS = {">": "more than {}", "<": "less than {}", ">=": "at least {}", "<=": "at most {}"}
_YEARS = {">": "after {}", "<": "before {}", ">=": "{} or later", "<=": "{} or earlier"}
_DAYS = {">": "after {}", "<": "before {}", ">=": "on or after {}", "<=": "on or before {}"}
_WEIGHTS = {Role.CATEGORY: 5, Role.QUANTITY: 4, Role.YEAR: 2, Role.DATE: 2, Role.NAME: 1}


@dataclass(frozen=True)
class Condition:
    """A condition on rows.

    Attributes:
        whose: Words after "whose": "age is more than 30".
        has: Words after "with" or "have": "an age of more than 30"; "" if there are none.
        short: Other words after the noun: "from 2014", "of the stadium Balmoor"; or "".
        columns: Names of the columns that the condition restricts.
        readings: Other SQL that must select the same rows.
    """

    sql: str
    whose: str
    has: str = ""
    short: str = ""
    columns: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()

    def of(self, owner: str) -> str:
        """Return the words after "whose" for a condition on the owner: "stadium's city is Rome"."""
        if self.has:
            return f"{owner} has {self.has}"
        return f"{english.possessive(owner)} {self.whose.removeprefix(owner + ' ')}"


def after(draft: Draft, conditions: Sequence[Condition]) -> str:
    """Return conditions as words that follow a noun, with a leading space."""
    if len(conditions) == 1:
        (only,) = conditions
        if only.short and draft.chance(0.7):
            return f" {only.short}"
        if only.has and draft.chance(0.6):
            return f" with {only.has}"
    return " and".join(f" whose {each.whose}" for each in conditions)


def condition(
    draft: Draft, entity: Entity, alias: str = "", besides: Sequence[str] = ()
) -> Condition:
    """Return a random condition on a table.

    Args:
        alias: Alias of the table.
        besides: Names of columns that are excluded.
    """
    label = entity.label.fields if entity.label else ()
    fields = [
        field
        for field in entity.having(*_WEIGHTS)
        if field.name not in besides
        and (field.role is not Role.NAME or field in label or field.noun.one in ("name", "title"))
    ]
    draft.unless(not fields)
    field = draft.rng.choices(fields, [_WEIGHTS[field.role] for field in fields])[0]
    column = field.value_sql(alias)
    if field.role is Role.CATEGORY:
        return _on_category(draft, field, alias)
    if field.role is Role.DATE:
        return _on_date(draft, field, column)
    if field.role is Role.NAME:
        return _on_name(draft, field, column)
    is_repeated = field.distinct < 13 and field.is_whole and field.distinct * 3 < entity.rows
    if draft.chance(0.3) and (field.role is Role.YEAR or is_repeated):
        return equal(field, draft.pick(field.distinct_numbers), alias)
    found = [spoken_values.threshold(field, draft.rng) for _ in range(2)]
    low, high = sorted(limit or 0.0 for limit in found)
    draft.unless(None in found)
    if low < high and draft.chance(0.12):
        return _between(field, low, high, column)
    return compare(field, draft.pick((">", "<", ">", "<", ">=", "<=")), low, column)


def _is(field: Field) -> str:
    """Return a column with its verb: "age is", "details are"."""
    be = "is" if field.noun.last in english.INVARIABLE else field.noun.be
    return f"{field.noun.one} {be}"


def compare(field: Field, sign: str, limit: float, column: str) -> Condition:
    """Return a condition that compares a number or a year with a limit."""
    noun, sql = field.noun, f"{column} {sign} {spoken_values.number_sql(limit)}"
    if field.role is Role.YEAR:
        words = _YEARS[sign].format(int(limit))
        return Condition(sql, f"{_is(field)} {words}", columns=(field.name,))
    words = _SIGNS[sign].format(spoken_values.amount(field, limit))
    has = f"{noun.a} of {words}"
    if noun.counts:
        things = english.singular(noun.counts) if limit == 1 else noun.counts
        has = f"{words.replace('less', 'fewer')} {things}"
    return Condition(sql, f"{_is(field)} {words}", has, columns=(field.name,))


def equal(field: Field, value: float | str, alias: str) -> Condition:
    """Return a condition that compares a column with a value."""
    noun, has, short = field.noun, "", ""
    if isinstance(value, str):
        sql, shown = literal(value), spoken_values.quoted_text(value)
    elif field.role is Role.YEAR:
        sql = shown = str(int(value))
        short = f"from {shown}" * (noun.one == "year")
    else:
        sql, shown = spoken_values.number_sql(value), spoken_values.amount(field, value)
        has = f"exactly {shown} {noun.counts}" if noun.counts else f"{noun.a} of {shown}"
        has *= not noun.counts or value > 1
    if field.as_number:
        sql = literal(sql)
    whose = f"{_is(field)} {shown}"
    return Condition(f"{field.sql(alias)} = {sql}", whose, has, short, columns=(field.name,))


def _between(field: Field, low: float, high: float, column: str) -> Condition:
    first, last = map(spoken_values.number_sql, (low, high))
    shown = last if field.role is Role.YEAR else spoken_values.amount(field, high)
    return Condition(
        f"{column} BETWEEN {first} AND {last}",
        f"{_is(field)} between {first} and {shown}",
        columns=(field.name,),
        readings=(f"({column} > {first} AND {column} < {last})",),
    )


def _on_category(draft: Draft, field: Field, alias: str) -> Condition:
    values = distinct_values(field)
    draft.unless(field.noun.last in lexicon.FREE_TEXTS or len(values) < 2)
    value, other = draft.pick(values), draft.pick(values)
    way = draft.rng.random()
    start, column = _is(field), field.sql(alias)
    if way < 0.1 and not field.nulls and len(values) > 2:
        shown = spoken_values.quoted_text(value)
        return Condition(
            f"{column} <> {literal(value)}", f"{start} not {shown}", columns=(field.name,)
        )
    if way < 0.22 and len(values) > 3 and value != other:
        first, last = spoken_values.quoted_texts((value, other))
        return Condition(
            f"{column} IN ({literal(value)}, {literal(other)})",
            f"{start} {first} or {last}",
            columns=(field.name,),
        )
    return equal(field, value, alias)


def _on_date(draft: Draft, field: Field, column: str) -> Condition:
    day = str(field.values[int(len(field.values) * (0.15 + 0.7 * draft.rng.random()))])[:10]
    start = _is(field)
    way = draft.rng.random()
    if way < 0.45 and len(field.years) > 1:
        return in_year(field, day[:4], column)
    if way < 0.6:
        month = f"{english.month_name(date.fromisoformat(day).month)} {day[:4]}"
        return Condition(
            f"{column} LIKE '{day[:7]}-%'", f"{start} in {month}", columns=(field.name,)
        )
    sign = draft.pick(("<", ">=") if field.has_time else tuple(_DAYS))
    return Condition(
        f"{column} {sign} '{day}'", f"{start} {_DAYS[sign].format(day)}", columns=(field.name,)
    )


def in_year(field: Field, year: str, column: str) -> Condition:
    """Return a condition that restricts a date to a year."""
    words = f"{_is(field)} in {year}"
    return Condition(f"{column} LIKE '{year}-%'", words, columns=(field.name,))


def _on_name(draft: Draft, field: Field, column: str) -> Condition:
    """Return a condition that a name contains a word. LIKE ignores case, and GLOB does not."""
    name = str(draft.pick(field.values))
    word = draft.pick(w for w in name.split() if w.isascii() and w.isalpha() and len(w) > 3)
    return Condition(
        f"{column} LIKE '%{word}%'",
        f"{field.noun.one} contains '{word}'",
        columns=(field.name,),
        readings=(f"{column} GLOB '*{word}*'",),
    )


def distinct_values(field: Field) -> list[str]:
    """Return common values that can be typed and that differ in more than case."""
    folded = Counter(" ".join(str(value).casefold().split()) for value in field.values)
    return [
        value
        for value in field.values
        if roles.is_typable(value) and folded[" ".join(str(value).casefold().split())] == 1
    ][: roles.FEW]


def opposites(draft: Draft, entity: Entity, alias: str = "") -> tuple[Condition, Condition]:
    """Return two conditions on one column that exclude each other."""
    field = draft.pick(entity.having(Role.CATEGORY, Role.QUANTITY, Role.YEAR, Role.DATE))
    column = field.value_sql(alias)
    if field.role is Role.QUANTITY:
        limits = [spoken_values.threshold(field, draft.rng) for _ in range(2)]
        low, high = sorted(limit or 0.0 for limit in limits)
        between = sum(low <= number <= high for number in field.numbers)
        draft.unless(None in limits or low == high or 5 * between < len(field.numbers))
        return compare(field, "<", low, column), compare(field, ">", high, column)
    if field.role is Role.DATE:
        years = draft.rng.sample(field.years, 2) if len(field.years) > 1 else draft.pick(())
        return in_year(field, years[0], column), in_year(field, years[1], column)
    draft.unless(field.noun.last in lexicon.FREE_TEXTS)
    is_year = field.role is Role.YEAR
    values: list[Any] = list(field.distinct_numbers if is_year else distinct_values(field))
    draft.unless(len(values) < 2)
    first, second = draft.rng.sample(values, 2)
    return equal(field, first, alias), equal(field, second, alias)

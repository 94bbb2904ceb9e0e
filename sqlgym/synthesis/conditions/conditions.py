"""Conditions on a column, each with SQL and with the ways in which it can be said.

    age > 30       older than 30 | with an age above 30 | whose age is above 30
    country = 'F'  from France | with the country France | whose country is France

A condition fits behind a noun ("singers ...", `after`) and mostly also as a verb ("which singers
...?", `verb`). The wording says exactly what the SQL does: "at least" is `>=`, and "after 3 May"
leaves out that day, also where a time stands behind it; "on or after 3 May" does not. Dates are ISO
texts, with or without a time of day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from sqlgym.synthesis import english, lexicon, roles, spoken_values
from sqlgym.synthesis.conditions import forms
from sqlgym.synthesis.conditions.forms import Form, event_forms
from sqlgym.synthesis.drafting import Draft, Unfit
from sqlgym.synthesis.schema import Entity, Field, Role, literal


def _date_condition(draft: Draft, field: Field, alias: str) -> tuple[str, tuple[Form, ...]]:
    """Some condition on a date: SQL, and the ways to say it."""
    ways = [_before, _after, _in_month]
    if len(years_of(field)) > 1:
        ways += [_in_year, _in_year, _before_year]
    if len(field.months) > 2 and len(years_of(field)) > 1:
        ways.append(_in_month_of_any_year)
    return draft.pick(ways)(draft, field, field.sql(alias))


def date_part(field: Field, name: str, column: str) -> str:
    """The year or month of a date in SQL, as text.

    SQLite's date functions run outside its own machine here, a hundred times slower than `substr`.
    """
    if field.is_large:
        return f"substr({column}, {'1, 4' if name == 'year' else '6, 2'})"
    return f"strftime('{'%Y' if name == 'year' else '%m'}', {column})"


def years_of(field: Field) -> Sequence[str]:
    """The years that occur, in order."""
    return field.years


def _before(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    sign = draft.pick(("<", "<="))
    if sign == "<":
        return f"{column} < '{day}'", _date_forms(field, f"before {english.written_date(day)}")
    until = f"{column} <= '{day}'"
    if field.has_time:
        until = f"{column} < '{day + timedelta(days=1)}'"
    return until, _date_forms(field, f"on or before {english.written_date(day)}")


def _after(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    if draft.chance(0.4):
        return f"{column} >= '{day}'", _date_forms(
            field, f"on or after {english.written_date(day)}"
        )
    since = f"{column} > '{day}'"
    if field.has_time:
        since = f"{column} >= '{day + timedelta(days=1)}'"
    return since, _date_forms(field, f"after {english.written_date(day)}")


def _in_month(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    day = _day(draft, field)
    month = f"{english.month_name(day.month)} {day.year}"
    sql = f"{column} LIKE '{day:%Y-%m}-%'"
    if draft.chance(0.5) and not field.is_large:
        sql = f"strftime('%Y-%m', {column}) = '{day:%Y-%m}'"
    return sql, _date_forms(field, f"in {month}")


def _in_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    year = draft.pick(years_of(field))
    return in_year(field, year, column, draft.say(f"in {year}", f"in the year {year}"))


def in_year(
    field: Field, year: str, column: str = "", when: str = ""
) -> tuple[str, tuple[Form, ...]]:
    """A date of a year: SQL, and the ways to say it."""
    sql = f"{date_part(field, 'year', column or field.sql())} = '{year}'"
    return sql, _date_forms(field, when or f"in {year}")


def _before_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    year = draft.pick(years_of(field)[1:])
    return f"{column} < '{year}-01-01'", _date_forms(field, f"before {year}")


def _in_month_of_any_year(draft: Draft, field: Field, column: str) -> tuple[str, tuple[Form, ...]]:
    month = _day(draft, field).month
    when = f"in {english.month_name(month)} of any year"
    return f"{date_part(field, 'month', column)} = '{month:02d}'", _date_forms(field, when)


def _date_forms(field: Field, when: str) -> tuple[Form, ...]:
    wordings = [Form("whose", f"{field.noun.one} is {when}"), *event_forms(field, when)]
    if field.noun.is_readable and not field.noun.event and field.noun.one != "date":
        wordings.append(Form("with", f"{field.noun.a} {when}"))
    return tuple(wordings)


def _day(draft: Draft, field: Field) -> date:
    """A day that occurs, away from the first and the last."""
    days = field.values
    place = int(len(days) * (0.15 + 0.7 * draft.rng.random()))
    return spoken_values.day_of(days[place])


SHORT = ("be", "did")
"""Kinds of form behind which another "with" may stand: "from Oslo", "hired in 2014"."""
PHRASES = (*SHORT, "with")
"""Kinds of form behind which a verb may stand."""
_SHORT = frozenset(["did", "be", "that", "owns", "can"])
"""Forms that people prefer where there are any: hired in 2014, older than 30, in Rome."""


@dataclass(frozen=True)
class Condition:
    """A condition on rows.

    Attributes:
        forms: The ways to say it.
        readings: Other SQL that must select the same rows.
    """

    sql: str
    forms: tuple[Form, ...]
    column: str
    readings: tuple[str, ...] = ()

    @property
    def is_negative(self) -> bool:
        """It says what is not so: behind another "no" nobody follows."""
        texts = [form.text for form in self.forms]
        return "<>" in self.sql or any(t.startswith(("no ", "not ")) for t in texts)

    def after(self, draft: Draft, *kinds: str) -> str:
        """Said behind a noun, in one of these kinds of form, or in any."""
        fitting = [form for form in self.forms if not kinds or form.kind in kinds]
        short = [form for form in fitting if form.kind in _SHORT]
        if short and draft.chance(0.8):
            return draft.pick(short).after()
        # A question that has said "with the city Rome" does not go on with "whose city is Oslo".
        other = {"whose": "with", "with": "whose"}[draft.style]
        alike = [form for form in fitting if form.kind != other]
        return draft.pick(alike or fitting).after()

    def shortly(self, draft: Draft, kinds: tuple[str, ...]) -> str:
        """Said behind a noun without a clause; `Unfit` where it has no such form."""
        short = [form.after() for form in self.forms if form.kind in kinds]
        return draft.pick(text for text in short if not text.startswith("that "))

    def after_one(self, draft: Draft) -> str:
        """Said behind a noun in the singular."""
        return english.of_one(self.after(draft))

    def of(self, draft: Draft, owner: str, whose: bool = True) -> str:
        """Said of one thing, behind its noun as a clause; `Unfit` where it has no such form.

        Args:
            whose: It may be the owner of what is said: "the club's year is 1990".
        """
        forms = [form for form in self.forms if whose or form.kind != "whose"]
        return draft.pick(text for form in forms if (text := form.of(owner)))

    def verb(self, draft: Draft) -> str | None:
        """Said behind a noun in the plural as its verb; None where it has no such form."""
        verbs = [form.verb() for form in self.forms if form.verb()]
        return draft.pick(verbs) if verbs else None


def condition(
    draft: Draft,
    entity: Entity,
    alias: str = "",
    besides: tuple[str, ...] = (),
    *,
    names: bool = False,
) -> Condition:
    """Some condition on a table, on none of the columns `besides`.

    Args:
        names: It may be on the letters of a name. That is asked of rows that are looked for, and
            hardly of rows that are grouped or added up.
    """
    fields = [
        f
        for f in entity.fields
        if f.role in _MAKERS and f.name not in besides and (names or f.role is not Role.NAME)
    ]
    weights = [_MAKERS[field.role][1] for field in fields]
    if not fields:
        raise Unfit
    field = draft.rng.choices(fields, weights)[0]
    return on_field(draft, entity, field, alias)


class Extra(NamedTuple):
    """A condition that a question may have or not.

    Attributes:
        where: In SQL, for a query's WHERE; empty without one.
        after: Behind a noun, with a blank before it; "" without one.
        found: The condition itself, if there is one.
    """

    where: tuple[str, ...] = ()
    after: str = ""
    found: tuple[Condition, ...] = ()


def perhaps(
    draft: Draft,
    probability: float,
    entity: Entity,
    alias: str = "",
    besides: tuple[str, ...] = (),
    *,
    kinds: tuple[str, ...] = (),
) -> Extra:
    """With some probability a condition on a table, on none of the columns `besides`.

    Args:
        kinds: Kinds of form, where more stands behind it, so that it can be no clause.
    """
    if not draft.chance(probability):
        return Extra()
    extra = condition(draft, entity, alias, besides)
    after = extra.shortly(draft, kinds) if kinds else extra.after(draft)
    return Extra((extra.sql,), f" {after}", (extra,))


def on_field(draft: Draft, entity: Entity, field: Field, alias: str = "") -> Condition:
    """Some condition on a column."""
    if field.nulls and not field.has_blanks and draft.chance(0.12):
        return _on_null(draft, entity, field, alias)
    maker, _ = _MAKERS[field.role]
    return maker(draft, entity, field, alias)


def two_conditions(draft: Draft, entity: Entity, alias: str = "") -> tuple[Condition, Condition]:
    """Two conditions on different columns of a table."""
    first = condition(draft, entity, alias, names=True)
    return first, condition(draft, entity, alias, (first.column,))


def both(draft: Draft, first: Condition, second: Condition) -> tuple[str, str | None]:
    """Two conditions that both hold: behind a noun, and as a verb."""
    verbs = [first.verb(draft), second.verb(draft)]
    verb = _and(verbs[0], verbs[1]) if verbs[0] and verbs[1] else None
    short, long = ("be", "did", "that", "owns", "can"), ("whose", "with", "which")
    ways = []
    for one, other in ((first, second), (second, first)):
        if _has(one, short) and _has(other, long):
            first_part, last_part = one.after(draft, *short), other.after(draft, *long)
            word = " and" if first_part.startswith("that ") else ""
            if word and last_part.startswith("with "):
                continue
            ways.append(f"{first_part}{word} {last_part}")
    ways += _same_kind(draft, first, second, "and")
    return draft.pick(ways), verb


def _and(one: str, other: str) -> str:
    """Two verbs, their common first word said once."""
    start = one.partition(" ")[0]
    if start in ("have", "are") and other.startswith(f"{start} "):
        first, other = one.removeprefix(f"{start} "), other.removeprefix(f"{start} ")
        # Neither "the season 'winter' and over 46 events" nor "not from Peru and male".
        if first.endswith("'") or first.startswith("not "):
            return f"{start} {other} and {first}"
    return f"{one} and {other}"


def either(draft: Draft, first: Condition, second: Condition) -> str:
    """Two conditions of which at least one holds, behind a noun."""
    return draft.pick(_same_kind(draft, first, second, "or"))


def _same_kind(draft: Draft, first: Condition, second: Condition, word: str) -> list[str]:
    every = ("whose", "with", "which", "that", "owns", "can")
    kinds = [k for k in every if _has(first, (k,)) and _has(second, (k,))]
    return [f"{first.after(draft, kind)} {word} {second.after(draft, kind)}" for kind in kinds]


def _has(one: Condition, kinds: tuple[str, ...]) -> bool:
    return any(form.kind in kinds for form in one.forms)


def _on_number(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    column = field.value_sql(alias)
    if draft.chance(0.12):
        return _between(draft, field, column)
    if field.distinct <= 12 and field.is_whole and draft.chance(0.35):
        value = spoken_values.number(draft.pick(field.distinct_numbers))
        sql = f"{column} = {spoken_values.number_sql(value)}"
        return Condition(sql, forms.equal_number(draft, field, value), field.name)
    limit = spoken_values.threshold(field, draft.rng)
    if limit is None:
        raise Unfit
    sign = draft.pick((">", "<", ">", "<", ">=", "<="))
    sql = f"{column} {sign} {spoken_values.number_sql(limit)}"
    return Condition(sql, forms.comparison(draft, field, sign, limit), field.name)


def _between(draft: Draft, field: Field, column: str) -> Condition:
    thresholds = {
        spoken_values.threshold(field, draft.rng),
        spoken_values.threshold(field, draft.rng),
    } - {None}
    ends = sorted(end for end in thresholds if end is not None)
    if len(ends) < 2:
        raise Unfit
    low, high = (spoken_values.number_sql(end) for end in ends)
    wordings = forms.between(draft, field, ends[0], ends[1])
    return Condition(f"{column} BETWEEN {low} AND {high}", wordings, field.name)


def _on_category(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    column = field.sql(alias)
    draft.unless(field.noun.last in lexicon.FREE_TEXTS)
    usable = distinct_values(field)
    value = draft.pick(usable[: roles.FEW])
    way = draft.rng.random()
    if way < 0.12 and not field.nulls and len(usable) > 2:
        wordings = forms.other_than(entity, field, value)
        return Condition(f"{column} <> {literal(value)}", wordings, field.name)
    if way < 0.24 and len(usable) > 3:
        other = draft.pick([v for v in usable[: roles.FEW] if v != value])
        listed = ", ".join(map(literal, (value, other)))
        wordings = forms.one_of(entity, field, (value, other))
        return Condition(f"{column} IN ({listed})", wordings, field.name)
    wordings = forms.equal_text(entity, field, value)
    return Condition(f"{column} = {literal(value)}", wordings, field.name)


def distinct_values(field: Field) -> list[str]:
    """Values that can be typed, and of which no other differs by its case only."""
    folded: dict[str, int] = {}
    for value in field.values:
        key = " ".join(str(value).casefold().split())
        folded[key] = folded.get(key, 0) + 1
    return [
        value
        for value in field.values
        if roles.is_typable(value) and folded[" ".join(str(value).casefold().split())] == 1
    ]


def _on_name(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    """A name that starts with a letter, or contains a word that several contain."""
    column = field.sql(alias)
    texts = [value for value in field.values if isinstance(value, str)]
    if draft.chance(0.5):
        starts = sorted(
            {text[0].upper() for text in texts if text[:1].isascii() and text[:1].isalpha()}
        )
        start = draft.pick(starts)
        wordings = forms.first_letter(draft, field, start)
        return Condition(
            f"{column} LIKE '{start}%'", wordings, field.name, (f"{column} GLOB '{start}*'",)
        )
    words = Counter(
        w for text in texts for w in set(text.split()) if len(w) > 3 and w.isascii() and w.isalpha()
    )
    word = draft.pick(sorted(w for w, times in words.items() if times > 1))
    wordings = forms.word_inside(field, word)
    readings = (f"instr({column}, '{word}') > 0", f"' ' || {column} || ' ' LIKE '% {word} %'")
    return Condition(f"{column} LIKE '%{word}%'", wordings, field.name, readings)


def _on_flag(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    yes, no = field.values
    is_yes = draft.chance(0.5)
    draft.unless(field.nulls and not is_yes)  # "not active" would be those of whom nothing is known
    value = yes if is_yes else no
    wordings = forms.flag(field, value, is_yes)
    return Condition(f"{field.sql(alias)} = {literal(value)}", wordings, field.name)


def _on_date(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    sql, wordings = _date_condition(draft, field, alias)
    return Condition(sql, wordings, field.name)


def _on_null(draft: Draft, entity: Entity, field: Field, alias: str) -> Condition:
    is_known = draft.chance(0.4)
    sql = f"{field.sql(alias)} IS {'NOT ' if is_known else ''}NULL"
    return Condition(sql, forms.presence(field, is_known), field.name)


_MAKERS = {
    Role.QUANTITY: (_on_number, 4),
    Role.YEAR: (_on_number, 4),
    Role.CATEGORY: (_on_category, 4),
    Role.FLAG: (_on_flag, 2),
    Role.DATE: (_on_date, 4),
    Role.NAME: (_on_name, 1),
}
"""What writes a condition on a column of a role, and how often such a column is drawn."""

"""Rows put into two or three bands by a number: how many are in each, and which row is in which.

The question gives the names of the bands, or the order in which their counts are wanted.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from sqlgym.synthesis import english, spoken_values
from sqlgym.synthesis.conditions import conditions, forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, named, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking, comparing, groups
from sqlgym.synthesis.shapes.filters import asked


class Band(NamedTuple):
    """A band: its test in SQL, and behind a noun."""

    test: str
    after: str


def _parted(draft: Draft, entity: Entity, number: int, alias: str = "") -> tuple[Field, list[Band]]:
    """A quantity in two or three bands from the lowest up, each said in the same way."""
    field = draft.pick(
        f
        for f in entity.having(Role.QUANTITY)
        if f.is_full and f.noun.is_readable and f.distinct > 3
    )
    drawn = {spoken_values.threshold(field, draft.rng) for _ in range(number - 1)}
    limits = sorted(limit for limit in drawn if limit is not None)
    draft.unless(len(limits) < number - 1)
    steps = (high - low for low, high in itertools.pairwise(limits))
    draft.unless(field.is_whole and any(step <= 1 for step in steps))  # "2 or more but below 3"
    column = field.value_sql(alias)
    sql = [spoken_values.number_sql(limit) for limit in limits]
    shown = [spoken_values.amount(field, limit, draft.commas) for limit in limits]
    noun = field.noun
    if noun.counts and not noun.unit:
        said = [
            forms.count_phrase("fewer than {}", shown[0], noun.counts),
            forms.count_phrase("{} or more", shown[-1], noun.counts),
        ]
        middle = f"{shown[0]} or more but fewer than {shown[-1]} {noun.counts}"
    else:
        said = [f"{noun.a} below {shown[0]}", f"{noun.a} of {shown[-1]} or more"]
        middle = f"{noun.a} of {shown[0]} or more but below {shown[-1]}"
    bands = [Band(f"{column} < {sql[0]}", f"with {said[0]}")]
    if number == 3:
        test = f"{column} >= {sql[0]} AND {column} < {sql[1]}"
        bands.append(Band(test, f"with {middle}"))
    bands.append(Band(f"{column} >= {sql[-1]}", f"with {said[1]}"))
    return field, bands


@shape("counts-in-bands", large=False)
def counts_in_bands(draft: Draft) -> Candidate:
    """How many rows are in each of two or three bands, as columns."""
    entity = draft.entity(lambda e: e.rows > 8 and e.having(Role.QUANTITY))
    field, bands = _parted(draft, entity, draft.pick((2, 3, 3)))
    where, before, filters = conditions.perhaps(
        draft, 0.3, entity, besides=(field.name,), kinds=conditions.SHORT
    )
    select = tuple(comparing.counted(band.test) for band in bands)
    query = Query(select, entity.sql, where)
    things = f"{entity.noun.many}{before}"
    first, *rest = (band.after for band in bands)
    have = [f"how many {after.replace('with', 'have', 1)}" for after in rest]
    how_many = english.join_words([f"How many {things} {first.replace('with', 'have', 1)}", *have])
    how_many = _with_comma(how_many)
    count = english.join_words([f"the {things} {first}", *(f"those {after}" for after in rest)])
    number = english.join_words(
        [f"the number of {things} {first}", *(f"the number {after}" for after in rest)]
    )
    question = asking.ask(
        draft,
        f"{_with_comma(number)}, in this order",
        f"{how_many}?",
        f"{how_many}? Give the numbers in this order.",
        f"Count {_with_comma(count)}. Give the counts in this order.",
        is_many=None,
    )
    return asked(question, query, (entity.name,), *filters)


def _with_comma(text: str) -> str:
    """A list of clauses, with a comma before its last one."""
    head, word, tail = text.rpartition(" and ")
    return f"{head}, and {tail}" if word else text


_LABELS = {
    "age": ("young", "old"),
    "price": ("cheap", "expensive"),
    "cost": ("cheap", "expensive"),
    "weight": ("light", "heavy"),
    "length": ("short", "long"),
    "duration": ("short", "long"),
    "distance": ("short", "long"),
    "height": ("low", "high"),
    "depth": ("shallow", "deep"),
    "speed": ("slow", "fast"),
}
"""What little and much of a quantity is called."""


def _labels(field: Field) -> tuple[str, str]:
    """What rows with less and with more of something may be called."""
    labels = _LABELS.get(field.noun.graded)
    if labels:
        return labels
    if field.noun.counts and field.noun.counts not in ("stars", "points"):
        return f"few {field.noun.counts}", f"many {field.noun.counts}"
    is_sized = asking.most_of(field, True) == "largest"
    pair = ("small", "large") if is_sized else ("low", "high")
    return f"{pair[0]} {field.noun.one}", f"{pair[1]} {field.noun.one}"


@shape("counts-by-label", large=False)
def counts_by_label(draft: Draft) -> Candidate:
    """How many rows have each of two labels that the question gives."""
    draft.unless(draft.chance(0.5))  # clear, but nobody asks so often for labels
    entity = draft.entity(lambda e: e.rows > 8 and e.having(Role.QUANTITY))
    field, (less, more) = _parted(draft, entity, 2)
    where, before, filters = conditions.perhaps(
        draft, 0.3, entity, besides=(field.name,), kinds=conditions.SHORT
    )
    low, high = _labels(field)
    case = f"CASE WHEN {less.test} THEN '{low}' ELSE '{high}' END"
    query = Query((case, "count(*)"), entity.sql, where, case)
    many, things = entity.noun.many, f"{entity.noun.many}{before}"
    call = draft.say(
        f"Call {many} {less.after} '{low}' and all others '{high}'.",
        f"Label {many} {less.after} as '{low}' and those {more.after} as '{high}'.",
    )
    counting = draft.say(
        f"How many {things} are there of each label? Give the label and the number.",
        f"Count the {things} by this label, and show the label and the count.",
        f"Give each label with the number of {things} that get it.",
    )
    question = f"{call} {counting}"
    return asked(question, query, (entity.name,), *filters, several=True)


@shape("label-rows", large=False)
def label_rows(draft: Draft) -> Candidate:
    """Rows that fulfil a condition, each with one of two labels."""
    draft.unless(draft.chance(0.5))
    entity = draft.entity(lambda e: e.label and e.having(Role.QUANTITY))
    field, (less, more) = _parted(draft, entity, 2)
    own = conditions.condition(draft, entity, besides=(field.name,))
    label = named(draft, entity)
    draft.unless({field.name, own.column} & {f.name for f in label})
    low, high = _labels(field)
    case = f"CASE WHEN {less.test} THEN '{low}' ELSE '{high}' END"
    query = Query((*columns(label), case), entity.sql, (own.sql,))
    one, after = entity.noun.one, own.after(draft)
    things, thing = f"{entity.noun.many} {after}", f"{one} {english.of_one(after)}"
    names = f"'{low}' for one {less.after} and '{high}' for one {more.after}"
    question = draft.say(
        f"For each {thing}, give {the(label)} and a label: {names}.",
        f"List the {things}: {the(label)} of each, and a label, {names}.",
        f"Show {the(label)} of every {thing}, and next to it {names}.",
        f"Label each {thing}: {names}. Show {the(label)} and the label.",
        f"Give {the(label)} of each {thing}, with the label {names}.",
        f"I need {the(label)} of each {thing} and a second column with {names}.",
    )
    same = [query.sql().replace(case, f"'{word}'") for word in (low, high)]
    candidate = asked(question, query, (entity.name,), own, several=True)
    return Candidate(
        question,
        candidate.sql,
        candidate.tables,
        (*candidate.contrasts, *same),
        candidate.readings,
        several=True,
    )


@shape("two-counts-per-group", large=False)
def two_counts_per_group(draft: Draft) -> Candidate:
    """For each value of a column, how many rows are in each of two bands or have each value."""
    entity = draft.entity(lambda e: e.rows > 8 and e.having(Role.CATEGORY))
    group = groups.grouping(draft, entity)
    draft.unless(group.distinct > 12)
    if draft.chance(0.5):
        field, first, second = comparing.two_sides(draft, entity)
        tests = [(first.sql, first.after), (second.sql, second.after)]
    else:
        field, bands = _parted(draft, entity, 2)
        tests = [(band.test, band.after) for band in bands]
    draft.unless(field is group)
    counts = tuple(comparing.counted(test) for test, _ in tests)
    query = Query((group.sql(), *counts), entity.sql, (), group.sql())
    many, one = entity.noun.many, group.noun.one
    first_said, second_said = (after for _, after in tests)
    numbers = f"the number of {many} {first_said} and the number of {many} {second_said}"
    question = asking.ask(
        draft,
        None,
        f"For each {one}, give the {one}, {numbers}.",
        f"For each {one}, how many {many} {first_said} are there, and how many {second_said}? Show"
        f" the {one} and both numbers.",
        f"For each {one}, show the {one}, then {numbers}.",
        f"Give each {one}, {numbers}.",
        f"Show each {one}, then {numbers}.",
        f"List every {one} with {numbers}.",
        f"What are, for each {one}, {numbers}? Show the {one} first.",
        f"For every {one}, count the {many} {first_said} and the {many} {second_said}. Show the"
        f" {one} and the two counts.",
        is_many=None,
    )
    return Candidate(question, query.sql(), (entity.name,), several=True)

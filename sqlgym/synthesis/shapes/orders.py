"""One table in an order: the row with the most of something, the first few, all of them sorted.

Whether the winner is unique is proved later, not here.
"""

from __future__ import annotations

from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, label_of, names, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking
from sqlgym.synthesis.shapes.filters import asked, listing, readings


def ordering(draft: Draft, entity: Entity) -> Field:
    """A column to order by."""
    return draft.pick(
        field
        for field in entity.having(Role.QUANTITY, Role.YEAR, Role.DATE)
        if field.is_full and field.distinct > 2
    )


def _orderable(entity: Entity) -> bool:
    return bool(entity.label and entity.having(Role.QUANTITY, Role.YEAR, Role.DATE))


@shape("superlative")
def superlative(draft: Draft) -> Candidate:
    """The row with the most or the least of something."""
    entity = draft.entity(_orderable)
    field, is_most = ordering(draft, entity), draft.chance(0.6)
    label = asking.shown(draft, entity, field.name)
    shown = (*label, field) if draft.chance(0.25) and field not in label else label
    query = Query(columns(shown), entity.sql, order=_by(field, is_most), limit=1)
    which = asking.with_most(draft, entity, field, is_most)
    the_one = asking.the_most(draft, entity, field, is_most)
    question = asking.ask(
        draft,
        f"{the(shown)} of {the_one}",
        f"Which {which}? Give {_its(shown, entity)}.",
        f"What {_is(shown)} {the(shown)} of {the_one}?",
        f"Give {the(shown)} of {the_one}.",
        is_many=len(shown) > 1,
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker(), one_row=True)


@shape("superlative-filtered")
def superlative_filtered(draft: Draft) -> Candidate:
    """The row with the most or the least of something among those that fulfil a condition."""
    entity = draft.entity(_orderable)
    field, is_most = ordering(draft, entity), draft.chance(0.6)
    condition = conditions.condition(draft, entity, besides=(field.name,))
    label = asking.shown(draft, entity, condition.column, field.name)
    used = (condition.column, field.name, *(f.name for f in label))
    others = [f for f in asking.outputs(entity) if f.name not in used]
    shown = (*label, draft.pick(others)) if others and draft.chance(0.35) else label
    query = Query(columns(shown), entity.sql, (condition.sql,), order=_by(field, is_most), limit=1)
    after = condition.after(draft)
    many = entity.noun.many
    the_one = asking.the_most(draft, entity, field, is_most, after)
    which = asking.with_most(draft, entity, field, is_most)
    # Behind another clause, "with the highest price" would be read as a part of that.
    is_plain = not asking.is_clause(after)
    question = asking.ask(
        draft,
        f"{the(shown)} of {the_one}" if is_plain else None,
        f"Of the {many} {after}, which {which}? Give {_its(shown, entity)}.",
        f"Among the {many} {after}, which {which}? Give {the(shown)}.",
        f"What {_is(shown)} {the(shown)} of {the_one}?" if is_plain else None,
        f"Which of the {many} {after} {which.removeprefix(f'{entity.noun.one} ')}? Give"
        f" {the(shown)}."
        if not after.startswith("for which")
        else None,
        is_many=len(shown) > 1,
    )
    return asked(
        question, query, (entity.name,), condition, supports=(query.count_sql(),), one_row=True
    )


@shape("fact-of-superlative")
def fact_of_superlative(draft: Draft) -> Candidate:
    """A fact of the row with the most of something."""
    entity = draft.entity(lambda e: e.having(Role.QUANTITY, Role.YEAR, Role.DATE))
    field, is_most = ordering(draft, entity), draft.chance(0.6)
    fact = draft.pick(f for f in asking.outputs(entity) if f.name != field.name)
    query = Query(columns((fact,)), entity.sql, order=_by(field, is_most), limit=1)
    the_one = asking.the_most(draft, entity, field, is_most)
    question = asking.ask(
        draft,
        f"{the((fact,))} of {the_one}",
        f"What is {the((fact,))} of {the_one}?",
        f"Find {the((fact,))} of {the_one}.",
        f"Give {the((fact,))} of {the_one}.",
        is_many=False,
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker(), one_row=True)


@shape("top")
def top(draft: Draft) -> Candidate:
    """The first few rows by some column, in that order."""
    entity = draft.entity(_orderable)
    field, is_most = ordering(draft, entity), draft.chance(0.6)
    number = draft.pick((2, 3, 3, 4, 5))
    draft.unless(entity.rows < number + 2)
    label = asking.shown(draft, entity, field.name)
    shown = (*label, field) if draft.chance(0.5) and field not in label else label
    where, after, filters = conditions.perhaps(
        draft, 0.35, entity, besides=(field.name,), kinds=conditions.SHORT
    )
    query = Query(columns(shown), entity.sql, where, order=_by(field, is_most), limit=number)
    how_many, many = english.number_word(number), entity.noun.many
    rows = first_few(entity, field, is_most, number, after)
    which = f"{how_many} {many}{after} have the {tops(field, is_most)}"
    adjectives = lexicon.SUPERLATIVES.get(field.noun.graded)
    if adjectives:
        best = adjectives[0 if is_most else 1]
        which = f"{how_many} {many}{after} are the {best}"
    sorted_ = asking.sorting(draft, field, is_most)
    question = asking.ask(
        draft,
        f"the {names(shown)} of the {rows}, {sorted_}",
        f"List the {names(shown)} of the {rows}, {sorted_}.",
        f"What are the {names(shown)} of the {rows}, {sorted_}?",
        f"Which {which}? Give {the(shown)} of each, {sorted_}.",
    )
    contrasts = (*query.weaker(),)
    return Candidate(
        question, query.sql(), (entity.name,), contrasts, readings(query, *filters), number=number
    )


@shape("list-ordered")
def list_ordered(draft: Draft) -> Candidate:
    """Rows in the order of a column."""
    entity = draft.entity(_orderable)
    field, downwards = ordering(draft, entity), draft.chance(0.5)
    where, after, filters = conditions.perhaps(
        draft, 1.0 if entity.rows > 15 else 0.6, entity, besides=(field.name,)
    )
    shown = listing(draft, entity, *filters)
    query = Query(columns(shown), entity.sql, where, order=_by(field, downwards))
    many, all_ = entity.noun.many, "the" if where else "all"
    sorted_ = asking.sorting(draft, field, downwards)
    question = asking.ask(
        draft,
        f"the {names(shown)} of {all_} {many}{after}, {sorted_}",
        f"List the {names(shown)} of {all_} {many}{after}, {sorted_}.",
        f"Show {the(shown)} of {'each' if where else 'every'} {entity.noun.one}"
        f"{' ' + english.of_one(after.strip()) if after else ''}, {sorted_}.",
        f"What are the {names(shown)} of {all_} {many}{after}, {sorted_}?",
    )
    return asked(question, query, (entity.name,), *filters, several=True)


@shape("list-alphabetical")
def list_alphabetical(draft: Draft) -> Candidate:
    """Names in the order of the alphabet."""
    entity = draft.entity(lambda e: e.label and e.label.is_name and len(e.label.fields) == 1)
    label = label_of(entity)
    condition = conditions.condition(draft, entity, besides=(label[0].name,))
    shown = listing(draft, entity, condition)
    way = "ASC" if draft.chance(0.75) else "DESC"
    query = Query(columns(shown), entity.sql, (condition.sql,), order=f"{label[0].sql()} {way}")
    many, after = entity.noun.many, condition.after(draft)
    word = "alphabetical order" if way == "ASC" else "reverse alphabetical order"
    by = f" of the {label[0].noun.one}" if len(shown) > 1 else ""
    question = asking.ask(
        draft,
        f"the {names(shown)} of the {many} {after}, in {word}{by}",
        f"List the {names(shown)} of the {many} {after}, in {word}{by}.",
        f"Give {the(shown)} of each {entity.noun.one} {english.of_one(after)}, in {word}{by}.",
        f"What are the {names(shown)} of the {many} {after}, in {word}{by}?",
    )
    return asked(question, query, (entity.name,), condition, several=True, alphabetical=(0,))


def _by(field: Field, downwards: bool) -> str:
    return f"{field.value_sql()} {'DESC' if downwards else 'ASC'}"


def first_few(entity: Entity, field: Field, is_most: bool, number: int, after: str) -> str:
    """The first few rows by a column: "three oldest singers", "two books with the most pages"."""
    how_many, many = english.number_word(number), entity.noun.many
    adjectives = lexicon.SUPERLATIVES.get(field.noun.graded)
    if adjectives:
        return f"{how_many} {adjectives[0 if is_most else 1]} {many}{after}"
    return f"{how_many} {many}{after} with the {tops(field, is_most)}"


def tops(field: Field, is_most: bool) -> str:
    """ "highest prices", "most beds", "earliest years"."""
    if field.noun.counts:
        return f"{'most' if is_most else 'fewest'} {field.noun.counts}"
    if field.role in (Role.DATE, Role.YEAR):
        return f"{'latest' if is_most else 'earliest'} {field.noun.many}"
    return f"{asking.most_of(field, is_most)} {field.noun.many}"


def _its(shown: tuple[Field, ...], entity: Entity) -> str:
    return the(shown) if entity.is_person else the(shown).replace("the ", "its ", 1)


def _is(shown: tuple[Field, ...]) -> str:
    return "is" if len(shown) == 1 else "are"

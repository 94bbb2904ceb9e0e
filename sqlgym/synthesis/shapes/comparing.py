"""Two groups of rows beside each other: which is larger, by how much, and what share one is.

What is a fraction is rounded, and the question says how. A figure that lies so near to the middle
between two rounded ones that the order of the computation decides is refused: a little more and a
little less must round to the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlgym.synthesis import drafting, english, spoken_values
from sqlgym.synthesis.conditions import conditions, forms, opposites
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, shape, the
from sqlgym.synthesis.lexicon import PREPOSITIONS
from sqlgym.synthesis.schema import Entity, Field, Role, literal
from sqlgym.synthesis.shapes import aggregates, asking, groups, joins, per_parent
from sqlgym.synthesis.shapes.filters import asked, readings

NUDGE = "0.000001"
"""So much more or less must not change a rounded figure."""


class Side(NamedTuple):
    """Rows with one value of a column: SQL, behind a noun, and as a verb in the plural."""

    sql: str
    after: str
    verb: str


class Rounded(NamedTuple):
    """A figure with so many decimals: SQL, the sentence that says so, and SQL that must agree."""

    sql: str
    said: str
    nudged: tuple[str, ...]


def rounded(draft: Draft, expression: str, places: int) -> Rounded:
    """A figure as a question can ask for it."""
    decimals = f"{english.number_word(places)} decimal place{'s' * (places > 1)}"
    said = draft.say(
        f"Round to {decimals}.",
        f"Round the result to {decimals}.",
        f"Give the result rounded to {decimals}.",
    )
    nudged = tuple(f"round({expression} {sign} {NUDGE}, {places})" for sign in "+-")
    return Rounded(f"round({expression}, {places})", f" {said}", nudged)


def counted(test: str) -> str:
    """How many rows fulfil a test, among others that do not."""
    return f"count(CASE WHEN {test} THEN 1 END)"


def two_sides(draft: Draft, entity: Entity) -> tuple[Field, Side, Side]:
    """Two values of a column, said alike: categories, years, or yes and no."""
    field = draft.pick(f for f in entity.having(*_PARTED) if f.is_full and f.noun.is_readable)
    ways = opposites.opposites(draft, entity, field)
    kinds = {form.kind for form in ways[0].forms} & {form.kind for form in ways[1].forms}
    verbs = sorted(kinds & {"with", "be", "that", "did", "owns"})
    kind = draft.pick(verbs)
    sides = []
    for way in ways:
        form = next(form for form in way.forms if form.kind == kind)
        sides.append(Side(way.sql, form.after(), form.verb()))
    return field, sides[0], sides[1]


_PARTED = (Role.CATEGORY, Role.YEAR, Role.FLAG, Role.DATE)


def than(first: str, second: str) -> str:
    """The second of two verbs or clauses without what it shares with the first.

    >>> than("are from Oslo", "are from Rome"), than("have the genre 'a'", "have the genre 'b'")
    ('from Rome', "'b'")
    """
    one, other = first.split(" "), second.split(" ")
    same = 0
    while same < min(len(one), len(other)) - 1 and one[same] == other[same]:
        same += 1
    while same and one[same - 1] in PREPOSITIONS | {"of", "the"}:
        same -= 1
    return " ".join(other[same:])


@shape("share-of", large=False)
def share_of(draft: Draft) -> Candidate:
    """What percentage of all rows, or of some, fulfils a condition."""
    entity = draft.entity(lambda e: e.rows > 5)
    test = _known(draft, entity)
    verb = draft.say(test.verb(draft))
    where, after, others = conditions.perhaps(draft, 0.4, entity, besides=(test.column,))
    figure = rounded(draft, f"100.0 * {counted(test.sql)} / count(*)", draft.pick((1, 1, 2)))
    query = Query((figure.sql,), entity.sql, where)
    whole = f"the {entity.noun.many}{after}" if where else f"all {entity.noun.many}"
    question = asking.ask(
        draft,
        f"the percentage of {whole} that {verb}",
        f"What percentage of {whole} {verb}?{figure.said}",
        f"Of {whole}, what percentage {verb}?{figure.said}",
        f"What share of {whole}, in percent, {verb}?{figure.said}",
        is_many=False,
        then=figure.said,
    )
    base = Query(("count(*)",), entity.sql, where).sql()
    return Candidate(
        question,
        query.sql(),
        (entity.name,),
        (*query.weaker(), "SELECT 100.0", "SELECT 0.0"),
        (*_nudged(query, figure), *readings(query, test, *others)),
        (base,),
    )


def _known(draft: Draft, entity: Entity, besides: tuple[str, ...] = ()) -> Condition:
    """A condition on a column that every row has a value of, so that all rows are counted."""
    test = conditions.condition(draft, entity, besides=besides)
    field = next(f for f in entity.fields if f.name == test.column)
    draft.unless(not field.is_full)
    return test


def _nudged(query: Query, figure: Rounded) -> tuple[str, ...]:
    sql = query.sql()
    return tuple(sql.replace(figure.sql, other, 1) for other in figure.nudged)


@shape("share-per-group", large=False)
def share_per_group(draft: Draft) -> Candidate:
    """What percentage of the rows of each group fulfils a condition."""
    entity = draft.entity(lambda e: e.having(Role.CATEGORY, Role.YEAR))
    field = groups.grouping(draft, entity)
    draft.unless(field.distinct > 12)
    test = _known(draft, entity, (field.name,))
    verb = draft.say(test.verb(draft))
    figure = rounded(draft, f"100.0 * {counted(test.sql)} / count(*)", 1)
    query = Query((field.sql(), figure.sql), entity.sql, (), field.sql())
    many, one = entity.noun.many, field.noun.one
    question = asking.ask(
        draft,
        None,
        f"For each {one}, what percentage of the {many} {verb}? Give the {one} and the percentage."
        f"{figure.said}",
        f"What percentage of the {many} of each {one} {verb}? Show the {one} and the percentage."
        f"{figure.said}",
        f"Give each {one} with the percentage of its {many} that {verb}.{figure.said}",
        f"Show each {one} and the percentage of its {many} that {verb}.{figure.said}",
        f"List every {one} with the percentage of its {many} that {verb}.{figure.said}",
        f"Find, for each {one}, the percentage of the {many} that {verb}. Show the {one} first."
        f"{figure.said}",
        f"For each {one}, find the percentage of the {many} that {verb}. Show the {one} first."
        f"{figure.said}",
        is_many=None,
        then=figure.said,
    )
    plain = query.sql().replace(counted(test.sql), "count(*)")
    nudged = (*_nudged(query, figure), *readings(query, test))
    return Candidate(question, query.sql(), (entity.name,), (plain,), nudged, several=True)


@shape("share-of-total", large=False)
def share_of_total(draft: Draft) -> Candidate:
    """What percentage of a sum over all rows comes from those that fulfil a condition."""
    entity = draft.entity(lambda e: any(f.is_added for f in e.having(Role.QUANTITY)))
    field = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_added and f.is_full)
    test = _known(draft, entity, (field.name,))
    column, many = field.value_sql(), entity.noun.many
    part = f"sum(CASE WHEN {test.sql} THEN {column} ELSE 0 END)"
    figure = rounded(draft, f"100.0 * {part} / sum({column})", draft.pick((1, 1, 2)))
    query = Query((figure.sql,), entity.sql)
    total = aggregates.aggregate_noun(draft, "sum", field)
    after = test.after(draft)
    question = asking.ask(
        draft,
        None,
        f"What percentage of the {total} of all {many} comes from those {after}?{figure.said}",
        f"Of the {total} of all {many}, what percentage comes from those {after}?{figure.said}",
        f"What percentage of the {total} of all {many} do those {after} account for?{figure.said}",
        f"What share of the {total} of all {many}, as a percentage, comes from those"
        f" {after}?{figure.said}",
        f"Find out what percentage of the {total} of all {many} comes from those"
        f" {after}.{figure.said}",
        f"Tell me what percentage of the {total} of all {many} comes from those"
        f" {after}.{figure.said}",
        f"How large a percentage of the {total} of all {many} comes from those"
        f" {after}?{figure.said}",
        is_many=False,
        then=figure.said,
    )
    alike = f"SELECT round(100.0 * {counted(test.sql)} / count(*), 2) FROM {entity.sql}"
    return Candidate(
        question,
        query.sql(),
        (entity.name,),
        ("SELECT 100.0", "SELECT 0.0", alike),
        (*_nudged(query, figure), *readings(query, test)),
    )


@shape("ratio", large=False)
def ratio(draft: Draft) -> Candidate:
    """How many rows with one value there are for each row with another."""
    draft.unless(draft.chance(0.4))
    entity = draft.entity(lambda e: e.rows > 5)
    _, first, second = two_sides(draft, entity)
    expression = f"1.0 * {counted(first.sql)} / {counted(second.sql)}"
    figure = rounded(draft, expression, 2)
    query = Query((figure.sql,), entity.sql)
    many = entity.noun.many
    rest = f"the number of {many} {first.after} to the number of {many} {second.after}"
    question = asking.ask(
        draft,
        f"the ratio of {rest}",
        f"Divide the number of {many} {first.after} by the number of {many} {second.after}."
        f"{figure.said}",
        f"How many {many} {first.after} are there for every {entity.noun.one}"
        f" {english.of_one(second.after)}?{figure.said}",
        is_many=False,
        then=figure.said,
    )
    contrasts = ("SELECT 0.0", "SELECT 1.0")
    return Candidate(question, query.sql(), (entity.name,), contrasts, _nudged(query, figure))


@shape("difference-of-counts", large=False)
def difference_of_counts(draft: Draft) -> Candidate:
    """How many more rows have one value than another."""
    entity = draft.entity(lambda e: e.rows > 5)
    field, first, second = two_sides(draft, entity)
    draft.unless(field.role in (Role.DATE, Role.YEAR))  # a change, which has a shape of its own
    difference = f"{counted(first.sql)} - {counted(second.sql)}"
    sql = f"SELECT {difference} FROM {entity.sql}"
    many, other = entity.noun.many, than(first.verb, second.verb)
    question = asking.ask(
        draft,
        f"the number by which the {many} {first.after} outnumber the {many} {second.after}",
        f"How many more {many} {first.verb} than {other}?",
        f"How many more {many} {first.verb} than {other}?",
        f"By how many do the {many} {first.after} outnumber those {second.after}?",
        f"How many more {many} {first.after} than {many} {second.after} are there?",
        is_many=False,
    )
    alone = (sql.replace(difference, counted(first.sql)), f"SELECT count(*) FROM {entity.sql}")
    return Candidate(
        question, sql, (entity.name,), alone, (sql.replace(difference, f"abs({difference})"),)
    )


@shape("difference-of-aggregates", large=False)
def difference_of_aggregates(draft: Draft) -> Candidate:
    """By how much an average, a sum or an extreme of some rows exceeds that of others."""
    draft.unless(draft.chance(0.4))
    entity = draft.entity(lambda e: e.rows > 5 and e.having(Role.QUANTITY))
    field = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_full)
    parted, first, second = two_sides(draft, entity)
    draft.unless(parted is field)
    function = draft.pick(f for f in aggregates.functions(field) if f != "min")
    inner = aggregates.aggregate_sql(function, field)
    sides = [Query((inner,), entity.sql, (side.sql,)) for side in (first, second)]
    difference = f"({sides[0].sql()}) - ({sides[1].sql()})"
    is_exact = field.is_whole and function != "avg"
    figure = Rounded(difference, "", ()) if is_exact else rounded(draft, difference, 2)
    noun, many = aggregates.aggregate_noun(draft, function, field), entity.noun.many
    unit = asking.unit_text(field)
    one, other = f"the {noun} of the {many} {first.after}", f"of the {many} {second.after}"
    question = asking.ask(
        draft,
        f"the amount by which {one} exceeds that {other}",
        f"By how much does {one} exceed that {other}{unit}?{figure.said}",
        f"How much higher is {one} than that {other}{unit}?{figure.said}"
        if function != "max"
        else None,
        f"By how much is {one} above that {other}{unit}?{figure.said}",
        is_many=False,
        then=figure.said,
    )
    sql = f"SELECT {figure.sql}"
    supports = tuple(replace(side, select=("count(*)",)).sql() for side in sides)
    readings_ = (f"SELECT abs({figure.sql})", *(f"SELECT {nudged}" for nudged in figure.nudged))
    contrasts = ("SELECT 0", f"SELECT ({sides[0].sql()})")
    return Candidate(question, sql, (entity.name,), contrasts, readings_, supports)


@shape("larger-of-values", large=False)
def larger_of_values(draft: Draft) -> Candidate:
    """Which of two or three values has more rows, and how many."""
    entity = draft.entity(lambda e: e.having(Role.CATEGORY))
    field = draft.pick(f for f in entity.having(Role.CATEGORY) if f.is_full and f.distinct > 2)
    values = conditions.distinct_values(field)[:12]
    draft.unless(not field.noun.is_readable or len(values) < 3)
    number = draft.pick((2, 2, 3))
    chosen = draft.rng.sample(values, number)
    where = f"{field.sql()} IN ({', '.join(map(literal, chosen))})"
    query = Query(
        (field.sql(), "count(*)"), entity.sql, (where,), field.sql(), "", "count(*) DESC", 1
    )
    many, one, nouns = entity.noun.many, field.noun.one, field.noun.many
    said = spoken_values.quoted_texts(chosen)
    listed, either = english.join_words(said), english.join_words(said, "or")
    of = forms.placed_by(entity, field) or f"with the {one}"
    more = "more" if number == 2 else "the most"
    give = f" Give the {one} and its number of {many}."
    question = draft.say(
        f"Are there more {many} {of} {either}?{give}" if number == 2 else None,
        f"Which of the {nouns} {listed} has {more} {many}?{give}",
        f"Which {one} has {more} {many}, {either}?{give}",
        f"Compare the {nouns} {listed}: which has {more} {many}, and how many?",
        f"Tell me which of the {nouns} {listed} has {more} {many}, and how many.",
        f"Of the {nouns} {listed}, give the one with {more} {many} and its number of {many}.",
        f"Find out which of the {nouns} {listed} has {more} {many}.{give}",
    )
    return asked(question, query, (entity.name,), one_row=True)


def _name(said: str, noun: str) -> str:
    """A named row without its noun, where a name is all that is left."""
    name = said.removeprefix(f"the {noun} ").removeprefix("named ")
    return said if name.startswith(("with ", "whose ")) else name


@shape("larger-of-parents", large=False)
def larger_of_parents(draft: Draft) -> Candidate:
    """Which of two named parents has more children, and how many."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    parent, child = link.parent, link.child.noun
    first = drafting.row_of(draft, parent)
    second = drafting.row_of(draft, parent, first.cells)
    draft.unless(len(first.fields) > 1)
    field = first.fields[0]
    where, after, filters = conditions.perhaps(draft, 0.3, link.child, "T2")
    pair = f"{field.sql('T1')} IN ({literal(first.cells[0])}, {literal(second.cells[0])})"
    select = (field.sql("T1"), "count(*)")
    source, group = per_parent.source(link), per_parent.group(link)
    query = Query(select, source, (pair, *where), group, "", "count(*) DESC", 1)
    has = joins.has(link, f"more {child.many}{after}")
    give = f" Give {the(first.fields)} and the number."
    noun, said = parent.noun.one, drafting.said_alike(first, second)
    question = draft.say(
        f"Which {noun} {has}, {_name(said[0], noun)} or {_name(said[1], noun)}?{give}",
        f"Which one {has}: {said[0]} or {said[1]}?{give}",
        f"Of {said[0]} and {said[1]}, which one {has}?{give}",
        f"Find out which one {has}, {said[0]} or {said[1]}.{give}",
        f"Compare {said[0]} with {said[1]}. Which one {has}?{give}",
        f"I need to know which of the two {has}, {said[0]} or {said[1]}.{give}",
    )
    return asked(question, query, (parent.name, link.child.name), *filters, one_row=True)


@shape("groups-above-all", large=False)
def groups_above_all(draft: Draft) -> Candidate:
    """Groups whose average is above or below that of all rows."""
    entity = draft.entity(lambda e: e.having(Role.CATEGORY, Role.YEAR) and e.having(Role.QUANTITY))
    field = groups.grouping(draft, entity)
    measure = draft.pick(
        f for f in entity.having(Role.QUANTITY) if f.is_full and "avg" in aggregates.functions(f)
    )
    sign, word = draft.pick(((">", "above"), ("<", "below")))
    average = aggregates.aggregate_sql("avg", measure)
    having = f"{average} {sign} (SELECT {average} FROM {entity.sql})"
    query = Query((field.sql(),), entity.sql, (), field.sql(), having)
    many, nouns, figure = entity.noun.many, field.noun.many, f"average {measure.noun.one}"
    question = asking.ask(
        draft,
        f"the {nouns} for which the {figure} of the {many} is {word} that of all {many}",
        f"For which {nouns} is the {figure} of the {many} {word} that of all {many}?",
        f"List every {field.noun.one} for which the {figure} of the {many} is {word} that of all"
        f" {many}.",
        f"Find the {nouns} whose {many} have an {figure} {word} that of all {many}.",
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker())

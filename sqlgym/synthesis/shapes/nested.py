"""Queries within queries: above the average, the most of all, more than another, without any.

A column of which values are missing has no such question: nobody could say what "all" are.
"""

from __future__ import annotations

from sqlgym.synthesis import drafting, english, lexicon
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.forms import event_forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, names, shape, the
from sqlgym.synthesis.schema import Entity, Field, Role, identifier
from sqlgym.synthesis.shapes import aggregates, asking, joins
from sqlgym.synthesis.shapes.filters import listing


def _measure(draft: Draft, entity: Entity, *roles: Role) -> Field:
    return draft.pick(
        f
        for f in entity.having(*(roles or (Role.QUANTITY,)))
        if f.is_full and f.distinct > 2 and not f.noun.one.startswith(("average ", "mean "))
    )


@shape("above-average")
def above_average(draft: Draft) -> Candidate:
    """Rows above or below the average of all, or of those that fulfil a condition."""
    entity = draft.entity(lambda e: e.label and e.having(Role.QUANTITY))
    field = _measure(draft, entity)
    sign = draft.pick((">", "<"))
    inner = Query((f"avg({field.value_sql()})",), entity.sql)
    whose = f"all {entity.noun.many}"
    contrasts: tuple[str, ...] = ()
    if draft.chance(0.35):
        condition = conditions.condition(draft, entity, besides=(field.name,))
        inner = Query(inner.select, entity.sql, (condition.sql,))
        whose = f"the {entity.noun.many} {condition.after(draft)}"
        contrasts = (f"{field.value_sql()} {sign} ({inner.weaker()[0]})",)
    test = f"{field.value_sql()} {sign} ({inner.sql()})"
    shown = () if draft.chance(0.35) else listing(draft, entity)
    query = Query(columns(shown) or ("count(*)",), entity.sql, (test,))
    others = tuple(Query(query.select, entity.sql, (other,)).sql() for other in contrasts)
    word = {">": draft.say("above", "higher than"), "<": draft.say("below", "lower than")}[sign]
    noun = field.noun
    after = draft.say(
        f"whose {noun.one} is {word} the average {noun.one} of {whose}",
        f"with {noun.a} {word} the average of {whose}",
    )
    verb = f"have {noun.a} {word} the average of {whose}"
    question = asking.list_or_count(draft, entity, shown, after, verb)
    return Candidate(question, query.sql(), (entity.name,), (*query.weaker(), *others))


@shape("above-average-filtered")
def above_average_filtered(draft: Draft) -> Candidate:
    """Rows that fulfil a condition and are above or below the average of all."""
    entity = draft.entity(lambda e: e.label and e.having(Role.QUANTITY))
    field = _measure(draft, entity)
    own = conditions.condition(draft, entity, besides=(field.name,))
    sign = draft.pick((">", "<"))
    test = f"{field.value_sql()} {sign} (SELECT avg({field.value_sql()}) FROM {entity.sql})"
    shown = listing(draft, entity, own)
    query = Query(columns(shown), entity.sql, (own.sql, test))
    word = {">": "above", "<": "below"}[sign]
    first, noun = own.after(draft), field.noun
    link = " and" if first.startswith(("whose", "for which", "with", "that ")) else ""
    kind = "with" if first.startswith("with") else "whose"
    rest = {
        "whose": f"whose {noun.one} is {word} the average of all {entity.noun.many}",
        "with": f"with {noun.a} {word} the average of all {entity.noun.many}",
    }[kind]
    question = asking.list_rows(draft, entity, shown, f"{first}{link} {rest}")
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@shape("all-with-most")
def all_with_most(draft: Draft) -> Candidate:
    """All rows that share the highest or lowest value."""
    entity = draft.entity(lambda e: e.label and e.having(Role.QUANTITY, Role.YEAR))
    field = _measure(draft, entity, Role.QUANTITY, Role.YEAR)
    is_most = draft.chance(0.6)
    inner = f"SELECT {'max' if is_most else 'min'}({field.value_sql()}) FROM {entity.sql}"
    shown = listing(draft, entity)
    draft.unless(field in shown)
    query = Query(columns(shown), entity.sql, (f"{field.value_sql()} = ({inner})",))
    most, many = asking.most(field, is_most, draft), entity.noun.many
    several = "If there are several, give them all."
    whole = f"the {names(shown)} of the {many} with the {most} {field.noun.one}"
    question = asking.ask(
        draft,
        whole,
        f"Which {many} have the {most} {field.noun.one} of all? Give {the(shown)} of each."
        f" {several}",
        f"What {'is' if len(shown) == 1 else 'are'} {the(shown)} of the {entity.noun.one} with the"
        f" {most} {field.noun.one}? {several}",
        then=f" {several}",
    )
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@shape("more-than-another")
def more_than_another(draft: Draft) -> Candidate:
    """Rows with more or less of something than a named one."""
    entity = draft.entity(lambda e: e.label and e.having(Role.QUANTITY, Role.YEAR, Role.DATE))
    field = _measure(draft, entity, Role.QUANTITY, Role.YEAR, Role.DATE)
    row = drafting.row_of(draft, entity)
    sign = draft.pick((">", "<"))
    inner = Query((field.value_sql(),), entity.sql, row.where())
    shown = () if draft.chance(0.35) else listing(draft, entity)
    query = Query(
        columns(shown) or ("count(*)",),
        entity.sql,
        (f"{field.value_sql()} {sign} ({inner.sql()})",),
    )
    after, verb = _compared(draft, field, sign, row.said)
    question = asking.list_or_count(draft, entity, shown, after, verb)
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


def _compared(draft: Draft, field: Field, sign: str, said: str) -> tuple[str, str]:
    """More or less than another row, behind a noun and as a verb."""
    noun = field.noun
    more = sign == ">"
    if field.role in (Role.DATE, Role.YEAR):
        word = "later" if more else "earlier"
        events = event_forms(field, f"{word} than {said}")
        if events and field.role is Role.DATE:
            return events[0].after(), events[0].text
        return (
            f"whose {noun.one} is {word} than that of {said}",
            f"have {english.a(word)} {noun.one} than {said}",
        )
    if noun.counts:
        words = f"{'more' if more else 'fewer'} {noun.counts} than {said}"
        return f"with {words}", f"have {words}"
    adjectives = lexicon.SUPERLATIVES.get(noun.graded)
    if adjectives and draft.chance(0.7):
        word = adjectives[2 if more else 3]
        return f"{word} than {said}", f"are {word} than {said}"
    word = draft.say("higher", "greater") if more else draft.say("lower", "smaller")
    words = f"a {word} {noun.one} than {said}"
    return f"with {words}", f"have {words}"


@shape("without-children")
def without_children(draft: Draft) -> Candidate:
    """Rows that nothing refers to, or nothing that fulfils a condition."""
    link = draft.pick(
        link
        for link in draft.world.links
        if link.childless and not link.is_single and joins.is_said(link)
    )
    parent, child = link.parent, link.child
    others = [other for other in draft.world.bridges if other.left is link]
    draft.unless(child.is_link and (not others or not link.is_plain))
    column = identifier(link.column)
    has_condition = draft.chance(0.5) and not child.is_link
    condition = conditions.condition(draft, child) if has_condition else None
    draft.unless(condition and condition.is_negative)
    tests = [condition.sql] if condition else []
    referring = next((f for f in child.fields if f.name == link.column), None)
    tests += [f"{column} IS NOT NULL"] if referring is None or referring.nulls else []
    inner = Query((column,), child.sql, tuple(tests))
    test = f"{identifier(link.target)} NOT IN ({inner.sql()})"
    shown = listing(draft, parent) if parent.label and not draft.chance(0.35) else ()
    query = Query(columns(shown) or ("count(*)",), parent.sql, (test,))
    after_child = f" {condition.after(draft)}" if condition else ""
    things = f"{child.noun.many}{after_child}"
    one = f"{child.noun.one}{f' {english.of_one(after_child.strip())}' if condition else ''}"
    if child.is_link:
        linked = f"linked to no {others[0].right.parent.noun.one}"
        after, verb = draft.say(linked, f"that are {linked}"), f"are {linked}"
    elif link.is_plain:
        after = draft.say(f"without any {things}", f"that have no {things}")
        verb = draft.say(f"have no {things}", f"do not have any {things}")
    else:
        after = f"that are not the {link.role} of any {one}"
        verb = f"are not the {link.role} of any {one}"
    question = asking.list_or_count(draft, parent, shown, after, verb)
    contrasts = list(query.weaker())
    if condition:
        contrasts.append(query.sql().replace(condition.sql, "1 = 1", 1))
    return Candidate(question, query.sql(), (parent.name, child.name), tuple(contrasts))


@shape("above-average-of-parent")
def above_average_of_parent(draft: Draft) -> Candidate:
    """Rows of a named parent that are above or below the average of all rows."""
    chain = joins.draw_chain(draft, 1, lambda c: c.start.label and c.start.having(Role.QUANTITY))
    field = _measure(draft, chain.start)
    where, after, _ = joins.end_of(draft, chain)
    sign = draft.pick((">", "<"))
    column = field.value_sql("T1")
    test = f"{column} {sign} (SELECT avg({field.value_sql()}) FROM {chain.start.sql})"
    shown = asking.shown(draft, chain.start, field.name)
    query = Query(columns(shown, "T1"), chain.source, (*where, test))
    word = {">": "above", "<": "below"}[sign]
    many = chain.start.noun.many
    draft.unless(not after.startswith("whose "))
    own = f"whose {field.noun.one} is {word} the average of all {many}"
    question = asking.list_rows(draft, chain.start, shown, f"{own} and {after}")
    return Candidate(question, query.sql(), chain.tables, query.weaker())


@shape("count-above-aggregate")
def count_above_aggregate(draft: Draft) -> Candidate:
    """How many rows exceed the highest, or fall below the lowest, among rows of another kind."""
    entity = draft.entity(lambda e: e.having(Role.QUANTITY) and e.having(Role.CATEGORY))
    field = _measure(draft, entity)
    category = draft.pick(f for f in entity.having(Role.CATEGORY) if not f.nulls)
    condition = conditions.on_field(draft, entity, category)
    sign, function = draft.pick(((">", "max"), ("<", "min"), (">", "avg"), ("<", "avg")))
    inner = Query((aggregates.aggregate_sql(function, field),), entity.sql, (condition.sql,))
    shown = asking.shown(draft, entity) if entity.label and not draft.chance(0.5) else ()
    query = Query(
        columns(shown) or ("count(*)",),
        entity.sql,
        (f"{field.value_sql()} {sign} ({inner.sql()})",),
    )
    noun = aggregates.aggregate_noun(draft, function, field)
    word = draft.say("above", "higher than") if sign == ">" else draft.say("below", "lower than")
    whose = f"the {noun} of the {entity.noun.many} {condition.after(draft)}"
    after = f"whose {field.noun.one} is {word} {whose}"
    weaker = query.sql().replace(inner.sql(), inner.weaker()[0], 1)
    contrasts = (*query.weaker(), weaker) if function == "avg" else query.weaker()
    question = asking.list_or_count(draft, entity, shown, after)
    return Candidate(question, query.sql(), (entity.name,), contrasts)

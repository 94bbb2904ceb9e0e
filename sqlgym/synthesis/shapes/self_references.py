"""Rows beside the row of their own table that they refer to: employees and their managers.

What the other row is called is told by the name of the referring column: "manager", "parent
category". Also rows that refer to none, of this table or of another.
"""

from __future__ import annotations

from sqlgym.synthesis import drafting, english, lexicon
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.forms import event_forms
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, shape
from sqlgym.synthesis.schema import Field, Link, Role, identifier
from sqlgym.synthesis.shapes import asking, joins
from sqlgym.synthesis.shapes.filters import asked, readings


def _own_link(draft: Draft) -> Link:
    """A reference of a table to itself."""
    return draft.pick(
        link
        for link in draft.world.links
        if link.child.name == link.parent.name and joins.is_said(link)
    )


def _beside(link: Link) -> str:
    """A row T1 with the row T2 that it refers to."""
    return f"{link.child.sql} AS T1 JOIN {link.parent.sql} AS T2 ON {link.on('T1', 'T2')}"


@shape("more-than-own", large=False)
def more_than_own(draft: Draft) -> Candidate:
    """Rows with more or less of something than the row that they refer to."""
    link = _own_link(draft)
    entity = link.child
    field = draft.pick(f for f in entity.having(Role.QUANTITY, Role.YEAR, Role.DATE) if f.is_full)
    sign = draft.pick((">", "<"))
    test = f"{field.value_sql('T1')} {sign} {field.value_sql('T2')}"
    own, after, filters = conditions.perhaps(
        draft, 0.25, entity, "T1", (field.name,), kinds=conditions.SHORT
    )
    shown = () if draft.chance(0.3) else asking.shown(draft, entity)
    query = Query(columns(shown, "T1") or ("count(*)",), _beside(link), (*own, test))
    verb, clause = _compared(draft, field, sign, f"their {link.role}")
    if own:
        draft.unless(shown and clause.startswith("that "))
        clause, verb = f"{after.strip()} {clause}", ""
    question = asking.list_or_count(draft, entity, shown, clause, verb or None)
    question = _agreeing(question, link)
    turned = query.sql().replace(test, test.replace(f" {sign} ", " <> "))
    return Candidate(
        question,
        query.sql(),
        (entity.name,),
        (*query.weaker(), turned),
        readings(query, *filters),
    )


def _agreeing(question: str, link: Link) -> str:
    """Of each single thing that is nobody, the parent is "its" own."""
    one = link.child.noun.one
    if link.child.is_person or not any(f"{word} {one} " in question for word in ("each", "every")):
        return question
    return question.replace(f"their {link.role}", f"its {link.role}")


def _compared(draft: Draft, field: Field, sign: str, other: str) -> tuple[str, str]:
    """More or less than what they refer to: as a verb in the plural, and behind a noun."""
    more, noun = sign == ">", field.noun
    events = event_forms(field, "")
    if events:
        verb = f"{events[0].text.strip()} {'after' if more else 'before'} {other}"
        return verb, f"that {verb}"
    if field.role in (Role.DATE, Role.YEAR):
        verb = f"have {english.a('later' if more else 'earlier')} {noun.one} than {other}"
        return verb, verb.replace("have ", "with ", 1)
    if noun.counts:
        words = f"{'more' if more else 'fewer'} {noun.counts} than {other}"
        return f"have {words}", f"with {words}"
    adjectives = lexicon.SUPERLATIVES.get(noun.graded)
    if adjectives and draft.chance(0.6):
        words = f"{adjectives[2 if more else 3]} than {other}"
        return f"are {words}", f"that are {words}"
    words = f"a {'higher' if more else 'lower'} {noun.one} than {other}"
    return f"have {words}", f"with {words}"


@shape("same-as-own", large=False)
def same_as_own(draft: Draft) -> Candidate:
    """Rows that share a value with the row that they refer to, or do not."""
    link = _own_link(draft)
    entity = link.child
    field = draft.pick(f for f in entity.having(Role.CATEGORY, Role.YEAR) if f.is_full)
    is_same = draft.chance(0.6)
    sign = "=" if is_same else "<>"
    test = f"{field.sql('T1')} {sign} {field.sql('T2')}"
    shown = () if draft.chance(0.35) else asking.shown(draft, entity)
    query = Query(columns(shown, "T1") or ("count(*)",), _beside(link), (test,))
    word, link_word = ("the same", "as") if is_same else ("a different", "from")
    phrase = f"{word} {field.noun.one} {link_word} their {link.role}"
    clause, verb = f"with {phrase}", f"have {phrase}"
    if entity.is_person and is_same and field.noun.one in lexicon.PLACE_COLUMNS:
        clause, verb = f"from {phrase}", f"are from {phrase}"
    question = _agreeing(asking.list_or_count(draft, entity, shown, clause, verb), link)
    return Candidate(question, query.sql(), (entity.name,), query.weaker())


@shape("two-steps-up", large=False)
def two_steps_up(draft: Draft) -> Candidate:
    """What the row is that the row that a named row refers to refers to."""
    draft.unless(draft.chance(0.6))
    link = _own_link(draft)
    entity = link.child
    row = drafting.row_of(draft, entity)
    source = f"{_beside(link)} JOIN {entity.sql} AS T3 ON {link.on('T2', 'T3')}"
    label = drafting.label_of(entity)
    facts = [f for f in asking.outputs(entity) if f not in label]
    fact = (draft.pick(facts),) if facts and draft.chance(0.4) else label
    query = Query(columns(fact, "T3"), source, row.where("T1"))
    owner = f"the {link.role} of the {link.role} of {row.said}"
    who = f"Who is {owner}? Give {drafting.the(label)}." if entity.is_person else None
    question = asking.ask(
        draft,
        f"{drafting.the(fact)} of {owner}",
        who if fact == label else None,
        is_many=len(fact) > 1,
    )
    one_up = Query(columns(fact, "T2"), _beside(link), row.where("T1")).sql()
    return Candidate(question, query.sql(), (entity.name,), (one_up,), one_row=True)


@shape("without-parent", large=False)
def without_parent(draft: Draft) -> Candidate:
    """Rows that refer to nothing."""
    link = draft.pick(
        link
        for link in draft.world.links
        if joins.is_said(link) and not link.orphans and not link.child.is_link
    )
    entity = link.child
    column = identifier(link.column)
    own, after, filters = conditions.perhaps(draft, 0.35, entity, kinds=conditions.SHORT)
    draft.unless(any(test.column == link.column for test in filters))
    shown = () if draft.chance(0.3) else asking.shown(draft, entity)
    query = Query(columns(shown) or ("count(*)",), entity.sql, (*own, f"{column} IS NULL"))
    role = link.parent.noun.one if link.is_plain else link.role
    after = after.strip()
    without = f"without {english.a(role)}"
    words = without if after else draft.say(without, f"that have no {role}")
    question = asking.list_or_count(
        draft, entity, shown, f"{after} {words}".strip(), None if after else f"have no {role}"
    )
    return asked(question, query, (entity.name,), *filters)

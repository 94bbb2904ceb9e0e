"""Two to four tables: rows by what they belong to, and what they belong to.

References are followed upwards only, so that a join never repeats a row.
"""

from __future__ import annotations

from sqlgym.synthesis import drafting
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, bare, columns, label_of, names, the
from sqlgym.synthesis.language import english
from sqlgym.synthesis.reading.world import Role, identifier
from sqlgym.synthesis.shapes import aggregates, asking, relations
from sqlgym.synthesis.shapes.filters import asked
from sqlgym.synthesis.shapes.registry import shape


def _length(draft: Draft) -> int:
    return draft.pick((1, 1, 1, 2, 2, 3))


@shape("list-of-parent")
def list_of_parent(draft: Draft) -> Candidate:
    """Rows that belong to a row, or to rows, of another table."""
    chain = relations.chain(draft, _length(draft), lambda c: c.start.label)
    where, after, filters = relations.end_of(draft, chain)
    label = label_of(chain.start)
    others = asking.outputs(chain.start)
    shown = (*label, draft.pick(others)) if others and draft.chance(0.3) else label
    query = Query(columns(shown, "T1"), chain.source, where)
    question = asking.list_rows(draft, chain.start, shown, after)
    return asked(question, query, chain.tables, *filters)


@shape("list-of-parent-filtered")
def list_of_parent_filtered(draft: Draft) -> Candidate:
    """Rows that fulfil a condition and belong to rows of another table that fulfil one."""
    chain = relations.chain(draft, draft.pick((1, 1, 2)), lambda c: c.start.label)
    where, after, filters = relations.end_of(draft, chain)
    own = conditions.condition(draft, chain.start, "T1")
    shown = label_of(chain.start)
    query = Query(columns(shown, "T1"), chain.source, (own.sql, *where))
    question = asking.list_rows(draft, chain.start, shown, _both(draft, own, after))
    return asked(question, query, chain.tables, own, *filters)


@shape("count-of-parent")
def count_of_parent(draft: Draft) -> Candidate:
    """How many rows belong to a row, or to rows, of another table."""
    chain = relations.chain(draft, _length(draft))
    where, after, filters = relations.end_of(draft, chain)
    own: tuple[str, ...] = ()
    if draft.chance(0.3):
        one = conditions.condition(draft, chain.start, "T1")
        own, after, filters = (one.sql,), _both(draft, one, after), (one, *filters)
    query = Query(("count(*)",), chain.source, (*own, *where))
    question = asking.count_rows(draft, chain.start, after)
    return asked(question, query, chain.tables, *filters)


@shape("aggregate-of-parent")
def aggregate_of_parent(draft: Draft) -> Candidate:
    """An aggregate over the rows that belong to something."""
    chain = relations.chain(draft, _length(draft), lambda c: c.start.having(Role.QUANTITY))
    where, after, filters = relations.end_of(draft, chain)
    field = aggregates.measure(draft, chain.start)
    function = draft.pick(aggregates.functions(field))
    query = Query((aggregates.aggregate_sql(function, field, "T1"),), chain.source, where)
    noun, many = aggregates.aggregate_noun(draft, function, field), chain.start.noun.many
    unit = asking.measured(field)
    question = draft.say(
        f"What is the {noun} of the {many} {after}{unit}?",
        f"Find the {noun} of the {many} {after}.",
        f"Over all {many} {after}, what is the {noun}{unit}?",
    )
    question += aggregates.known_only(function, field, chain.start)
    supports = (Query((f"count(DISTINCT {field.sql('T1')})",), chain.source, where).sql(),)
    return asked(question, query, chain.tables, *filters, supports=supports)


@shape("fact-of-parent")
def fact_of_parent(draft: Draft) -> Candidate:
    """A fact of the row that a named row belongs to."""
    chain = relations.chain(draft, draft.pick((1, 1, 2)), lambda c: c.start.label)
    row = drafting.row_of(draft, chain.start)
    fact = draft.pick(
        [*(chain.end.label.fields if chain.end.label else ()), *asking.outputs(chain.end)]
    )
    query = Query(columns((fact,), chain.alias), chain.source, row.where("T1"))
    owner = row.said
    for role in chain.roles():
        owner = f"the {role} of {owner}"
    question = draft.say(
        f"What is the {fact.noun.one} of {owner}?",
        f"Give the {fact.noun.one} of {owner}.",
        f"Find the {fact.noun.one} of {owner}.",
    )
    return Candidate(question, query.sql(), chain.tables, one_row=True)


@shape("pairs")
def pairs(draft: Draft) -> Candidate:
    """Rows that fulfil a condition, each with the name of what it belongs to."""
    chain = relations.chain(draft, 1, lambda c: c.start.label and c.end.label)
    own = conditions.condition(draft, chain.start, "T1")
    mine, theirs = label_of(chain.start), label_of(chain.end)
    query = Query((*columns(mine, "T1"), *columns(theirs, "T2")), chain.source, (own.sql,))
    link = chain.links[0]
    role = link.parent.noun.one if link.is_plain else link.role
    many, one, after = chain.start.noun.many, chain.start.noun.one, own.after(draft)
    after_one = english.of_one(after)
    question = draft.say(
        f"For each {one} {after_one}, show {the(mine)} of the {one} and {the(theirs)} of"
        f" {chain.start.its} {role}.",
        f"List the {many} {after} together with their {role}: give {the(mine)} of the {one} and"
        f" {the(theirs)} of the {role}.",
        f"Which {role} does each {one} {after_one} have? Show {the(mine)} of the {one}, then"
        f" {the(theirs)} of the {role}.",
    )
    return asked(question, query, chain.tables, own)


@shape("linked")
def linked(draft: Draft) -> Candidate:
    """Rows that a junction table links to a named row, or to rows, of another table."""
    bridge = relations.bridge(draft, lambda b: b.left.parent.label)
    own, other = bridge.left.parent, bridge.right.parent
    label = label_of(own)
    if draft.chance(0.6) and other.label:
        row = drafting.row_of(draft, other)
        where, target = row.where("T3"), row.said
    else:
        condition = conditions.condition(draft, other, "T3")
        where, target = (condition.sql,), f"{other.noun.a} {condition.after_one(draft)}"
    query = Query(columns(label, "T1"), relations.bridged(bridge), where, distinct=True)
    many, way = own.noun.many, relations.through(bridge)
    question = draft.say(
        f"Which {many} are linked to {target} {way}? List {the(label)} of each once.",
        f"List the {names(label)} of the {many} that are linked to {target} {way}, each only once.",
        f"{way.capitalize() if 'table' not in way else 'T' + way[1:]}, which {many} are linked to"
        f" {target}? Give each {bare(label)} once.",
    )
    return Candidate(question, query.sql(), relations.tables_of(bridge), query.weakened())


@shape("count-linked")
def count_linked(draft: Draft) -> Candidate:
    """How many rows a junction table links to a named row of another table."""
    bridge = relations.bridge(draft, lambda b: b.left.parent.key and b.right.parent.label)
    own, other = bridge.left.parent, bridge.right.parent
    row = drafting.row_of(draft, other)
    key = bridge.left.column
    source = (
        f"{bridge.left.child.sql} AS T1 JOIN {other.sql} AS T2 ON {bridge.right.on('T1', 'T2')}"
    )
    query = Query((f"count(DISTINCT T1.{identifier(key)})",), source, row.where("T2"))
    draft.unless(bridge.left.orphans)
    many, way = own.noun.many, relations.through(bridge)
    question = draft.say(
        f"How many different {many} are linked to {row.said} {way}?",
        f"Count the different {many} that are linked to {row.said} {way}.",
    )
    return Candidate(question, query.sql(), (bridge.left.child.name, other.name), query.weakened())


def _both(draft: Draft, own: Condition, after: str) -> str:
    """A condition on rows and what they belong to, behind their noun."""
    first = own.after(draft)
    draft.unless(after.startswith("of ") or (first.startswith("with ") and " and " in first))
    starts = ("whose", "for which", "that")
    return f"{first} and {after}" if first.startswith(starts) else f"{first} {after}"

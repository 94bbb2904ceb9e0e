"""Two to four tables: rows by what they belong to, and what they belong to.

References are followed upwards only, so that a join never repeats a row. A plain link: concerts
"of" a stadium, stadiums that "have" concerts. One with a role: employees "whose manager is" an
employee, employees that "are the manager of" employees. Over a junction table: singers "linked to"
a concert "through" it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlgym.synthesis import drafting, english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition, condition
from sqlgym.synthesis.drafting import (
    Candidate,
    Draft,
    Named,
    Query,
    bare,
    columns,
    named,
    names,
    shape,
    the,
)
from sqlgym.synthesis.schema import Bridge, Entity, Link, Role, identifier
from sqlgym.synthesis.shapes import aggregates, asking
from sqlgym.synthesis.shapes.filters import asked, listing


@dataclass(frozen=True)
class Chain:
    """References followed upwards, from a child to its parent and on."""

    links: tuple[Link, ...]

    @property
    def start(self) -> Entity:
        """The first child."""
        return self.links[0].child

    @property
    def end(self) -> Entity:
        """The last parent."""
        return self.links[-1].parent

    @property
    def alias(self) -> str:
        """The alias of the last parent; the first child's is T1."""
        return f"T{len(self.links) + 1}"

    @property
    def source(self) -> str:
        """The text behind FROM."""
        text = f"{self.start.sql} AS T1"
        for place, link in enumerate(self.links, 1):
            alias = f"T{place + 1}"
            text += f" JOIN {link.parent.sql} AS {alias} ON {link.on(f'T{place}', alias)}"
        return text

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables joined."""
        return (self.start.name, *(link.parent.name for link in self.links))

    def roles(self) -> list[str]:
        """The role of each parent to its child."""
        return [link.parent.noun.one if link.is_plain else link.role for link in self.links]

    def after(self, draft: Draft, condition: Condition) -> str:
        """Behind the first child's noun: the last parent fulfils a condition.

        "whose stadium has a capacity above 500", "whose department has a location in Toronto".
        """
        *others, last = self.roles()
        if not others:
            many = self.end.noun.many
            of = f"of {many} {condition.after(draft)}" if self.links[0].is_plain else None
            return draft.say(
                f"whose {condition.of(draft, last)}", f"whose {condition.of(draft, last)}", of
            )
        # A third owner in a row is lost: "whose club's stadium's capacity is above 500".
        owner = f"{english.possessive(others[0])} {last}"
        return f"whose {condition.of(draft, owner, whose=False)}"

    def after_named(self, draft: Draft, row: Named) -> str:
        """Behind the first child's noun: the last parent is a named row."""
        *others, last = self.roles()
        if not others:
            of = f"of {row.said}" if self.links[0].is_plain else None
            return draft.say(f"whose {last} {row.clause}", of)
        return f"whose {english.possessive(others[0])} {last} {row.clause}"


def draw_chain(draft: Draft, length: int, fits: Callable[[Chain], Any] = bool) -> Chain:
    """References that lead on from each other, through no table twice."""
    first = draft.pick(
        link for link in draft.world.links if is_said(link) and not link.child.is_link
    )
    links = [first]
    while len(links) < length:
        seen = {first.child.name, *(link.parent.name for link in links)}
        links.append(
            draft.pick(
                link
                for link in draft.world.links
                if link.child.name == links[-1].parent.name
                and link.parent.name not in seen
                and is_said(link)
            )
        )
    chain = Chain(tuple(links))
    draft.unless(not fits(chain))
    return chain


def end_of(draft: Draft, chain: Chain) -> tuple[tuple[str, ...], str, tuple[Condition, ...]]:
    """A test of the last parent: SQL, the wording behind the first child, the conditions."""
    if draft.chance(0.4) and chain.end.label is not None and chain.end.rows > 3:
        row = drafting.row_of(draft, chain.end)
        return row.where(chain.alias), chain.after_named(draft, row), ()
    condition_ = condition(draft, chain.end, chain.alias)
    return (condition_.sql,), chain.after(draft, condition_), (condition_,)


def is_owner(link: Link) -> bool:
    """Whether parents simply have their children: nobody is "the club of" members of a club."""
    return link.is_plain or link.role == link.parent.noun.one


def haves(link: Link, things: str) -> str:
    """Behind the parent's noun, as a verb in the plural: "have more than two concerts"."""
    return f"have {things}" if is_owner(link) else f"are the {link.role} of {things}"


def having(link: Link, things: str) -> str:
    """Behind the parent's noun: "with more than two concerts"."""
    return f"with {things}" if is_owner(link) else f"that are the {link.role} of {things}"


def has(link: Link, things: str) -> str:
    """Behind the parent's noun, as a verb in the singular."""
    return f"has {things}" if is_owner(link) else f"is the {link.role} of {things}"


def draw_child_link(draft: Draft, fits: Callable[[Link], Any] = bool) -> Link:
    """A link that can be said from its parent's side."""
    return draft.pick(
        link
        for link in draft.world.links
        if is_said(link) and not link.is_single and not link.child.is_link and fits(link)
    )


def draw_bridge(draft: Draft, fits: Callable[[Bridge], Any] = bool) -> Bridge:
    """A junction table between two tables, where nothing else links these."""
    draft.unless(draft.chance(0.4))  # few shapes ask about it, so each would often
    bridge = draft.pick(bridge for bridge in draft.world.bridges if fits(bridge))
    ways = [
        {link.child.name for link in draft.world.links if link.parent.name == side.parent.name}
        for side in (bridge.left, bridge.right)
    ]
    draft.unless(len(ways[0] & ways[1]) > 1)
    return bridge


def bridge_source(bridge: Bridge) -> str:
    """Both tables of a bridge behind FROM: T1 on its left, T3 on its right."""
    junction = bridge.left.child.sql
    return (
        f"{bridge.left.parent.sql} AS T1 JOIN {junction} AS T2 ON {bridge.left.on('T2', 'T1')}"
        f" JOIN {bridge.right.parent.sql} AS T3 ON {bridge.right.on('T2', 'T3')}"
    )


def tables_of(bridge: Bridge) -> tuple[str, ...]:
    """The three tables of a bridge."""
    return bridge.left.parent.name, bridge.left.child.name, bridge.right.parent.name


def is_said(link: Link) -> bool:
    """Whether the role of a link can be read."""
    if link.role == link.child.noun.one:  # nobody is "the influence of an influence"
        return False
    return not link.role.startswith('"') and link.parent.noun.is_readable | link.is_plain


def _length(draft: Draft) -> int:
    return draft.pick((1, 1, 1, 2))


@shape("list-of-parent")
def list_of_parent(draft: Draft) -> Candidate:
    """Rows that belong to a row, or to rows, of another table."""
    chain = draw_chain(draft, _length(draft), lambda c: c.start.label)
    where, after, filters = end_of(draft, chain)
    shown = listing(draft, chain.start)
    query = Query(columns(shown, "T1"), chain.source, where)
    question = asking.list_rows(draft, chain.start, shown, after)
    return asked(question, query, chain.tables, *filters)


@shape("list-of-parent-filtered")
def list_of_parent_filtered(draft: Draft) -> Candidate:
    """Rows that fulfil a condition and belong to rows of another table that fulfil one."""
    chain = draw_chain(draft, draft.pick((1, 1, 2)), lambda c: c.start.label)
    where, after, filters = end_of(draft, chain)
    own = conditions.condition(draft, chain.start, "T1")
    shown = asking.shown(draft, chain.start, own.column)
    query = Query(columns(shown, "T1"), chain.source, (own.sql, *where))
    question = asking.list_rows(draft, chain.start, shown, _both(draft, own, after))
    return asked(question, query, chain.tables, own, *filters)


@shape("count-of-parent")
def count_of_parent(draft: Draft) -> Candidate:
    """How many rows belong to a row, or to rows, of another table."""
    chain = draw_chain(draft, _length(draft))
    where, after, filters = end_of(draft, chain)
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
    chain = draw_chain(draft, _length(draft), lambda c: c.start.having(Role.QUANTITY))
    where, after, filters = end_of(draft, chain)
    field = aggregates.measure(draft, chain.start)
    function = draft.pick(aggregates.functions(field))
    query = Query((aggregates.aggregate_sql(function, field, "T1"),), chain.source, where)
    noun, many = aggregates.aggregate_noun(draft, function, field), chain.start.noun.many
    unit = asking.unit_text(field)
    question = asking.ask(
        draft,
        f"the {noun} of the {many} {after}",
        f"What is the {noun} of the {many} {after}{unit}?",
        f"Find the {noun} of the {many} {after}.",
        f"Over all {many} {after}, what is the {noun}{unit}?",
        is_many=False,
    )
    question += aggregates.known_only(function, field, chain.start)
    supports = (Query((f"count(DISTINCT {field.sql('T1')})",), chain.source, where).sql(),)
    return asked(question, query, chain.tables, *filters, supports=supports)


@shape("fact-of-parent")
def fact_of_parent(draft: Draft) -> Candidate:
    """A fact of the row that a named row belongs to."""
    chain = draw_chain(draft, draft.pick((1, 1, 1, 2)), lambda c: c.start.label)
    row = drafting.row_of(draft, chain.start)
    draft.unless(len(chain.links) > 1 and not (chain.start.label and chain.start.label.is_name))
    fact = draft.pick(
        [*(chain.end.label.fields if chain.end.label else ()), *asking.outputs(chain.end)]
    )
    query = Query(columns((fact,), chain.alias), chain.source, row.where("T1"))
    owner = row.said
    for role in chain.roles():
        owner = f"the {role} of {owner}"
    question = asking.ask(
        draft,
        f"the {fact.noun.one} of {owner}",
        f"What is the {fact.noun.one} of {owner}?",
        f"Give the {fact.noun.one} of {owner}.",
        f"Find the {fact.noun.one} of {owner}.",
        is_many=False,
    )
    return Candidate(question, query.sql(), chain.tables, one_row=True)


@shape("pairs")
def pairs(draft: Draft) -> Candidate:
    """Rows that fulfil a condition, each with the name of what it belongs to."""
    chain = draw_chain(draft, 1, lambda c: c.start.label and c.end.label)
    own = conditions.condition(draft, chain.start, "T1")
    mine, theirs = named(draft, chain.start), named(draft, chain.end)
    query = Query((*columns(mine, "T1"), *columns(theirs, "T2")), chain.source, (own.sql,))
    link = chain.links[0]
    role = link.parent.noun.one if link.is_plain else link.role
    many, one, after = chain.start.noun.many, chain.start.noun.one, own.after(draft)
    after_one = english.of_one(after)
    question = asking.ask(
        draft,
        f"{the(mine)} of each {one} {after_one}, and {the(theirs)} of {chain.start.its} {role}",
        f"For each {one} {after_one}, show {the(mine)} of the {one} and {the(theirs)} of"
        f" {chain.start.its} {role}.",
        f"List the {many} {after} together with their {role}: give {the(mine)} of the {one} and"
        f" {the(theirs)} of the {role}.",
        f"Show {the(mine)} of each {one} {after_one}, then {the(theirs)} of {chain.start.its}"
        f" {role}.",
        is_many=None,
    )
    return asked(question, query, chain.tables, own)


@shape("linked")
def linked(draft: Draft) -> Candidate:
    """Rows that a junction table links to a named row, or to rows, of another table."""
    bridge = draw_bridge(draft, lambda b: b.left.parent.label)
    own, other = bridge.left.parent, bridge.right.parent
    label = named(draft, own)
    if draft.chance(0.6) and other.label:
        row = drafting.row_of(draft, other)
        where, target = row.where("T3"), row.said
    else:
        condition = conditions.condition(draft, other, "T3")
        where, target = (condition.sql,), f"{other.noun.a} {condition.after_one(draft)}"
        draft.unless(condition.is_negative)
    query = Query(columns(label, "T1"), bridge_source(bridge), where, distinct=True)
    many = own.noun.many
    question = asking.ask(
        draft,
        f"the {names(label)} of the {many} that are linked to {target}, each only once",
        f"Which {many} are linked to {target}? List {the(label)} of each once.",
        f"Which {many} are linked to {target}? Give each {bare(label)} once.",
        f"List the {names(label)} of the {many} linked to {target}, each only once.",
    )
    return Candidate(question, query.sql(), tables_of(bridge), query.weaker())


@shape("count-linked")
def count_linked(draft: Draft) -> Candidate:
    """How many rows a junction table links to a named row of another table."""
    bridge = draw_bridge(draft, lambda b: b.left.parent.key and b.right.parent.label)
    own, other = bridge.left.parent, bridge.right.parent
    row = drafting.row_of(draft, other)
    key = bridge.left.column
    source = (
        f"{bridge.left.child.sql} AS T1 JOIN {other.sql} AS T2 ON {bridge.right.on('T1', 'T2')}"
    )
    query = Query((f"count(DISTINCT T1.{identifier(key)})",), source, row.where("T2"))
    draft.unless(bridge.left.orphans)
    many = own.noun.many
    question = asking.ask(
        draft,
        f"the number of different {many} that are linked to {row.said}",
        f"How many different {many} are linked to {row.said}?",
        f"Count the different {many} that are linked to {row.said}.",
        is_many=False,
    )
    return Candidate(question, query.sql(), (bridge.left.child.name, other.name), query.weaker())


def _both(draft: Draft, own: Condition, after: str) -> str:
    """A condition on rows and what they belong to, behind their noun."""
    first = own.after(draft, "whose", "which", "that", "owns", "be", "did")
    draft.unless(after.startswith("of ") or (first.startswith("with ") and " and " in first))
    starts = ("whose", "for which", "that")
    return f"{first} and {after}" if first.startswith(starts) else f"{first} {after}"

"""Questions that select rows by the rows that refer to them, such as stadiums by their concerts.

The rows refer to their owner directly ("stadiums that have more than 2 concerts"), through a
junction table ("singers that have the most concerts"), or through a table in between ("continents
that have at least one car maker across their countries").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlgym.synthesis import conditions
from sqlgym.synthesis.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Entity, Field, Link, identifier
from sqlgym.synthesis.templates.phrases import ask, extreme, measured, names, the
from sqlgym.synthesis.templates.rows import (
    bridge_of,
    compound,
    is_said,
    label_of,
    listing,
    proven,
    role_of,
)


@dataclass(frozen=True)
class Owning:
    """A relation from owners to the rows that they own.

    Attributes:
        link: The reference to the owner T1 from the table T2.
        rest: Further joins after T2, up to the owned rows.
        alias: Alias of the owned rows.
        member: Column that identifies an owned row, if a row could otherwise be counted twice; else
            "".
        across: Plural noun for the table in between; "" if there is none.
        after: The conditions on the owned rows, as words that follow their noun.
    """

    link: Link
    owned: Entity
    tables: tuple[str, ...]
    rest: str = ""
    alias: str = "T2"
    member: str = ""
    across: str = ""
    conditions: tuple[Condition, ...] = ()
    after: str = ""

    @property
    def owner(self) -> Entity:
        """The table of the owners."""
        return self.link.parent

    @property
    def key(self) -> str:
        """The key column of the owners."""
        return identifier(self.link.target)

    @property
    def source(self) -> str:
        """The text after FROM."""
        child = self.link.child.sql
        return f"{self.owner.sql} AS T1 JOIN {child} AS T2 ON {self.link.on('T2', 'T1')}{self.rest}"

    @property
    def where(self) -> tuple[str, ...]:
        """The conditions in SQL."""
        return tuple(each.sql for each in self.conditions)

    @property
    def thing(self) -> str:
        """An owned row as a noun phrase without an article."""
        return self.owned.noun.one + self.after

    @property
    def is_role(self) -> bool:
        """Whether the question uses the role of the owners instead of "have"."""
        return not self.link.is_plain and self.link.role != self.owner.noun.one

    def have(self, things: str, has: bool = False) -> str:
        """Return a verb phrase for the owners: singular if `has` is true, otherwise plural."""
        if self.is_role:
            return f"{'is' if has else 'are'} the {self.link.role} of {things}"
        verb = "has" if has else "have"
        across = f"across {self.owner.its if has else 'their'} {self.across}" * bool(self.across)
        if across and self.after:  # otherwise it could belong to the condition
            return f"{verb}, {across}, {things}"
        return f"{verb} {things} {across}".rstrip()

    def columns(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """Return columns of the owners in SQL."""
        return tuple(field.sql("T1") for field in fields)

    def query(self, *select: str, **clauses: Any) -> Query:
        """Return a query over owners and owned rows."""
        return Query(select, self.source, self.where, **clauses)

    def candidate(self, question: str, query: Query, **facts: Any) -> Candidate:
        """Return a candidate about the owners."""
        return proven(question, query, self.tables, self.conditions, self.member, **facts)

    def which(self, draft: Draft, label: Sequence[Field], have: str) -> str:
        """Return a question that asks for the owners of rows."""
        many = self.owner.noun.many
        which = f"Which {many} {have}? Give {the(label)} of each."
        return ask(draft, f"{names(label)} of the {many} that {have}", which)


def owning(
    draft: Draft,
    chance: float = 0.0,
    fits: Callable[[Entity, Entity], Any] = lambda owner, owned: owner.label,
    far: bool = True,
) -> Owning:
    """Return a random relation.

    Args:
        chance: Probability of a condition on the owned rows.
        fits: Function that returns whether the owner table and the owned table are eligible.
        far: Whether a junction table or another table may be in between.
    """
    own = _relation(draft, fits, draft.rng.random() if far else 0.0)
    if not draft.chance(chance):
        return own
    found = (conditions.condition(draft, own.owned, own.alias, [own.link.column]),)
    return replace(own, conditions=found, after=conditions.after(draft, found))


def _relation(draft: Draft, fits: Callable[[Entity, Entity], Any], way: float) -> Owning:
    junctions = {bridge.left.child.name for bridge in draft.world.bridges}
    links = [
        k
        for k in draft.world.links
        if is_said(k) and not k.is_single and not k.child.is_link and k.child.name not in junctions
    ]
    if way < 0.55:
        link = draft.pick(k for k in links if fits(k.parent, k.child))
        return Owning(link, link.child, (link.parent.name, link.child.name))
    if way < 0.8:
        bridge = bridge_of(draft, lambda b: fits(b.left.parent, b.right.parent))
        low, right = bridge.left, bridge.right
        tables = (low.parent.name, low.child.name, right.parent.name)
        rest = f" JOIN {right.parent.sql} AS T3 ON {right.on('T2', 'T3')}"
        return Owning(low, right.parent, tables, rest, "T3", f"T2.{identifier(right.column)}")
    near = {(k.child.name, k.parent.name) for k in draft.world.links}
    top, low = draft.pick(
        (top, low)
        for top in links
        for low in links
        if low.parent is top.child
        and top.is_plain
        and low.is_plain
        and (low.child.name, top.parent.name) not in near
        and low.child is not top.parent
        and fits(top.parent, low.child)
    )
    tables = (top.parent.name, top.child.name, low.child.name)
    rest = f" JOIN {low.child.sql} AS T3 ON {low.on('T3', 'T2')}"
    return Owning(top, low.child, tables, rest, "T3", across=top.child.noun.many)


@template("owners-with-many", weight=4)
def owners_with_many(draft: Draft) -> Candidate:
    """Ask for owners of more than a given number of rows, or of at least that many."""
    own = owning(draft, 0.3)
    label = label_of(draft, own.owner)
    sign, least = draft.pick(((">", 1), (">=", 2), (">=", 3), (">", 2), (">=", 5), (">", 10)))
    having = f"count(*) {sign} {least}"
    query = own.query(*own.columns(label), group=f"T1.{own.key}", having=having)
    things = own.thing if least == 1 else own.owned.noun.many + own.after
    have = own.have(f"{'more than' if sign == '>' else 'at least'} {least} {things}")
    return own.candidate(own.which(draft, label, have), query)


@template("owner-with-most", weight=4)
def owner_with_most(draft: Draft) -> Candidate:
    """Ask for the owner of the largest number of rows."""
    own = owning(draft, 0.35)
    fields, many, one = listing(draft, own.owner), own.owned.noun.many, own.owner.noun.one
    counts = draft.pick(([], [], [], ["count(*)"]))
    select = (*own.columns(fields), *counts)
    query = own.query(*select, group=f"T1.{own.key}", order="count(*) DESC", limit=1)
    has = own.have(f"the most {many}{own.after}", has=True)
    question = f"Which {one} {has}? Give {the(fields, *[f'number of {many}' for _ in counts])}."
    if not counts and draft.chance(0.6):
        what = f"{the(fields).removeprefix('the ')} of the {one} that {has}"
        question = ask(draft, what, many=len(fields) > 1)
    return own.candidate(question, query, one_row=True)


@template("owners-without", weight=4)
def owners_without(draft: Draft) -> Candidate:
    """Ask for owners without rows, or their number."""
    own = owning(draft, 0.45)
    draft.unless(own.across or any("<>" in sql for sql in own.where))
    have = own.have(f"no {own.thing}")
    if own.is_role:
        have = f"are not the {own.link.role} of any {own.thing}"
    column, child = f"T2.{identifier(own.link.column)}", f"{own.link.child.sql} AS T2{own.rest}"
    has_nulls = any(f.nulls for f in own.link.child.fields if f.name == own.link.column)
    known = (f"{column} IS NOT NULL",) * has_nulls  # NOT IN is never true for a list with NULL
    inner, every = (Query((column,), child, (*each, *known)).sql() for each in (own.where, ()))
    query = Query(("count(*)",), own.owner.sql, (f"{own.key} NOT IN ({inner})",))
    question = f"How many {own.owner.noun.many} {have}?"
    if draft.chance(0.7):
        label = label_of(draft, own.owner)
        query = replace(query, select=tuple(field.sql() for field in label))
        question = own.which(draft, label, have)
        if draft.chance(0.4):
            sides = Query(query.select, own.owner.sql).sql(), own.query(*own.columns(label)).sql()
            return Candidate(
                question, " EXCEPT ".join(sides), own.tables, sides[:1], (query.sql(),)
            )
    wider = (query.sql().replace(inner, every),) * bool(own.where)
    return own.candidate(question, query, contrasts=wider)


@template("owners-with-some", weight=4)
def owners_with_some(draft: Draft) -> Candidate:
    """Ask for owners of a row that satisfies a condition, or their number."""
    own = owning(draft, 1.0)
    have, many = own.have(f"at least one {own.thing}"), own.owner.noun.many
    if draft.chance(0.3):
        query = own.query(f"count(DISTINCT T1.{own.key})")
        return own.candidate(f"How many {many} {have}?", query)
    label = label_of(draft, own.owner)
    query = own.query(*own.columns(label), distinct=True)
    each = replace(query, distinct=False, group=f"T1.{own.key}").sql()
    question = f"Which {many} {have}? List {the(label)} of each once."
    return own.candidate(question, query, readings=(each,))


@template("owners-of-two-kinds", weight=5)
def owners_of_two_kinds(draft: Draft) -> Candidate:
    """Ask for parent rows that have child rows of both kinds, or of the first kind only."""
    own = owning(draft, fits=lambda owner, owned: owner.label and owner.label.is_said)
    draft.unless(own.across)
    label, pair = label_of(draft, own.owner), conditions.opposites(draft, own.owned, own.alias)
    sides = [replace(own, conditions=(each,)).query(*own.columns(label)) for each in pair]
    a, b = (own.owned.noun.one + conditions.after(draft, [each]) for each in pair)
    word = draft.pick(("INTERSECT", "INTERSECT", "EXCEPT"))
    have = own.have(f"at least one {a} but no {b}")
    if word == "INTERSECT":
        have = own.have(f"both at least one {a} and at least one {b}")
    question = ask(draft, f"{names(label)} of the {own.owner.noun.many} that {have}")
    return compound(question, word, sides, own.tables)


@template("owner-of-extreme", weight=3)
def owner_of_extreme(draft: Draft) -> Candidate:
    """Ask for the parent of the row with the highest or lowest value."""
    own = owning(draft, 0.0, lambda owner, owned: owner.label and measured(owned), False)
    field = draft.pick(measured(own.owned))
    order, one, _ = extreme(draft, own.owned, field, "T2")
    fields = listing(draft, own.owner)
    query = own.query(*own.columns(fields), order=order, limit=1)
    what = f"{the(fields).removeprefix('the ')} of the {role_of(own.link)} of the {one}"
    question = ask(draft, what, many=len(fields) > 1)
    # The owned row may have no owner.
    outer = f"{own.owned.sql} AS T2 LEFT JOIN {own.owner.sql} AS T1 ON {own.link.on('T2', 'T1')}"
    every = replace(query, source=outer).sql()
    # Two owned rows of one owner may share the highest value.
    column = field.value_sql("T2")
    first = Query((column,), f"{own.owned.sql} AS T2", order=order, limit=1)
    tied = replace(query, order="", limit=0, where=(f"{column} = ({first.sql()})",)).sql()
    return own.candidate(question, query, one_row=True, readings=(every, tied))


@template("rows-of-extreme", weight=2)
def rows_of_extreme(draft: Draft) -> Candidate:
    """Ask for the rows of the owner with the highest or lowest value, or their number."""
    own = owning(draft, 0.0, lambda owner, owned: measured(owner), False)
    draft.unless(own.is_role)
    order, owner, _ = extreme(draft, own.owner, draft.pick(measured(own.owner)))
    inner = Query((own.key,), own.owner.sql, order=order, limit=1)
    where = (f"{identifier(own.link.column)} = ({inner.sql()})",)
    if draft.chance(0.5):
        query = Query(("count(*)",), own.owned.sql, where)
        return own.candidate(f"How many {own.owned.noun.many} does the {owner} have?", query)
    fields = listing(draft, own.owned)
    query = Query(tuple(f.sql() for f in fields), own.owned.sql, where)
    return own.candidate(
        ask(draft, f"{names(fields)} of the {own.owned.noun.many} of the {owner}"), query
    )

"""Questions about rows by the rows that refer to them: stadiums by their concerts.

The rows refer to their owner directly, over a junction table, or over a table in between:

    stadiums that have more than 2 concerts
    employees that are the manager of at least one employee
    singers that have the most concerts                               (junction)
    continents that have at least one car maker across their countries
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlgym.synthesis import conditions
from sqlgym.synthesis.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Entity, Field, Link, identifier
from sqlgym.synthesis.templates.phrases import ask, extreme, measured, names, the
from sqlgym.synthesis.templates.rows import (
    bridge_of,
    is_said,
    label_of,
    listing,
    proven,
    role_of,
)


@dataclass(frozen=True)
class Owning:
    """A relation from owners to the rows they own.

    Attributes:
        link: The reference to the owner T1 from the table T2.
        rest: Further joins behind T2, up to the owned rows.
        alias: Alias of the owned rows.
        member: Column that tells owned rows apart, where one may be counted twice; else "".
        across: The table in between as a noun in the plural; else "".
    """

    link: Link
    owned: Entity
    tables: tuple[str, ...]
    rest: str = ""
    alias: str = "T2"
    member: str = ""
    across: str = ""

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
        """The text behind FROM."""
        child = self.link.child.sql
        return f"{self.owner.sql} AS T1 JOIN {child} AS T2 ON {self.link.on('T2', 'T1')}{self.rest}"

    @property
    def is_role(self) -> bool:
        """Whether owners do not simply have the rows, but are something to them."""
        return not self.link.is_plain and self.link.role != self.owner.noun.one

    def have(self, things: str, has: bool = False) -> str:
        """Owners own things, as a verb phrase in the plural, or with `has` in the singular."""
        if self.is_role:
            return f"{'is' if has else 'are'} the {self.link.role} of {things}"
        its = self.owner.its if has else "their"
        across = f" across {its} {self.across}" if self.across else ""
        return f"{'has' if has else 'have'} {things}{across}"

    def columns(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """Columns of the owners in SQL."""
        return tuple(field.sql("T1") for field in fields)

    def query(self, *select: str, found: Sequence[Condition] = (), **clauses: Any) -> Query:
        """A query over owners and owned rows."""
        return Query(select, self.source, tuple(each.sql for each in found), **clauses)

    def candidate(
        self, question: str, query: Query, found: Sequence[Condition] = (), **facts: Any
    ) -> Candidate:
        """A candidate about the owners."""
        return proven(question, query, self.tables, found, self.member, **facts)

    def which(self, draft: Draft, label: Sequence[Field], have: str) -> str:
        """A question for the owners that own something."""
        many = self.owner.noun.many
        which = f"Which {many} {have}? Give {the(label)} of each."
        return ask(draft, f"{names(label)} of the {many} that {have}", which)


def owning(
    draft: Draft,
    fits: Callable[[Entity, Entity], Any] = lambda owner, owned: owner.label,
    far: bool = True,
) -> Owning:
    """A random relation.

    Args:
        fits: Whether owner and owned table are eligible.
        far: Whether a junction or a table may lie between them.
    """
    way = draft.rng.random() if far else 0.0
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


def perhaps(draft: Draft, own: Owning, chance: float) -> tuple[list[Condition], str]:
    """With some probability a condition on the owned rows, and the words behind their noun."""
    found = []
    if draft.chance(chance):
        found = [conditions.condition(draft, own.owned, own.alias, [own.link.column])]
    return found, conditions.after(draft, found)


@template("owners-with-many", weight=4)
def owners_with_many(draft: Draft) -> Candidate:
    """Owners of enough rows."""
    own = owning(draft)
    label, (found, said) = label_of(draft, own.owner), perhaps(draft, own, 0.3)
    sign, least = draft.pick(((">", 1), (">=", 2), (">=", 3), (">", 2), (">=", 5), (">", 10)))
    having = f"count(*) {sign} {least}"
    query = own.query(*own.columns(label), found=found, group=f"T1.{own.key}", having=having)
    noun = own.owned.noun.one if least == 1 else own.owned.noun.many
    have = own.have(f"{'more than' if sign == '>' else 'at least'} {least} {noun}{said}")
    return own.candidate(own.which(draft, label, have), query, found)


@template("owner-with-most", weight=4)
def owner_with_most(draft: Draft) -> Candidate:
    """The owner of the most rows."""
    own = owning(draft)
    fields, (found, said) = listing(draft, own.owner), perhaps(draft, own, 0.35)
    counts = draft.pick(([], [], [], ["count(*)"]))
    query = own.query(
        *own.columns(fields),
        *counts,
        found=found,
        group=f"T1.{own.key}",
        order="count(*) DESC",
        limit=1,
    )
    has = own.have(f"the most {own.owned.noun.many}{said}", has=True)
    one, also = own.owner.noun.one, [f"number of {own.owned.noun.many}" for _ in counts]
    question = f"Which {one} {has}? Give {the(fields, *also)}."
    if not counts and draft.chance(0.6):
        what = f"{the(fields).removeprefix('the ')} of the {one} that {has}"
        question = ask(draft, what, many=len(fields) > 1)
    return own.candidate(question, query, found, one_row=True)


@template("owners-without", weight=4)
def owners_without(draft: Draft) -> Candidate:
    """Owners of no row, or the number of them."""
    own = owning(draft)
    draft.unless(own.across)
    found, said = perhaps(draft, own, 0.45)
    draft.unless(any("<>" in each.sql for each in found))
    one = own.owned.noun.one + said
    have = f"are not the {own.link.role} of any {one}" if own.is_role else own.have(f"no {one}")
    child, where = f"{own.link.child.sql} AS T2{own.rest}", tuple(each.sql for each in found)
    column = f"T2.{identifier(own.link.column)}"
    inner, every = (Query((column,), child, each).sql() for each in (where, ()))
    condition = (f"{own.key} NOT IN ({inner})",)
    if draft.chance(0.3):
        query = Query(("count(*)",), own.owner.sql, condition)
        question = f"How many {own.owner.noun.many} {have}?"
    else:
        label = label_of(draft, own.owner)
        query = Query(tuple(field.sql() for field in label), own.owner.sql, condition)
        question = own.which(draft, label, have)
        if draft.chance(0.4):
            sides = (
                Query(query.select, own.owner.sql),
                own.query(*own.columns(label), found=found),
            )
            minus, contrasts = " EXCEPT ".join(side.sql() for side in sides), (sides[0].sql(),)
            return Candidate(question, minus, own.tables, contrasts, (query.sql(),))
    wider = (query.sql().replace(inner, every),) * bool(found)
    return own.candidate(question, query, found, contrasts=wider)


@template("owners-with-some", weight=4)
def owners_with_some(draft: Draft) -> Candidate:
    """Owners of a row that fulfills a condition, or the number of them."""
    own = owning(draft)
    found, said = perhaps(draft, own, 1.0)
    have = own.have(f"at least one {own.owned.noun.one}{said}")
    if draft.chance(0.3):
        query = own.query(f"count(DISTINCT T1.{own.key})", found=found)
        return own.candidate(f"How many {own.owner.noun.many} {have}?", query, found)
    label = label_of(draft, own.owner)
    query = own.query(*own.columns(label), found=found, distinct=True)
    question = f"Which {own.owner.noun.many} {have}? List {the(label)} of each once."
    each = own.query(*own.columns(label), found=found, group=f"T1.{own.key}")
    return own.candidate(question, query, found, readings=(each.sql(),))


@template("owners-of-two-kinds", weight=5)
def owners_of_two_kinds(draft: Draft) -> Candidate:
    """Owners of rows of two kinds, or of the first kind only."""
    own = owning(draft, lambda owner, owned: owner.label and owner.label.is_said)
    draft.unless(own.across)
    label, pair = label_of(draft, own.owner), conditions.opposites(draft, own.owned, own.alias)
    sides = [own.query(*own.columns(label), found=[each]).sql() for each in pair]
    alone = [side.replace("SELECT", "SELECT DISTINCT", 1) for side in sides]
    a, b = (f"{own.owned.noun.one}{conditions.after(draft, [each])}" for each in pair)
    word = draft.pick(("INTERSECT", "INTERSECT", "EXCEPT"))
    have = own.have(f"at least one {a} but no {b}")
    if word == "INTERSECT":
        have = own.have(f"both at least one {a} and at least one {b}")
    question = ask(draft, f"{names(label)} of the {own.owner.noun.many} that {have}")
    contrasts = tuple(alone[: 1 + (word == "INTERSECT")])
    return Candidate(question, f" {word} ".join(sides), own.tables, contrasts)


@template("owner-of-extreme", weight=3)
def owner_of_extreme(draft: Draft) -> Candidate:
    """The row to which the row with the most or the least of something refers."""
    own = owning(draft, lambda owner, owned: owner.label and measured(owned), far=False)
    order, one, _ = extreme(draft, own.owned, draft.pick(measured(own.owned)), "T2")
    fields = listing(draft, own.owner)
    query = own.query(*own.columns(fields), order=order, limit=1)
    what = f"{the(fields).removeprefix('the ')} of the {role_of(own.link)} of the {one}"
    question = ask(draft, what, many=len(fields) > 1)
    return own.candidate(question, query, one_row=True)


@template("rows-of-extreme", weight=2)
def rows_of_extreme(draft: Draft) -> Candidate:
    """The rows of the owner with the most or the least of something, or their number."""
    own = owning(draft, lambda owner, owned: measured(owner), far=False)
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

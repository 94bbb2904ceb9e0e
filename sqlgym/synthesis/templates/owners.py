"""Questions about rows by the rows that refer to them: stadiums by their concerts.

The rows may refer to the owner directly, over a junction table, or over a table in between:

    stadiums that have more than 2 concerts
    employees that are the manager of at least one employee
    singers that have the most concerts                        (junction)
    continents that have no car maker across their countries   (table in between)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlgym.synthesis import conditions, spoken_values
from sqlgym.synthesis.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Entity, Link
from sqlgym.synthesis.templates.phrases import (
    MOST_GROUPS,
    aggregate_noun,
    ask,
    extreme,
    functions,
    measured,
    measures,
    names,
    the,
)
from sqlgym.synthesis.templates.rows import (
    bridge_of,
    is_said,
    label_of,
    listing,
    reference,
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
        across: Words for the table in between: "across their countries"; else "".
        is_total: Every owner owns a row.
    """

    link: Link
    owned: Entity
    rest: str
    alias: str
    tables: tuple[str, ...]
    member: str = ""
    across: str = ""
    is_total: bool = False

    @property
    def owner(self) -> Entity:
        """The table of the owners."""
        return self.link.parent

    @property
    def group(self) -> str:
        """The key of an owner in SQL."""
        return self.link.on("T2", "T1").rpartition(" = ")[2]

    @property
    def source(self) -> str:
        """The text behind FROM."""
        child = self.link.child.sql
        return f"{self.owner.sql} AS T1 JOIN {child} AS T2 ON {self.link.on('T2', 'T1')}{self.rest}"

    @property
    def key(self) -> str:
        """The owner's key column."""
        return self.group.removeprefix("T1.")

    def owners_sql(self, *where: str) -> str:
        """A subquery for the keys of the owners of some rows."""
        column = f"T2.{reference(self.link)}"
        return Query((column,), f"{self.link.child.sql} AS T2{self.rest}", where).sql()

    def have(self, things: str, has: bool = False) -> str:
        """Owners own things, as a verb phrase in the plural, or with `has` in the singular."""
        if not self.link.is_plain and self.link.role != self.owner.noun.one:
            return f"{'is' if has else 'are'} the {self.link.role} of {things}"
        its = self.owner.its if has else "their"
        across = f" {self.across.format(its)}" if self.across else ""
        return f"{'has' if has else 'have'} {things}{across}"

    def candidate(self, question: str, query: Query, *found: Condition, **facts: Any) -> Candidate:
        """A candidate that also proves that no owned row is counted twice."""
        sql = query.sql()
        readings = [sql.replace(each.sql, other) for each in found for other in each.readings]
        if self.member and "count(*)" in sql:
            readings.append(sql.replace("count(*)", f"count(DISTINCT {self.member})"))
        facts["readings"] = (*readings, *facts.get("readings", ()))
        facts["contrasts"] = (*query.weaker(), *facts.get("contrasts", ()))
        return Candidate(question, sql, self.tables, **facts)


def owning(
    draft: Draft,
    fits: Callable[[Entity, Entity], Any] = lambda owner, owned: True,
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
        tables = (link.parent.name, link.child.name)
        return Owning(link, link.child, "", "T2", tables, is_total=not link.childless)
    if way < 0.8:
        bridge = bridge_of(draft, lambda b: fits(b.left.parent, b.right.parent))
        left, right = bridge.left, bridge.right
        rest = f" JOIN {right.parent.sql} AS T3 ON {right.on('T2', 'T3')}"
        tables = (left.parent.name, left.child.name, right.parent.name)
        member = f"T2.{reference(right)}"
        return Owning(left, right.parent, rest, "T3", tables, member, is_total=not left.childless)
    near = {(k.child.name, k.parent.name) for k in draft.world.links}
    pairs = [
        (top, low)
        for top in links
        for low in links
        if low.parent is top.child
        and top.is_plain
        and low.is_plain
        and (low.child.name, top.parent.name) not in near
        and len({top.parent.name, top.child.name, low.child.name}) == 3
        and fits(top.parent, low.child)
    ]
    top, low = draft.pick(pairs)
    rest = f" JOIN {low.child.sql} AS T3 ON {low.on('T3', 'T2')}"
    across = f"across {{}} {top.child.noun.many}"
    tables = (top.parent.name, top.child.name, low.child.name)
    return Owning(top, low.child, rest, "T3", tables, across=across)


def _labeled(owner: Entity, owned: Entity) -> bool:
    return owner.label is not None


def _condition(draft: Draft, chance: float) -> tuple[Owning, list[Condition], str]:
    """A relation, with some probability a condition on the owned rows, and words for it."""
    own = owning(draft, _labeled)
    if not draft.chance(chance):
        return own, [], ""
    found = [conditions.condition(draft, own.owned, own.alias, [own.link.column])]
    return own, found, conditions.after(draft, found)


def _columns(own: Owning, fields: Sequence[Any]) -> tuple[str, ...]:
    return tuple(field.sql("T1") for field in fields)


@template("count-per-owner", weight=5)
def count_per_owner(draft: Draft) -> Candidate:
    """Each owner with the number of its rows."""
    own, found, said = _condition(draft, 0.35)
    label = label_of(draft, own.owner)
    where = tuple(each.sql for each in found)
    query = Query((*_columns(own, label), "count(*)"), own.source, where, own.group)
    many, one, owner = own.owned.noun.many + said, own.owned.noun.one + said, own.owner.noun.one
    is_role = own.have("x") != "have x" and not own.across
    if not own.is_total or where or own.across or is_role:
        some = own.have(f"at least one {one}", has=True)
        question = (
            f"For each {owner} that {some}, give {the(label)} of the {owner} and the number of"
            f" these {own.owned.noun.many}."
        )
    else:
        question = draft.pick(
            (
                f"How many {many} does each {owner} have? Give {the(label)} and the number.",
                f"For each {owner}, show {the(label)} and the number of {own.owner.its} {many}.",
            )
        )
    return own.candidate(question, query, *found, several=True)


@template("owners-with-many", weight=4)
def owners_with_many(draft: Draft) -> Candidate:
    """Owners of enough rows."""
    own, found, said = _condition(draft, 0.3)
    label = label_of(draft, own.owner)
    sign, least = draft.pick(((">", 1), (">=", 2), (">=", 3), (">", 2), (">=", 5), (">", 10)))
    where = tuple(each.sql for each in found)
    having = f"count(*) {sign} {least}"
    query = Query(_columns(own, label), own.source, where, own.group, having)
    noun = own.owned.noun.one if least == 1 else own.owned.noun.many
    have = own.have(f"{'more than' if sign == '>' else 'at least'} {least} {noun}{said}")
    many = own.owner.noun.many
    question = ask(
        draft,
        f"{names(label)} of the {many} that {have}",
        f"Which {many} {have}? Give {the(label)} of each.",
    )
    return own.candidate(question, query, *found)


@template("owner-with-most", weight=4)
def owner_with_most(draft: Draft) -> Candidate:
    """The owner of the most or the fewest rows."""
    own, found, said = _condition(draft, 0.35)
    fields = listing(draft, own.owner)
    is_most = draft.chance(0.85) or bool(said) or not own.is_total
    with_count = draft.chance(0.25)
    where = tuple(each.sql for each in found)
    select = (*_columns(own, fields), *["count(*)"] * with_count)
    order = f"count(*) {'DESC' if is_most else 'ASC'}"
    query = Query(select, own.source, where, own.group, order=order, limit=1)
    has = own.have(f"the {'most' if is_most else 'fewest'} {own.owned.noun.many}{said}", has=True)
    one, also = own.owner.noun.one, [f"number of {own.owned.noun.many}"] * with_count
    which = f"Which {one} {has}? Give {the(fields, *also)}."
    what = f"{the(fields).removeprefix('the ')} of the {one} that {has}"
    question = which if with_count else ask(draft, what, which, many=len(fields) > 1)
    return own.candidate(question, query, *found, one_row=True)


def _none(own: Owning, said: str, at_least: bool) -> str:
    one = own.owned.noun.one + said
    if at_least:
        return own.have(f"at least one {one}")
    return own.have(f"no {one}").replace("are the", "are not the").replace(" of no ", " of any ")


@template("owners-without", weight=4)
def owners_without(draft: Draft) -> Candidate:
    """Owners of no row, or the number of them."""
    own, found, said = _condition(draft, 0.45)
    draft.unless(own.across or any("<>" in each.sql for each in found))
    where = tuple(each.sql for each in found)
    have, many = _none(own, said, False), own.owner.noun.many
    inner = f"{own.key} NOT IN ({own.owners_sql(*where)})"
    contrasts = [Query(("count(*)",), own.owner.sql).sql()]
    if found:
        contrasts.append(
            f"SELECT count(*) FROM {own.owner.sql} WHERE {own.key} NOT IN ({own.owners_sql()})"
        )
    if draft.chance(0.3):
        query = Query(("count(*)",), own.owner.sql, (inner,))
        question = f"How many {many} {have}?"
        return own.candidate(question, query, *found, contrasts=tuple(contrasts))
    label = label_of(draft, own.owner)
    columns = tuple(field.sql() for field in label)
    question = ask(
        draft,
        f"{names(label)} of the {many} that {have}",
        f"Which {many} {have}? Give {the(label)} of each.",
    )
    query = Query(columns, own.owner.sql, (inner,))
    weaker = [sql.replace("count(*)", ", ".join(columns), 1) for sql in contrasts]
    if draft.chance(0.4):
        minus = f"{Query(columns, own.owner.sql).sql()} EXCEPT "
        minus += Query(_columns(own, label), own.source, where).sql()
        return Candidate(question, minus, own.tables, tuple(weaker), (query.sql(),))
    return own.candidate(question, query, *found, contrasts=tuple(weaker))


@template("owners-with-some", weight=4)
def owners_with_some(draft: Draft) -> Candidate:
    """Owners of a row that fulfills a condition, or the number of them."""
    own, found, said = _condition(draft, 1.0)
    where, have, many = (found[0].sql,), _none(own, said, True), own.owner.noun.many
    if draft.chance(0.3):
        query = Query((f"count(DISTINCT {own.group})",), own.source, where)
        return own.candidate(f"How many {many} {have}?", query, *found)
    label = label_of(draft, own.owner)
    inner = (f"{own.key} IN ({own.owners_sql(*where)})",)
    within = Query(tuple(field.sql() for field in label), own.owner.sql, inner)
    query = Query(_columns(own, label), own.source, where, distinct=True)
    question = f"Which {many} {have}? List {the(label)} of each once."
    return own.candidate(question, query, *found, readings=(within.sql(),))


def _two_kinds(draft: Draft, word: str) -> tuple[Owning, tuple[str, ...], str, list[str], str]:
    own = owning(draft, lambda owner, owned: owner.label)
    draft.unless(own.across)
    label = label_of(draft, own.owner)
    pair = conditions.opposites(draft, own.owned, own.alias)
    sides = [Query(_columns(own, label), own.source, (each.sql,)) for each in pair]
    said = [f"{own.owned.noun.one}{conditions.after(draft, [each])}" for each in pair]
    if word == "INTERSECT":
        have = own.have(f"both at least one {said[0]} and at least one {said[1]}")
    else:
        have = own.have(f"at least one {said[0]} but no {said[1]}")
    alone = tuple(side.sql().replace("SELECT", "SELECT DISTINCT") for side in sides)
    sql = f" {word} ".join(side.sql() for side in sides)
    many = own.owner.noun.many
    question = ask(draft, f"{names(label)} of the {many} that {have}")
    return own, alone, sql, said, question


@template("owners-with-both", weight=1.5)
def owners_with_both(draft: Draft) -> Candidate:
    """Owners of rows of two kinds."""
    own, alone, sql, _, question = _two_kinds(draft, "INTERSECT")
    return Candidate(question, sql, own.tables, alone)


@template("owners-with-one-kind", weight=1)
def owners_with_one_kind(draft: Draft) -> Candidate:
    """Owners of rows of one kind and of none of another."""
    own, alone, sql, _, question = _two_kinds(draft, "EXCEPT")
    return Candidate(question, sql, own.tables, alone[:1])


def _measured(draft: Draft) -> tuple[Owning, Any, str, str]:
    """A direct relation, a column of the owned rows, an aggregate, and its noun."""
    own = owning(draft, lambda owner, owned: owner.label and measures(owned), far=False)
    draft.unless(own.have("x") != "have x")
    measure = draft.pick(f for f in measures(own.owned) if f.noun.one != own.owned.noun.one)
    function = draft.pick(functions(measure))
    return own, measure, function, aggregate_noun([function], measure)


@template("aggregate-per-owner", weight=2)
def aggregate_per_owner(draft: Draft) -> Candidate:
    """Each owner with an aggregate of its rows."""
    own, measure, function, noun = _measured(draft)
    label, many = label_of(draft, own.owner), own.owned.noun.many
    draft.unless(own.owner.rows - own.link.childless > MOST_GROUPS)
    select = (*_columns(own, label), f"{function}({measure.value_sql('T2')})")
    query = Query(select, own.source, group=own.group)
    some = "" if own.is_total else f" that has at least one {own.owned.noun.one}"
    question = (
        f"For each {own.owner.noun.one}{some}, show {the(label)} of the {own.owner.noun.one} and"
        f" the {noun} of"
        f" {own.owner.its} {many}."
    )
    return own.candidate(question, query, several=True)


@template("owner-with-top-aggregate", weight=1.5)
def owner_with_top_aggregate(draft: Draft) -> Candidate:
    """The owner whose rows have the highest or lowest average or sum."""
    own, measure, function, noun = _measured(draft)
    draft.unless(function not in ("avg", "sum"))
    label, is_most = label_of(draft, own.owner), draft.chance(0.7)
    order = f"{function}({measure.value_sql('T2')}) {'DESC' if is_most else 'ASC'}"
    query = Query(_columns(own, label), own.source, group=own.group, order=order, limit=1)
    end = "highest" if is_most else "lowest"
    what = f"{the(label).removeprefix('the ')} of the {own.owner.noun.one} whose"
    question = ask(
        draft, f"{what} {own.owned.noun.many} have the {end} {noun}", many=len(label) > 1
    )
    return own.candidate(question, query, one_row=True)


@template("owners-by-average", weight=1.5)
def owners_by_average(draft: Draft) -> Candidate:
    """Owners whose rows have an average above or below a limit."""
    own, measure, function, noun = _measured(draft)
    draft.unless(function not in ("avg", "sum"))
    label, limit = label_of(draft, own.owner), spoken_values.threshold(measure, draft.rng) or 0.0
    sign, words = draft.pick(((">", "more than"), ("<", "less than")))
    limit *= 2 if function == "sum" else 1
    having = f"{function}({measure.value_sql('T2')}) {sign} {spoken_values.number_sql(limit)}"
    query = Query(_columns(own, label), own.source, group=own.group, having=having)
    amount = spoken_values.amount(measure, limit, False)
    a = "an" if noun.startswith("a") else "a"
    what = f"{names(label)} of the {own.owner.noun.many} whose {own.owned.noun.many} have"
    return own.candidate(ask(draft, f"{what} {a} {noun} of {words} {amount}"), query)


@template("owner-of-extreme", weight=3)
def owner_of_extreme(draft: Draft) -> Candidate:
    """The row to which the row with the most or the least of something refers."""
    own = owning(draft, lambda owner, owned: owner.label and measured(owned), far=False)
    field, is_most = draft.pick(measured(own.owned)), draft.chance(0.6)
    fields = listing(draft, own.owner)
    order = f"{field.value_sql('T2')} {'DESC' if is_most else 'ASC'}"
    query = Query(_columns(own, fields), own.source, order=order, limit=1)
    adjective, words, _ = extreme(own.owned, field, is_most)
    what = f"{the(fields).removeprefix('the ')} of the {role_of(own.link)} of the"
    question = ask(draft, f"{what} {adjective}{own.owned.noun.one}{words}", many=len(fields) > 1)
    return own.candidate(question, query, one_row=True)


@template("rows-of-extreme", weight=2)
def rows_of_extreme(draft: Draft) -> Candidate:
    """The rows of the owner with the most or the least of something, or their number."""
    own = owning(draft, lambda owner, owned: measured(owner), far=False)
    draft.unless(own.have("x") != "have x")
    field, is_most = draft.pick(measured(own.owner)), draft.chance(0.6)
    order = f"{field.value_sql()} {'DESC' if is_most else 'ASC'}"
    inner = Query((own.key,), own.owner.sql, order=order, limit=1)
    adjective, words, _ = extreme(own.owner, field, is_most)
    owner = f"the {adjective}{own.owner.noun.one}{words}"
    where = (f"{reference(own.link)} = ({inner.sql()})",)
    if draft.chance(0.5):
        query = Query(("count(*)",), own.owned.sql, where)
        question = f"How many {own.owned.noun.many} does {owner} have?"
    else:
        fields = listing(draft, own.owned)
        query = Query(tuple(f.sql() for f in fields), own.owned.sql, where)
        question = ask(draft, f"{names(fields)} of the {own.owned.noun.many} of {owner}")
    return own.candidate(question, query)

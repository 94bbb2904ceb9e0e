"""Two references of a table to the same other table: origin and destination, home and away.

Every question says which of the two it means, by what the referring columns call the other row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlgym.synthesis import drafting, english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, named, names, shape, the
from sqlgym.synthesis.schema import Entity, Link, Role
from sqlgym.synthesis.shapes import asking, joins
from sqlgym.synthesis.shapes.filters import asked


@dataclass(frozen=True)
class Pair:
    """Two references from one table to another, which is T2 by the first and T3 by the second."""

    first: Link
    second: Link

    @property
    def child(self) -> Entity:
        """The table that refers."""
        return self.first.child

    @property
    def parent(self) -> Entity:
        """The table referred to."""
        return self.first.parent

    @property
    def tables(self) -> tuple[str, ...]:
        """Both tables."""
        return self.child.name, self.parent.name

    @property
    def source(self) -> str:
        """All three behind FROM."""
        return (
            f"{self.child.sql} AS T1 JOIN {self.parent.sql} AS T2 ON {self.first.on('T1', 'T2')}"
            f" JOIN {self.parent.sql} AS T3 ON {self.second.on('T1', 'T3')}"
        )


def _pair(draft: Draft) -> Pair:
    """Two references to the same table, each with a name of its own."""
    links = [link for link in draft.world.links if _is_named(link)]
    return Pair(
        *draft.pick(
            (one, other)
            for one in links
            for other in links
            if (one.child.name, one.parent.name) == (other.child.name, other.parent.name)
            and one.column != other.column
            and one.role != other.role
            and one.child.name != one.parent.name
        )
    )


def _is_named(link: Link) -> bool:
    """Whether the column names the other row, and every row refers to one."""
    fields = [field for field in link.child.fields if field.name == link.column]
    is_full = bool(fields) and not fields[0].nulls and not link.orphans
    return is_full and not link.is_plain and joins.is_said(link)


def _end(draft: Draft, link: Link, alias: str) -> tuple[tuple[str, ...], str, list[Condition]]:
    """A test of a row referred to, by its name or by a condition: SQL, and behind "whose"."""
    if draft.chance(0.5):
        row = drafting.row_of(draft, link.parent)
        return row.where(alias), f"{link.role} {row.clause}", []
    test = conditions.condition(draft, link.parent, alias)
    return (test.sql,), test.of(draft, link.role), [test]


def _swapped(sql: str) -> str:
    """The same with the two references taken for each other, behind WHERE."""
    head, where, tail = sql.partition(" WHERE ")
    return head + where + tail.replace("T2.", "T#.").replace("T3.", "T2.").replace("T#.", "T3.")


@shape("both-ends", large=False)
def both_ends(draft: Draft) -> Candidate:
    """Rows by both of the rows that they refer to."""
    pair = _pair(draft)
    one, first, tests = _end(draft, pair.first, "T2")
    other, second, others = _end(draft, pair.second, "T3")
    shown = () if draft.chance(0.4) else asking.shown(draft, pair.child)
    query = Query(columns(shown, "T1") or ("count(*)",), pair.source, (*one, *other))
    after = f"whose {first} and whose {second}"
    question = asking.list_or_count(draft, pair.child, shown, after)
    candidate = asked(question, query, pair.tables, *tests, *others)
    turned = _swapped(query.sql())
    return replace(candidate, contrasts=(*candidate.contrasts, turned))


@shape("either-end", large=False)
def either_end(draft: Draft) -> Candidate:
    """Rows that refer to a named row in either way."""
    pair = _pair(draft)
    row = drafting.row_of(draft, pair.parent)
    draft.unless(len(row.fields) > 1)
    tests = [row.where(alias)[0] for alias in ("T2", "T3")]
    own, after, filters = conditions.perhaps(draft, 0.4, pair.child, "T1")
    shown = () if draft.chance(0.6) else asking.shown(draft, pair.child)
    either = f"({tests[0]} OR {tests[1]})" if own else f"{tests[0]} OR {tests[1]}"
    query = Query(columns(shown, "T1") or ("count(*)",), pair.source, (*own, either))
    link = " and" if after.startswith((" whose", " for which")) else ""
    roles = f"{pair.first.role} or {pair.second.role}"
    question = asking.list_or_count(
        draft, pair.child, shown, f"{after.strip()}{link} whose {roles} {row.clause}".strip()
    )
    alone = tuple(query.sql().replace(either, test) for test in tests)
    candidate = asked(question, query, pair.tables, *filters)
    return replace(candidate, contrasts=(*candidate.contrasts, *alone))


@shape("names-of-both-ends", large=False)
def names_of_both_ends(draft: Draft) -> Candidate:
    """The names of both rows that each of some rows refers to."""
    pair = _pair(draft)
    label, mine = named(draft, pair.parent), asking.shown(draft, pair.child)
    tests = list(conditions.two_conditions(draft, pair.child, "T1"))
    after = conditions.both(draft, *tests)[0]
    if draft.chance(0.4):
        after = tests[0].after(draft)
        del tests[1:]
    draft.unless({test.column for test in tests} & {field.name for field in mine})
    select = (*columns(mine, "T1"), *columns(label, "T2"), *columns(label, "T3"))
    query = Query(select, pair.source, tuple(test.sql for test in tests))
    child = pair.child.noun
    ends = f"{the(label)} of its {pair.first.role} and of its {pair.second.role}"
    one = f"{child.one} {english.of_one(after)}"
    question = asking.ask(
        draft,
        f"{the(mine)} of each {one}, with {ends}, in this order",
        f"For each {one}, show {the(mine)}, then {ends}.",
        f"For every {one}, give {the(mine)}, then {ends}, in this order.",
        f"List the {child.many} {after}: {the(mine)}, then {ends}.",
        is_many=None,
    )
    return asked(question, query, pair.tables, *tests)


@shape("ends-alike", large=False)
def ends_alike(draft: Draft) -> Candidate:
    """Rows whose two ends have the same value of a column, or different ones."""
    pair = _pair(draft)
    field = draft.pick(f for f in pair.parent.having(Role.CATEGORY, Role.YEAR) if f.is_full)
    is_same = draft.chance(0.6)
    test = f"{field.sql('T2')} {'=' if is_same else '<>'} {field.sql('T3')}"
    own, after, filters = conditions.perhaps(draft, 0.35, pair.child, "T1")
    shown = () if draft.chance(0.5) else asking.shown(draft, pair.child)
    query = Query(columns(shown, "T1") or ("count(*)",), pair.source, (*own, test))
    roles = f"{pair.first.role} and {pair.second.role}"
    word = "the same" if is_same else "different"
    noun = field.noun.one if is_same else field.noun.many
    link = " and" if after.startswith((" whose", " for which")) else ""
    question = asking.list_or_count(
        draft, pair.child, shown, f"{after.strip()}{link} whose {roles} have {word} {noun}".strip()
    )
    return asked(question, query, pair.tables, *filters)


@shape("one-end-only", large=False)
def one_end_only(draft: Draft) -> Candidate:
    """Rows that are the one end of something and never the other, or are both."""
    pair = _pair(draft)
    label = named(draft, pair.parent)
    word = draft.pick(("EXCEPT", "INTERSECT"))
    own, after, _ = conditions.perhaps(draft, 0.5, pair.child, "T2")
    sides = [
        Query(
            columns(label, "T1"),
            f"{pair.parent.sql} AS T1 JOIN {pair.child.sql} AS T2 ON {link.on('T2', 'T1')}",
            own,
        )
        for link in (pair.first, pair.second)
    ]
    sql = f" {word} ".join(side.sql() for side in sides)
    child, parents = pair.child.noun, pair.parent.noun.many
    one = f"{child.one} {english.of_one(after.strip())}".strip()
    first, second = pair.first.role, pair.second.role
    if word == "EXCEPT":
        rest = f"are the {first} of at least one {one} but the {second} of none of these"
        rest = rest if own else f"are the {first} of at least one {one} but the {second} of none"
    else:
        rest = f"are the {first} of at least one {one} and the {second} of at least one"
        rest = f"{rest} such {child.one}" if own else f"{rest} {child.one}"
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that {rest}",
        f"Which {parents} {rest}? Give {the(label)} of each.",
        f"Which {parents} {rest}? List the {names(label)}.",
    )
    alone = [replace(side, distinct=True).sql() for side in sides]
    contrasts = alone[:1] if word == "EXCEPT" else alone
    if own:
        contrasts.append(f" {word} ".join(replace(side, where=()).sql() for side in sides))
    return Candidate(question, sql, (pair.parent.name, pair.child.name), tuple(contrasts))

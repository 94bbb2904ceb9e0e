"""Questions that ask for columns of rows: lists, facts about one row, sorted rows and pairs."""

from __future__ import annotations

from functools import partial

from sqlgym.synthesis import conditions, english
from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.schema import Field
from sqlgym.synthesis.templates.phrases import ask, ends, extreme, measured, names, the
from sqlgym.synthesis.templates.rows import (
    Rows,
    chain_of,
    entity_of,
    is_said,
    joined,
    label_of,
    listing,
    members,
    named_row,
    outputs,
    proven,
    role_of,
    rows_of,
)


def _list(draft: Draft, rows: Rows) -> Candidate:
    fields = listing(draft, rows.entity, rows.where)
    question = ask(draft, f"{names(fields)} of {rows.all}")
    return rows.candidate(question, rows.query(*rows.columns(fields)))


@template("list", weight=2)
def list_rows(draft: Draft, own: tuple[int, ...] = (0, 1, 1, 1, 2), parents: int = 0) -> Candidate:
    """Ask for columns of the rows that satisfy conditions."""
    return _list(draft, rows_of(draft, lambda e: e.label, own, parents))


template("list-of-parent", weight=6)(partial(list_rows, own=(0, 0, 1), parents=1))
template("list-of-two-parents", weight=4)(partial(list_rows, own=(0,), parents=2))


@template("list-of-members", weight=3)
def list_members(draft: Draft) -> Candidate:
    """Ask for columns of the rows that a junction table links to a row."""
    return _list(draft, members(draft))


@template("fact", weight=1)
def fact(draft: Draft, is_far: bool = False) -> Candidate:
    """Ask for columns of a named row or, if `is_far`, of a row that the named row refers to."""
    links = [k for k in draft.world.links if is_said(k)]
    start = entity_of(draft, lambda e: e.label and (not is_far or any(k.child is e for k in links)))
    chain = chain_of(draft, [k for k in links if k.child is start], 0.4) if is_far else []
    end, tables = chain[-1].parent if chain else start, [start.name]
    row, owner = named_row(draft, start), ""
    source = start.sql + (" AS T1" + joined(chain, tables)) * is_far
    for link in chain:
        owner = f"the {role_of(link)} of " + owner
    ways: list[tuple[Field, ...]] = [(field,) for field in outputs(end)]
    ways += [end.label.fields] if end.label and chain else []
    fields, alias = draft.pick(ways), f"T{len(tables)}" * is_far
    if len(fields) == 1 and draft.chance(0.3):
        fields = (*fields, *(f for f in draft.pick(ways) if f not in fields))
    query = Query(tuple(field.sql(alias) for field in fields), source, (row.sql("T1" * is_far),))
    what = f"{the(fields).removeprefix('the ')} of {owner}{row.said}"
    question = ask(draft, what, many=len(fields) > 1 or fields[0].noun.is_plural)
    kind, _, event = fields[0].shown.one.rpartition(" ")
    is_done = english.is_participle(event) and event not in _INTRANSITIVE
    if len(fields) == 1 and kind in _WHEN and is_done:
        question = f"{_WHEN[kind]} was {owner}{row.said} {event}?"
    return proven(question, query, tables, one_row=True)


_WHEN = {
    "year": "In which year",
    "date": "On which date",
    "date and time": "On which date and at what time",
}
_INTRANSITIVE = word_set("""
    joined departed arrived died retired started ended expired happened occurred resigned due
""")


template("fact-of-parent", weight=4)(partial(fact, is_far=True))


@template("superlative", weight=1.2)
def superlative(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """Ask for the row with the highest or lowest value, among all or some rows."""
    rows = rows_of(draft, lambda e: e.label and measured(e), own, parents)
    field = draft.pick(rows.free(measured(rows.entity)))
    fields, one = listing(draft, rows.entity, rows.where), rows.entity.noun.one
    order, row, verb = extreme(draft, rows.entity, field, rows.alias)
    query = rows.query(*rows.columns(fields), order=order, limit=1)
    if rows.after:
        question = f"Among the {rows.many}, which {one} {verb}? Give {the(fields)}."
    else:
        what = f"{the(fields).removeprefix('the ')} of the {row}"
        question = ask(
            draft, what, f"Which {one} {verb}? Give {the(fields)}.", many=len(fields) > 1
        )
    return rows.candidate(question, query, one_row=True)


template("superlative-of-parent", weight=2)(partial(superlative, own=(0,), parents=1))


@template("sorted", weight=1.2)
def in_order(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """Ask for columns of rows, sorted by a column."""
    rows = rows_of(draft, lambda e: e.label and measured(e), own, parents)
    field = draft.pick(rows.free(measured(rows.entity)))
    fields, down = listing(draft, rows.entity, rows.where), draft.chance(0.5)
    order = f"{field.value_sql(rows.alias)} {'DESC' if down else 'ASC'}"
    query = rows.query(*rows.columns(fields), order=order)
    start, end = ends(field) if down else ends(field)[::-1]
    how = draft.pick(
        (
            f"in {'descending' if down else 'ascending'} order of {field.shown.one}",
            f"from the {start} to the {end} {field.shown.one}",
        )
    )
    question = f"List the {names(fields)} of {rows.all}, {how}."
    return rows.candidate(question, query, several=True)


template("sorted-of-parent", weight=1)(partial(in_order, own=(0,), parents=1))


@template("pairs", weight=4)
def pairs(draft: Draft) -> Candidate:
    """Ask for rows, each with a column of the row that it refers to."""
    link = draft.pick(k for k in draft.world.links if is_said(k))
    child, parent = link.child, link.parent
    mine = label_of(draft, child)
    draft.unless(mine[0].name == link.column or child.is_link)
    ways: list[tuple[Field, ...]] = [(field,) for field in outputs(parent)]
    theirs = draft.pick([*ways, parent.label.fields] if parent.label else ways)
    tables = [child.name]
    source = f"{child.sql} AS T1{joined([link], tables)}"
    found = [conditions.condition(draft, child, "T1")] * draft.pick((0, 1))
    said = conditions.after(draft, found)
    rows = Rows(child, source, "T1", tuple(tables), tuple(found), said)
    query = rows.query(*rows.columns(mine), *(field.sql("T2") for field in theirs))
    its = the(mine).replace("the ", f"{child.its} ")
    question = (
        f"For each {child.noun.one}{said}, show {its} and {the(theirs)} of {child.its}"
        f" {role_of(link)}."
    )
    # An inner join would omit rows that refer to no row.
    outer = query.sql().replace(" JOIN ", " LEFT JOIN ")
    return rows.candidate(question, query, readings=(outer,), several=True)

"""Parents and their children: how many, which parents have some, which has the most.

An inner join leaves out parents without children, and where there are any the question says so.
"""

from __future__ import annotations

from sqlgym.synthesis import english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.drafting import (
    Candidate,
    Draft,
    Query,
    bare,
    columns,
    named,
    names,
    shape,
    the,
)
from sqlgym.synthesis.schema import Field, Link, Role, identifier
from sqlgym.synthesis.shapes import aggregates, asking, groups, joins
from sqlgym.synthesis.shapes.filters import asked


def source(link: Link) -> str:
    """Parent T1 with its children T2."""
    return f"{link.parent.sql} AS T1 JOIN {link.child.sql} AS T2 ON {link.on('T2', 'T1')}"


def group(link: Link) -> str:
    """One group for each parent."""
    return f"T1.{identifier(link.target)}"


def _too_many(link: Link) -> bool:
    """Whether a row for each parent with children makes no answer."""
    return link.parent.rows - link.childless > groups.MOST_GROUPS


def _one(link: Link, after: str) -> str:
    """One child that fulfils something."""
    return f"{link.child.noun.one} {english.of_one(after.strip())}".strip()


def _tables(link: Link) -> tuple[str, ...]:
    return link.parent.name, link.child.name


@shape("count-per-parent")
def count_per_parent(draft: Draft) -> Candidate:
    """How many children each parent has."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    where, after, filters = conditions.perhaps(draft, 0.4, link.child, "T2")
    draft.unless(not where and _too_many(link))
    query = Query((*columns(label, "T1"), "count(*)"), source(link), where, group(link))
    parent, many = link.parent.noun, f"{link.child.noun.many}{after}"
    at_least_one = f"at least one {_one(link, after)}"
    some = link.childless or where
    without = f" Leave out {parent.many} without any." if some else ""
    question = asking.ask(
        draft,
        f"{the(label)} of each {parent.one} that {joins.has(link, at_least_one)}, and the number"
        f" of these {link.child.noun.many}",
        f"How many {many} does each {parent.one} have? Give {the(label)} and the number.{without}"
        if link.is_plain
        else None,
        f"For each {parent.one}, count {link.parent.its} {many}. Show {the(label)} and the"
        f" count.{without}"
        if link.is_plain
        else None,
        f"For each {parent.one}, how many {many} have {'them' if link.parent.is_person else 'it'}"
        f" as their {link.role}? Give {the(label)} and the number.{without}"
        if not link.is_plain and not after
        else None,
        is_many=None,
    )
    return asked(question, query, _tables(link), *filters, several=True)


@shape("parents-with-many")
def parents_with_many(draft: Draft) -> Candidate:
    """Parents with enough children."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    sign, least = draft.pick(((">", 1), (">=", 2), (">=", 3), (">", 2), (">=", 5), (">", 10)))
    words = f"{'more than' if sign == '>' else 'at least'} {english.number_word(least)}"
    where, after, filters = conditions.perhaps(draft, 0.3, link.child, "T2")
    with_count = draft.chance(0.4)
    select = (*columns(label, "T1"), "count(*)") if with_count else columns(label, "T1")
    query = Query(select, source(link), where, group(link), f"count(*) {sign} {least}")
    child = link.child.noun
    things = f"{words} {_one(link, after) if least == 1 else child.many + after}"
    parents, extra = link.parent.noun.many, ""
    if with_count:
        extra = f" and the number of {'these ' * bool(after)}{child.many}"
    question = asking.ask(
        draft,
        (
            f"the {names(label)} of the {parents} {joins.having(link, things)}"
            f"{f', each with the number of these {child.many}' if with_count else ''}"
        ),
        f"Which {parents} {joins.haves(link, things)}? Give {the(label)}{extra}.",
        f"Give {the(label)} of each {link.parent.noun.one} that {joins.has(link, things)}"
        f"{f', and the number of these {child.many}' if with_count else ''}.",
        f"List the {names(label)} of the {parents} {joins.having(link, things)}"
        f"{f', each with the number of these {child.many}' if with_count else ''}.",
    )
    return asked(question, query, _tables(link), *filters)


@shape("parent-with-most")
def parent_with_most(draft: Draft) -> Candidate:
    """The parent with the most children."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    where, after, filters = conditions.perhaps(draft, 0.4, link.child, "T2")
    with_count = draft.chance(0.4)
    select = (*columns(label, "T1"), "count(*)") if with_count else columns(label, "T1")
    query = Query(select, source(link), where, group(link), "", "count(*) DESC", 1)
    child, parent = link.child.noun, link.parent.noun.one
    things = f"the most {child.many}{after}"
    extra = f" and the number of {'these ' * bool(after)}{child.many}" if with_count else ""
    question = asking.ask(
        draft,
        (
            f"{the(label)} of the {parent} that {joins.has(link, things)}"
            f"{f', and the number of these {child.many}' if with_count else ''}"
        ),
        f"Which {parent} {joins.has(link, things)}? Give {the(label)}{extra}.",
        f"Give {the(label)} of the {parent} that {joins.has(link, things)}"
        f"{', and how many these are' if with_count else ''}.",
        f"Find the {parent} that {joins.has(link, things)}. Show {the(label)}{extra}.",
        is_many=None if with_count else len(label) > 1,
    )
    return asked(question, query, _tables(link), *filters, one_row=True)


@shape("parents-with-child")
def parents_with_child(draft: Draft) -> Candidate:
    """Parents that have a child that fulfils a condition."""
    link = joins.draw_child_link(draft, lambda link: link.parent.label)
    label = named(draft, link.parent)
    condition = conditions.condition(draft, link.child, "T2")
    query = Query(columns(label, "T1"), source(link), (condition.sql,), distinct=True)
    things = f"at least one {link.child.noun.one} {condition.after_one(draft)}"
    parents = link.parent.noun.many
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} {joins.having(link, things)}, each only once",
        f"Which {parents} {joins.haves(link, things)}? Give {the(label)} of each once.",
        f"List the {names(label)} of the {parents} {joins.having(link, things)}, each only once.",
        f"Find every {link.parent.noun.one} that {joins.has(link, things)}, and list each"
        f" {bare(label)} once.",
    )
    return asked(question, query, _tables(link), condition)


@shape("aggregate-per-parent")
def aggregate_per_parent(draft: Draft) -> Candidate:
    """An aggregate over the children of each parent."""
    link, field = _measured(draft)
    draft.unless(_too_many(link))
    label = named(draft, link.parent)
    function = draft.pick(aggregates.functions(field))
    select = (*columns(label, "T1"), aggregates.aggregate_sql(function, field, "T2"))
    query = Query(select, source(link), (), group(link))
    noun = aggregates.aggregate_noun(draft, function, field)
    child, parent = link.child.noun.many, link.parent.noun.one
    without = f" Leave out {link.parent.noun.many} without {child}." if link.childless else ""
    question = asking.ask(
        draft,
        f"{the(label)} of each {parent}, and the {noun} of {link.parent.its} {child}",
        f"What is the {noun} of the {child} of each {parent}? Give {the(label)} and the"
        f" {noun}.{without}",
        f"For each {parent}, show {the(label)} and the {noun} of {link.parent.its}"
        f" {child}.{without}",
        is_many=None,
        then=without,
    )
    return Candidate(question, query.sql(), _tables(link), several=True)


@shape("parent-with-top-aggregate")
def parent_with_top_aggregate(draft: Draft) -> Candidate:
    """The parent whose children have the highest or lowest average or sum."""
    link, field = _measured(draft)
    label = named(draft, link.parent)
    function = draft.pick(f for f in aggregates.functions(field) if f in ("avg", "sum"))
    is_most = draft.chance(0.6)
    order = f"{aggregates.aggregate_sql(function, field, 'T2')} {'DESC' if is_most else 'ASC'}"
    query = Query(columns(label, "T1"), source(link), (), group(link), "", order, 1)
    noun = aggregates.aggregate_noun(draft, function, field)
    end = "highest" if is_most else "lowest"
    child, parent = link.child.noun.many, link.parent.noun.one
    question = asking.ask(
        draft,
        f"{the(label)} of the {parent} whose {child} have the {end} {noun}",
        f"For which {parent} is the {noun} of {link.parent.its} {child} the {end}? Give"
        f" {the(label)}.",
        f"Give {the(label)} of the {parent} whose {child} have the {end} {noun}.",
        is_many=len(label) > 1,
    )
    return Candidate(question, query.sql(), _tables(link), query.weaker(), one_row=True)


def _measured(draft: Draft) -> tuple[Link, Field]:
    """Children of which something known of all can be added up, and that."""
    link = joins.draw_child_link(
        draft, lambda link: link.is_plain and link.parent.label and link.child.having(Role.QUANTITY)
    )
    # "The average mark of their marks" is none.
    own = link.child.noun.one
    fields = [f for f in link.child.having(Role.QUANTITY) if f.is_full and f.noun.one != own]
    return link, draft.pick(fields)


@shape("count-per-parent-category")
def count_per_parent_category(draft: Draft) -> Candidate:
    """How many children there are for each value of a column of their parents."""
    link = joins.draw_child_link(draft, lambda link: link.parent.having(Role.CATEGORY, Role.YEAR))
    draft.unless(not link.is_plain)
    field = groups.grouping(draft, link.parent)
    is_top = draft.chance(0.4)
    order = "count(*) DESC" if is_top else ""
    select = (field.sql("T1"),) if is_top else (field.sql("T1"), "count(*)")
    query = Query(select, source(link), (), field.sql("T1"), "", order, int(is_top))
    many, one, parents = link.child.noun.many, field.noun.one, link.parent.noun.many
    parent = link.parent.noun.one
    parent_one = f"{one} of the {parents}" if " " in parent else f"{parent} {one}"
    if is_top:
        question = asking.ask(
            draft,
            None,
            f"Find the {parent_one} with the most {many}.",
            f"When the {many} are counted by the {one} of their {parent}, which {one} has the"
            " most?",
            f"Which {parent_one} has the most {many}?",
            f"Which {one} has the most {many} across all its {parents}?",
            is_many=False,
        )
        return Candidate(question, query.sql(), _tables(link), query.weaker(), one_row=True)
    without = f" Leave out {field.noun.many} without any." if link.childless else ""
    question = asking.ask(
        draft,
        f"the number of {many} for each {parent_one}, with the {one} first",
        f"How many {many} are there for each {parent_one}? Give the {one} and the number.{without}",
        f"Count the {many} by the {one} of their {link.parent.noun.one}. Show the {one} and the"
        f" number.{without}",
        is_many=None,
        then=without,
    )
    return Candidate(question, query.sql(), _tables(link), several=True)

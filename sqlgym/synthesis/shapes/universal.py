"""All, none and every: parents of whose children all fulfil something, or that have every kind.

Of parents without children one could say that all of them do. The questions do not leave that
open: they speak of parents that have some. A condition on a column with gaps is not used, since
a child without a value would neither fulfil it nor fail it.
"""

from __future__ import annotations

from sqlgym.synthesis import english
from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.conditions.conditions import Condition
from sqlgym.synthesis.drafting import Candidate, Draft, Query, columns, named, names, shape, the
from sqlgym.synthesis.schema import Link, Role
from sqlgym.synthesis.shapes import asking, comparing, groups, joins, per_parent
from sqlgym.synthesis.shapes.filters import readings


def _of_children(draft: Draft) -> tuple[Link, Condition]:
    """Children that a plain link gives to parents with names, and a condition on them."""
    link = joins.draw_child_link(draft, lambda link: link.is_plain and link.parent.label)
    test = conditions.condition(draft, link.child, "T2")
    field = next(f for f in link.child.fields if f.name == test.column)
    draft.unless(not field.is_full or test.is_negative)
    return link, test


@shape("parents-all-children", large=False)
def parents_all_children(draft: Draft) -> Candidate:
    """Parents all of whose children fulfil a condition."""
    link, test = _of_children(draft)
    label, source, group = (
        named(draft, link.parent),
        per_parent.source(link),
        per_parent.group(link),
    )
    having = f"count(*) = {comparing.counted(test.sql)}"
    query = Query(columns(label, "T1"), source, (), group, having)
    child, parents = link.child.noun, link.parent.noun.many
    after = test.after(draft)
    only = f"have {child.many}, but only ones {after}"
    verb = test.verb(draft)
    all_ = f"that have {child.many}, all of which {verb}" if verb else f"that {only}"
    some = f" Leave out {parents} without {child.many}." if link.childless else ""
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} {all_}",
        f"Which {parents} {only}? Give {the(label)} of each.",
        f"Which {parents} have only {child.many} {after}? Give {the(label)} of each.{some}",
        f"For which {parents} do all {child.many} {_base(verb)}? Give {the(label)} of each.{some}"
        if verb and _base(verb)
        else None,
        f"List the {names(label)} of the {parents} that {only}.",
    )
    any_ = Query(query.select, source, (test.sql,), group).sql()
    return Candidate(
        question,
        query.sql(),
        (link.parent.name, link.child.name),
        (*query.weaker(), any_),
        readings(query, test),
    )


def _base(verb: str) -> str:
    """A verb behind "do": only "have" is the same there, "are" would have to move."""
    return verb if verb.startswith("have ") else ""


@shape("parents-with-none", large=False)
def parents_with_none(draft: Draft) -> Candidate:
    """Parents that have children, but none that fulfils a condition."""
    link, test = _of_children(draft)
    label, source, group = (
        named(draft, link.parent),
        per_parent.source(link),
        per_parent.group(link),
    )
    query = Query(columns(label, "T1"), source, (), group, f"{comparing.counted(test.sql)} = 0")
    child, parents, one = link.child.noun, link.parent.noun.many, link.parent.noun.one
    after = test.after(draft)
    none = f"have {child.many} but none {after}"
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that {none}",
        f"Which {parents} {none}? Give {the(label)} of each.",
        f"Which {parents} {none}? List the {names(label)}.",
        f"Give {the(label)} of every {one} that has {child.many} but no {child.one}"
        f" {english.of_one(after)}.",
        f"Of the {parents} that have {child.many}, which have none {after}? Give {the(label)} of"
        " each.",
    )
    return Candidate(
        question,
        query.sql(),
        (link.parent.name, link.child.name),
        query.weaker(),
        readings(query, test),
    )


@shape("parents-with-every-value", large=False)
def parents_with_every_value(draft: Draft) -> Candidate:
    """Parents whose children have every value of a column that there is, or several of them."""
    link = joins.draw_child_link(
        draft, lambda link: link.is_plain and link.parent.label and link.child.having(Role.CATEGORY)
    )
    field = groups.grouping(draft, link.child)
    draft.unless(field.noun.is_plural)
    label, source, group = (
        named(draft, link.parent),
        per_parent.source(link),
        per_parent.group(link),
    )
    distinct, child = f"count(DISTINCT {field.sql('T2')})", link.child
    is_every = field.distinct < 8 and draft.chance(0.6)
    least = draft.pick((2, 2, 3, 4))
    draft.unless(not is_every and least >= field.distinct)
    having = f"{distinct} >= {least}"
    if is_every:
        having = f"{distinct} = (SELECT count(DISTINCT {field.sql()}) FROM {child.sql})"
    query = Query(columns(label, "T1"), source, (), group, having)
    many, parents, one = child.noun.many, link.parent.noun.many, link.parent.noun.one
    number = english.number_word(least)
    nouns = field.noun.many
    what = (
        f"of every {field.noun.one} that occurs among the {many}"
        if is_every
        else f"with at least {number} different {nouns} among them"
    )
    question = asking.ask(
        draft,
        f"the {names(label)} of the {parents} that have {many} {what}",
        f"Which {parents} have {many} {what}? Give {the(label)} of each.",
        f"Give {the(label)} of every {one} that has {many} {what}.",
        f"Find all {parents} that have {many} {what}, and list their {names(label)}.",
    )
    contrasts = list(query.weaker())
    if not is_every:  # so many children are not so many kinds
        contrasts.append(query.sql().replace(distinct, "count(*)"))
    return Candidate(question, query.sql(), (link.parent.name, child.name), tuple(contrasts))

"""Questions about groups of rows that share a value of a column or an owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlgym.synthesis.drafting import Candidate, Draft, Query, template
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.templates.owners import Owning, owning
from sqlgym.synthesis.templates.phrases import (
    aggregate_noun,
    ask,
    draw_functions,
    functions,
    grouping,
    measures,
    the,
)
from sqlgym.synthesis.templates.rows import Rows, label_of, rows_of


@dataclass(frozen=True)
class Groups:
    """Groups of rows.

    Attributes:
        query: Query that selects the column or the label of each group.
        entity: The table whose rows are grouped; its alias is `alias`.
        one: Noun phrase for a group: "country", "stadium that has at least one concert".
        shown: The values that identify a group: "the country", "the name of the stadium".
        things: The rows of one group: "the singers", "its concerts".
        give: Text to append after "for which": "" or " Give the name."
    """

    source: Rows | Owning
    query: Query
    entity: Entity
    alias: str
    one: str
    shown: str
    things: str
    give: str = ""


def by_column(draft: Draft, fits: Callable[[Entity], Any], far: bool) -> Groups:
    """Group the rows of a table by one of its columns."""
    rows = rows_of(draft, lambda e: e.having(Role.CATEGORY, Role.YEAR) and fits(e), (0, 0, 1))
    field = grouping(draft, rows.free(rows.entity.fields), rows.entity)
    query, one = rows.query(field.sql(), group=field.sql()), field.noun.one
    return Groups(rows, query, rows.entity, "", one, f"the {one}", f"the {rows.many}")


def by_owner(draft: Draft, fits: Callable[[Entity], Any], far: bool) -> Groups:
    """Group rows by the row that they refer to.

    With `far`, the reference may lead through other tables, and the rows may have a condition.
    """
    own = owning(draft, 0.35 * far, lambda owner, owned: owner.label and fits(owned), far)
    draft.unless(own.is_role and not far)
    label, one = label_of(draft, own.owner), own.owner.noun.one
    query = own.query(*own.columns(label), group=f"T1.{own.key}")
    shown, things = f"{the(label)} of the {one}", f"{own.owner.its} {own.owned.noun.many}"
    is_some = own.after or own.is_role or own.across
    if is_some or own.link.childless:
        one += f" that {own.have(f'at least one {own.thing}', has=True)}"
    if is_some:
        things = f"these {own.owned.noun.many}"
    return Groups(own, query, own.owned, own.alias, one, shown, things, f" Give {the(label)}.")


Maker = Callable[[Draft, Callable[[Entity], Any], bool], Groups]


def _measure(draft: Draft, groups: Groups) -> Field:
    used = [name for each in groups.source.conditions for name in each.columns]
    return draft.pick(f for f in measures(groups.entity) if f.name not in used)


@template("count-per-column", weight=2)
def per_group(draft: Draft, make: Maker = by_column, is_count: bool = True) -> Candidate:
    """Ask for the number of rows of each group, or for aggregates of a column."""
    groups = make(draft, bool if is_count else measures, is_count)
    chosen, column, noun = ["count"], "*", "number"
    things = groups.things.removeprefix("the ")
    if not is_count:
        measure = _measure(draft, groups)
        chosen = draw_functions(draft, measure)
        column, noun = measure.value_sql(groups.alias), aggregate_noun(chosen, measure)
        things = groups.things
    query, where = groups.query, " AND ".join(groups.query.where)
    select = [f"{each}({column})" for each in chosen]
    question = f"For each {groups.one}, show {groups.shown} and the {noun} of {things}."
    readings: tuple[str, ...] = ()
    if where and not groups.alias:  # "each" could include groups without rows
        value = "1" if is_count else column
        every = [f"{each}(CASE WHEN {where} THEN {value} END)" for each in chosen]
        readings = (replace(query, select=(*query.select, *every), where=()).sql(),)
    query = replace(query, select=(*query.select, *select))
    return groups.source.candidate(question, query, several=True, readings=readings)


template("aggregate-per-column", weight=2)(partial(per_group, is_count=False))
template("count-per-owner", weight=5)(partial(per_group, make=by_owner))
template("aggregate-per-owner", weight=2)(partial(per_group, make=by_owner, is_count=False))


@template("column-with-top-aggregate", weight=0.6)
def group_with_top_aggregate(draft: Draft, make: Maker = by_column) -> Candidate:
    """Ask for the group with the highest or lowest average or sum."""
    groups = make(draft, measures, False)
    measure = _measure(draft, groups)
    function = draft.pick(f for f in functions(measure) if f in ("avg", "sum"))
    # An owner without rows has no average, but its sum could count as the lowest.
    is_most, column = draft.chance(0.7) or function == "sum", measure.value_sql(groups.alias)
    order = f"{function}({column}) {'DESC' if is_most else 'ASC'}"
    question = (
        f"For which {groups.one.partition(' that ')[0]} is the"
        f" {aggregate_noun([function], measure)} of {groups.things} the"
        f" {'highest' if is_most else 'lowest'}?{groups.give}"
    )
    query = replace(groups.query, order=order, limit=1)
    return groups.source.candidate(question, query, one_row=True)


template("owner-with-top-aggregate", weight=1.5)(partial(group_with_top_aggregate, make=by_owner))


@template("columns-with-many", weight=1.5)
def values_with_many(draft: Draft) -> Candidate:
    """Ask for values that are shared by more than a given number of rows, or by at least that
    many.
    """
    rows = rows_of(draft, lambda e: e.having(Role.CATEGORY, Role.YEAR), (0, 0, 1))
    field = grouping(draft, rows.free(rows.entity.fields), rows.entity)
    sign, least = draft.pick(((">", 1), (">=", 2), (">", 2), (">=", 3), (">=", 5), (">", 10)))
    query = rows.query(field.sql(), group=field.sql(), having=f"count(*) {sign} {least}")
    things = rows.entity.noun.one + rows.after if least == 1 else rows.many
    words = f"{'more than' if sign == '>' else 'at least'} {least}"
    return rows.candidate(f"Which {field.noun.many} have {words} {things}?", query)


@template("most-common", weight=2)
def most_common(draft: Draft, own: tuple[int, ...] = (0, 0, 1), parents: int = 0) -> Candidate:
    """Ask for the value that the largest number of rows share."""
    rows = rows_of(draft, lambda e: e.having(Role.CATEGORY, Role.YEAR), own, parents)
    field = grouping(draft, rows.free(rows.entity.fields), rows.entity)
    column = field.sql(rows.alias)
    query = rows.query(column, group=column, order="count(*) DESC", limit=1)
    what = f"most common {field.noun.one} of the {rows.many}"
    return rows.candidate(ask(draft, what, many=False), query, one_row=True)


template("most-common-of-parent", weight=2)(partial(most_common, own=(0,), parents=1))

"""Questions that ask for one number, or for the distinct values of a column."""

from __future__ import annotations

from functools import partial

from sqlgym.synthesis.drafting import Candidate, Draft, template
from sqlgym.synthesis.schema import Role
from sqlgym.synthesis.templates.phrases import (
    aggregate_noun,
    ask,
    draw_functions,
    grouping,
    measures,
)
from sqlgym.synthesis.templates.rows import Rows, members, rows_of


def count(draft: Draft, rows: Rows) -> Candidate:
    """Ask for the number of rows."""
    many, only = rows.entity.noun.many, rows.conditions[0] if len(rows.conditions) == 1 else None
    if only and only.short.startswith("of "):
        question = f"How many {many} does {only.short.removeprefix('of ')} have?"
    elif only and only.has:
        question = f"How many {many} have {only.has}?"
    else:
        question = draft.pick(
            (f"How many {many} are there{rows.after}?", f"What is the number of {rows.many}?")
        )
    return rows.candidate(question, rows.query("count(*)"))


@template("count", weight=1.2)
def count_rows(draft: Draft, own: tuple[int, ...] = (0, 1, 1, 1, 2), parents: int = 0) -> Candidate:
    """Ask for the number of rows that satisfy conditions."""
    return count(draft, rows_of(draft, own=own, parents=parents))


template("count-of-parent", weight=5)(partial(count_rows, own=(0, 0, 1), parents=1))
template("count-of-two-parents", weight=3)(partial(count_rows, own=(0,), parents=2))


@template("count-members", weight=2)
def count_members(draft: Draft) -> Candidate:
    """Ask for the number of rows that a junction table links to a row."""
    return count(draft, members(draft))


@template("aggregate", weight=1.2)
def aggregate(draft: Draft, own: tuple[int, ...] = (0, 1, 1), parents: int = 0) -> Candidate:
    """Ask for one or two aggregates of a column over rows."""
    rows = rows_of(draft, measures, own, parents)
    field = draft.pick(rows.free(measures(rows.entity)))
    chosen = draw_functions(draft, field)
    column = field.value_sql(rows.alias)
    query = rows.query(*(f"{function}({column})" for function in chosen))
    what = aggregate_noun(chosen, field)
    question = ask(draft, f"{what} of {rows.all}", many=len(chosen) > 1)
    supports = (rows.query(f"count(DISTINCT {column})").sql(),)
    return rows.candidate(question, query, supports=supports)


template("aggregate-of-parent", weight=3)(partial(aggregate, own=(0, 0, 1), parents=1))


@template("different", weight=0.7)
def different(draft: Draft, own: tuple[int, ...] = (0, 1), parents: int = 0) -> Candidate:
    """Ask for the distinct values of a column, or their number."""
    rows = rows_of(draft, lambda e: e.having(Role.CATEGORY, Role.YEAR), own, parents)
    field = grouping(draft, rows.free(rows.entity.fields), rows.entity)
    column, many = field.sql(rows.alias), field.noun.many
    if draft.chance(0.5):
        query = rows.query(f"count(DISTINCT {column})")
        question = f"How many different {many} do the {rows.many} have?"
        return rows.candidate(question, query, contrasts=(rows.query("count(*)").sql(),))
    query = rows.query(column, distinct=True)
    question = ask(draft, f"different {many} of the {rows.many}")
    return rows.candidate(question, query, contrasts=(rows.query(column).sql(),))


template("different-of-parent", weight=1)(partial(different, own=(0,), parents=1))

"""One table: sums, averages and extremes of a column, over all rows or some.

Only what means something is asked for: years have no average, ages no sum.
"""

from __future__ import annotations

from sqlgym.synthesis.conditions import conditions
from sqlgym.synthesis.drafting import Candidate, Draft, Query, shape
from sqlgym.synthesis.schema import Entity, Field, Role
from sqlgym.synthesis.shapes import asking
from sqlgym.synthesis.shapes.filters import asked


def functions(field: Field) -> tuple[str, ...]:
    """Aggregates that mean something for a column."""
    if field.role in (Role.DATE, Role.YEAR):
        return ("min", "max")
    if field.noun.one.startswith(("average ", "mean ")):
        return ("min", "max")  # nobody asks for an average of averages
    return ("avg", "min", "max", "sum") if field.is_added else ("avg", "min", "max")


def aggregate_sql(function: str, field: Field, alias: str = "") -> str:
    """The aggregate in SQL."""
    return f"{function}({field.value_sql(alias)})"


def aggregate_noun(draft: Draft, function: str, field: Field) -> str:
    """The aggregate as a noun without an article: "average age"."""
    noun = field.noun
    if function == "avg":
        return f"{draft.say('average', 'average', 'mean')} {noun.one}"
    if function == "sum":
        return (
            f"sum of the {noun.many}" if noun.one.split(" ")[0] == "total" else f"total {noun.one}"
        )
    return f"{asking.most(field, function == 'max', draft)} {field.shown.one}"


def _measured(draft: Draft) -> tuple[Entity, Field]:
    """A table, and a column of it that can be aggregated."""
    entity = draft.entity(lambda e: e.having(Role.QUANTITY, Role.YEAR, Role.DATE))
    return entity, measure(draft, entity)


def measure(draft: Draft, entity: Entity) -> Field:
    """A column that can be aggregated."""
    return draft.pick(
        f for f in entity.having(Role.QUANTITY, Role.YEAR, Role.DATE) if not f.has_blanks
    )


@shape("aggregate")
def aggregate(draft: Draft) -> Candidate:
    """An aggregate over all rows."""
    entity, field = _measured(draft)
    function = draft.pick(functions(field))
    query = Query((aggregate_sql(function, field),), entity.sql)
    noun = aggregate_noun(draft, function, field)
    many, unit = entity.noun.many, asking.unit_text(field)
    question = asking.ask(
        draft,
        f"the {noun} of all {many}",
        f"What is the {noun} of all {many}{unit}?",
        f"Find the {noun} of all {many}.",
        f"What is the {noun} over all {many}{unit}?" if function in ("avg", "sum") else None,
        is_many=False,
    )
    question += known_only(function, field, entity)
    return Candidate(question, query.sql(), (entity.name,), supports=(_valued(query, field),))


@shape("aggregate-filtered")
def aggregate_filtered(draft: Draft) -> Candidate:
    """An aggregate over rows that fulfil one or two conditions."""
    entity, field = _measured(draft)
    function = draft.pick(functions(field))
    first = conditions.condition(draft, entity, besides=(field.name,))
    filters, after = [first], first.after(draft)
    if draft.chance(0.3):
        second = conditions.condition(draft, entity, "", (field.name, first.column))
        filters, after = [first, second], conditions.both(draft, first, second)[0]
    query = Query((aggregate_sql(function, field),), entity.sql, tuple(c.sql for c in filters))
    noun = aggregate_noun(draft, function, field)
    many, unit = entity.noun.many, asking.unit_text(field)
    question = asking.ask(
        draft,
        f"the {noun} of the {many} {after}",
        f"What is the {noun} of the {many} {after}{unit}?",
        f"Find the {noun} of the {many} {after}.",
        f"Among the {many} {after}, what is the {noun}{unit}?",
        is_many=False,
    )
    question += known_only(function, field, entity)
    return asked(question, query, (entity.name,), *filters, supports=(_valued(query, field),))


@shape("two-aggregates")
def two_aggregates(draft: Draft) -> Candidate:
    """Two aggregates of one column, in all or over some rows."""
    entity, field = _measured(draft)
    pairs = [("min", "max")]
    if field.role is Role.QUANTITY:
        pairs += [("avg", "max"), ("avg", "min"), ("max", "min")]
        pairs += [("sum", "avg")] if field.is_added else []
    pair = draft.pick(pairs)
    condition = conditions.condition(draft, entity, besides=(field.name,))
    filtered = draft.chance(0.6)
    after = condition.after(draft) if filtered else ""
    select = tuple(aggregate_sql(function, field) for function in pair)
    query = Query(select, entity.sql, (condition.sql,) if filtered else ())
    one, other = (aggregate_noun(draft, function, field) for function in pair)
    if one.endswith(f" {field.noun.one}") and other.endswith(f" {field.noun.one}"):
        one = one.removesuffix(f" {field.noun.one}")  # "the lowest and the highest price"
    many, all_ = entity.noun.many, "the" if filtered else "all"
    unit = asking.unit_text(field)
    question = (
        asking.ask(
            draft,
            f"the {one} and the {other}, in this order, of {all_} {many} {after}",
            f"What are the {one} and the {other} of {all_} {many} {after}{unit}?",
            f"Give the {one} and the {other}, in this order, of {all_} {many} {after}.",
            f"Show the {one} and then the {other} of {all_} {many} {after}.",
        )
        .replace(" ,", ",")
        .replace(" ?", "?")
        .replace(" .", ".")
    )
    question += known_only("avg" if "avg" in pair else "", field, entity)
    contrasts = query.weaker()
    supports = (_valued(query, field),)
    return Candidate(question, query.sql(), (entity.name,), contrasts, (), supports)


@shape("count-all-and-some")
def count_and_aggregate(draft: Draft) -> Candidate:
    """How many rows fulfil a condition, and an aggregate over them."""
    entity = draft.entity(lambda e: e.having(Role.QUANTITY))
    field = draft.pick(f for f in entity.having(Role.QUANTITY) if f.is_full)
    function = draft.pick(functions(field))
    condition = conditions.condition(draft, entity, besides=(field.name,))
    query = Query(("count(*)", aggregate_sql(function, field)), entity.sql, (condition.sql,))
    many, after = entity.noun.many, condition.after(draft)
    noun = aggregate_noun(draft, function, field)
    verb = condition.verb(draft)
    is_plain = "number of" not in noun  # "the number and the total number of seats"
    question = asking.ask(
        draft,
        f"the number and the {noun} of the {many} {after}" if is_plain else None,
        f"How many {many} are there {after}, and what is their {noun}?"
        if after.startswith(("whose", "with"))
        else None,
        f"How many {many} {verb}, and what is their {noun}?" if verb else None,
        f"Give the number and the {noun} of the {many} {after}." if is_plain else None,
        f"Count the {many} {after}, and give their {noun}.",
        is_many=None,
    )
    return asked(question, query, (entity.name,), condition, supports=(query.count_sql(),))


def known_only(function: str, field: Field, entity: Entity) -> str:
    """That an average leaves out rows without a value, where there are any."""
    if function != "avg" or not field.nulls:
        return ""
    return f" Leave out {entity.noun.many} without a known {field.noun.one}."


def _valued(query: Query, field: Field) -> str:
    """How many different values are aggregated: over one value any aggregate is that value."""
    return Query((f"count(DISTINCT {field.sql()})",), query.source, query.where).sql()

"""Phrases that several templates share, and functions that select columns for these phrases."""

from __future__ import annotations

from collections.abc import Sequence

from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.drafting import Draft
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.schema import Entity, Field, Role


def names(fields: Sequence[Field]) -> str:
    """Return columns in the plural: "names and capacities"."""
    return _joined([field.shown.many for field in fields])


def the(fields: Sequence[Field], *others: str) -> str:
    """Return columns and other nouns in the singular with articles: "the name and the capacity"."""
    return _joined([*(field.shown.one for field in fields), *others], "the ")


def _joined(nouns: list[str], article: str = "") -> str:
    if nouns[:2] in (["first name", "last name"], ["first names", "last names"]):
        nouns = [f"first and {nouns[1]}", *nouns[2:]]
    return english.join_words([article + noun for noun in nouns])


def ask(draft: Draft, what: str, *others: str, many: bool | None = None) -> str:
    """Return a question or a request about a noun phrase that is given without its article.

    Args:
        others: Complete sentences that ask for the same thing.
        many: Whether the phrase names several facts about one thing; None for a list.
    """
    question = f"What {'is' if many is False else 'are'} the {what}?"
    request = f"{draft.pick(('Find', 'Show', 'List' if many is None else 'Give'))} the {what}."
    return draft.pick((question, question, request, *others))


_ADJECTIVES = {
    "age": ("oldest", "youngest"),
    "length": ("longest", "shortest"),
    "duration": ("longest", "shortest"),
    "distance": ("longest", "shortest"),
    "weight": ("heaviest", "lightest"),
    "height": ("tallest", "shortest"),
    "price": ("most expensive", "cheapest"),
    "speed": ("fastest", "slowest"),
    "depth": ("deepest", "shallowest"),
}
_LARGE = word_set("population area size capacity budget quantity amount total volume number")
_LONG = frozenset(["length", "duration", "distance", "time", "wait", "delay"])


def ends(field: Field) -> tuple[str, str]:
    """Return adjectives for the largest and the smallest value of a column."""
    if field.role in (Role.YEAR, Role.DATE):
        return "latest", "earliest"
    if field.noun.last in _LARGE or field.noun.counts:
        return "largest", "smallest"
    if field.noun.last == "height":
        return "greatest", "smallest"
    return ("longest", "shortest") if field.noun.last in _LONG else ("highest", "lowest")


def extreme(draft: Draft, entity: Entity, field: Field, alias: str = "") -> tuple[str, str, str]:
    """Draw the highest or the lowest value of a column.

    Returns:
        The ORDER BY clause, a noun phrase for the row ("singer with the highest rating"), and a
        verb phrase for the row ("is the oldest").
    """
    side = int(draft.chance(0.4))
    order, one = f"{field.value_sql(alias)} {('DESC', 'ASC')[side]}", entity.noun.one
    words = _ADJECTIVES.get(field.noun.one, ("", ""))
    alike = [f for f in entity.fields if words[1] in _ADJECTIVES.get(f.noun.last, ())]
    if len(alike) == 1:
        return order, f"{words[side]} {one}", f"is the {words[side]}"
    value = f"{ends(field)[side]} {field.shown.one}"
    if field.noun.counts:
        value = f"{('most', 'fewest')[side]} {field.noun.counts}"
    return order, f"{one} with the {value}", f"has the {value}"


def measured(entity: Entity) -> list[Field]:
    """Return columns by which rows can be compared."""
    return [f for f in entity.having(Role.QUANTITY, Role.YEAR, Role.DATE) if f.is_full]


def measures(entity: Entity) -> list[Field]:
    """Return columns that can be aggregated."""
    return [
        f
        for f in entity.having(Role.QUANTITY)
        if f.is_full
        and f.noun.last not in ("latitude", "longitude")
        and f.noun.one != entity.noun.one
    ]


def functions(field: Field) -> list[str]:
    """Return the aggregates that are meaningful for a column."""
    is_average = {"average", "mean"} & set(field.noun.one.split())
    return ["max", "min", *["avg"] * (not is_average) * 2, *["sum"] * 2 * field.is_added]


def draw_functions(draft: Draft, field: Field) -> list[str]:
    """Draw one or two aggregates of a column."""
    first = draft.pick(functions(field))
    others = [each for each in functions(field) if each not in (first, "sum")]
    return [first] if first == "sum" or draft.chance(0.7) else [first, draft.pick(others)]


def aggregate_noun(chosen: Sequence[str], field: Field) -> str:
    """Return aggregates as a noun phrase: "average age", "average and highest age"."""
    most, least = ends(field)
    words = {"avg": "average", "sum": "total", "max": most, "min": least}
    return f"{' and '.join(words[each] for each in chosen)} {field.noun.one}"


def grouping(draft: Draft, fields: Sequence[Field], entity: Entity) -> Field:
    """Return a column to group by.

    The column has few distinct values, all short, none missing, and none that differ only in case.
    """
    return draft.pick(
        field
        for field in fields
        if field.role in (Role.CATEGORY, Role.YEAR)
        and 2 <= field.distinct <= MOST_GROUPS
        and field.distinct < entity.rows
        and field.is_full
        and not field.noun.is_plural
        and field.noun.last not in lexicon.FREE_TEXTS
        and len({str(value).casefold().strip() for value in field.values}) == len(set(field.values))
        and all(len(str(value)) <= 40 for value in field.values)
    )


MOST_GROUPS = 25
"""Maximum number of groups in an answer."""

"""Wordings that many shapes share: list rows, count rows, and the most or the least of all.

Each wording says which columns to give, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.conditions.forms import event_forms
from sqlgym.synthesis.drafting import Draft, label_of, names, the
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.schema import Entity, Field, Role


def ask(
    draft: Draft, what: str | None, *others: str | None, is_many: bool | None = True, then: str = ""
) -> str:
    """A question, a request or a fragment for what a noun phrase tells.

    Args:
        what: What is asked for, with its article: "the names of all singers"; None where it cannot
            be said in one phrase.
        others: Wordings that this shape alone has, whole.
        is_many: Whether it is a plural; None where nobody would ask "what is" of it.
        then: What has to be said behind the phrase in a sentence of its own.
    """
    if what is None or (any(others) and draft.chance(0.45)):
        return draft.say(*others)
    be = {True: "are", False: "is", None: ""}[is_many]
    what = what.strip()
    bare = _without_articles(what)
    said = draft.say(
        be and f"What {be} {what}?",
        be and f"What {be} {what}?",
        f"Can you tell me {what}?",
        f"{'List' if is_many else 'Give'} {what}.",
        f"Show me {what}.",
        f"Find {what}.",
        f"Tell me {what}.",
        f"I need {what}.",
        f"{bare}." if bare[0].isalpha() else None,
        f"{bare}." if bare[0].isalpha() else None,
    )
    return f"{said}{then}"


def is_clause(after: str) -> bool:
    """Whether what stands behind a noun is so long that nothing else can stand behind it."""
    return after.strip().startswith(("whose ", "for which ", "that ", "with "))


def _without_articles(what: str) -> str:
    """A noun phrase as it stands alone: "date and status of the order"."""
    if not what.startswith("the "):
        return what
    head, of, tail = what.removeprefix("the ").partition(" of ")
    return head.replace(" and the ", " and ").replace(", the ", ", ") + of + tail


def list_rows(
    draft: Draft, entity: Entity, fields: Sequence[Field], after: str, verb: str | None = None
) -> str:
    """A question for columns of the rows that fulfil something.

    Args:
        after: What the rows fulfil, behind the noun; may be empty.
        verb: The same as a verb in the plural, if it can be said so.
    """
    many, one = entity.noun.many, entity.noun.one
    by_verb = verb and draft.say(
        f"Which {many} {verb}? Give their {names(fields)}.",
        f"Which {many} {verb}? List {the(fields)} of each.",
        f"Which {many} {verb}? Show {the(fields)} of each one.",
    )
    return ask(
        draft,
        f"the {names(fields)} of the {many} {after}",
        f"Give {the(fields)} of every {one} {english.of_one(after)}.",
        f"Show {the(fields)} of each {one} {english.of_one(after)}.",
        by_verb or None,
        by_verb or None,
        by_verb or None,
    )


def list_or_count(
    draft: Draft, entity: Entity, fields: Sequence[Field], after: str, verb: str | None = None
) -> str:
    """A question for columns of the rows that fulfil something, or, without any, their number."""
    if fields:
        return list_rows(draft, entity, fields, after, verb)
    return count_rows(draft, entity, after, verb)


def count_rows(draft: Draft, entity: Entity, after: str, verb: str | None = None) -> str:
    """A question for the number of rows that fulfil something."""
    many = entity.noun.many
    return ask(
        draft,
        f"the number of {many} {after}",
        f"How many {many} are there {after}?" if after.startswith(("whose", "with")) else None,
        f"Count the {many} {after}.",
        f"How many {many} {verb}?" if verb else None,
        f"How many {many} {verb}?" if verb else None,
        is_many=False,
    )


def most(field: Field, is_most: bool, draft: Draft) -> str:
    """The extreme of a column as an adjective before its noun: "highest", "earliest"."""
    if field.role in (Role.DATE, Role.YEAR):
        return draft.say("latest", "most recent") if is_most else "earliest"
    return most_of(field, is_most)


def most_of(field: Field, is_most: bool) -> str:
    """The extreme of a quantity: "highest", "smallest", "longest"."""
    return _pair(field)[0 if is_most else 1]


def _pair(field: Field) -> tuple[str, str]:
    """The two ends of a quantity; `highest` is no higher than another."""
    noun = field.noun
    if noun.one.startswith(("highest ", "lowest ")) or noun.last in _SIZES or noun.counts:
        return ("largest", "smallest")
    if noun.last in _LONG or noun.unit in _LASTING:
        return ("longest", "shortest")
    return ("greatest", "lowest") if noun.last in _GREAT else ("highest", "lowest")


_SIZES = word_set("number amount population area quantity total budget capacity size volume")
_LONG = word_set("length duration distance delay runtime range")
_LASTING = word_set("minutes seconds hours days weeks months years milliseconds")
_GREAT = word_set("weight mass depth width height load")


def with_most(draft: Draft, entity: Entity, field: Field, is_most: bool) -> str:
    """The row that has the most of something, behind "which": "singer is the oldest"."""
    kind, words = _extreme(draft, field, is_most)
    verb = {"event": "", "adjective": "is the ", "count": "has the ", "value": "has the "}[kind]
    return f"{entity.noun.one} {verb}{words}"


def the_most(draft: Draft, entity: Entity, field: Field, is_most: bool, after: str = "") -> str:
    """The same as a noun phrase: "the oldest singer", "the singer with the highest rating"."""
    row = f"{entity.noun.one} {english.of_one(after)}".rstrip()
    kind, words = _extreme(draft, field, is_most)
    if kind == "adjective":
        return f"the {words} {row}"
    return f"the {row} {'that' if kind == 'event' else 'with the'} {words}"


def _extreme(draft: Draft, field: Field, is_most: bool) -> tuple[str, str]:
    """How the row with the most of something is told from others: the kind of words, and these."""
    events = event_forms(field, "")
    if events and not events[0].text.endswith(" due"):  # what is due lies ahead as well
        verb = events[0].text.replace("were ", "was ", 1)
        return "event", f"{verb} {'most recently' if is_most else 'first'}"
    noun = field.noun
    if noun.counts:
        return "count", f"{'most' if is_most else 'fewest'} {noun.counts}"
    adjectives = lexicon.SUPERLATIVES.get(noun.graded)
    if adjectives and draft.chance(0.85):
        return "adjective", adjectives[0 if is_most else 1]
    return "value", f"{most(field, is_most, draft)} {noun.one}"


def sorting(draft: Draft, field: Field, downwards: bool) -> str:
    """The order of a list: "from the highest to the lowest price"."""
    first, last = ends(field, downwards)
    way = "descending" if downwards else "ascending"
    return draft.say(
        f"from the {first} to the {last} {field.noun.one}",
        f"in {way} order of {_the(field)}",
        f"sorted by {_the(field)}, the {first} first",
    )


def ends(field: Field, downwards: bool) -> tuple[str, str]:
    """The first and the last in an order: "latest" and "earliest"."""
    if field.role in (Role.DATE, Role.YEAR):
        pair = ("latest", "earliest")
    else:
        pair = (most_of(field, True), most_of(field, False))
    return pair if downwards else (pair[1], pair[0])


def _the(field: Field) -> str:
    return field.noun.one if field.noun.is_readable else f"the {field.noun.one}"


def called_date(entity: Entity, field: Field) -> str:
    """What a date is called: that of an order is its order date."""
    return f"{entity.noun.one} date" if field.noun.one == "date" else field.noun.one


_NOTHING_NEW = frozenset(["occurred", "happened", "took place"])
"""What rows do at their date that tells nothing: every incident occurred."""


def event_of(field: Field) -> str:
    """What happened to rows at a date, as a verb in the plural; "" where no name tells."""
    events = event_forms(field, "")
    text = events[0].text.strip() if events else ""
    return "" if text in _NOTHING_NEW else text


def by_date(entity: Entity, field: Field) -> str:
    """By which date rows belong to a year, where none happened to them: ", by start date"."""
    noun = field.noun.one
    is_own = noun in ("date", "year", f"{entity.noun.one} date", f"{entity.noun.one} year")
    is_own = is_own and field.name.count("_") < 2  # date_order_placed is called by its name
    events = event_forms(field, "")
    if is_own or (events and events[0].text.strip() in _NOTHING_NEW):
        return ""
    return f", by their {noun}"


def unit_text(field: Field) -> str:
    """Its unit as an addition to a question for it: ", in km"."""
    unit = field.noun.unit
    return f", in {unit}{'s' * (unit == 'million')}" if unit else ""


def shown(draft: Draft, entity: Entity, *besides: str) -> tuple[Field, ...]:
    """What is listed of rows: their names; of rows without one, two of their columns.

    That no two rows are the same is proved with the result. A key is listed where nothing else is.
    """
    if entity.label is None or entity.label.is_said or draft.chance(draft.keys):
        return label_of(entity)
    others = [field for field in outputs(entity) if field.name not in besides]
    first = draft.pick(others)
    rest = [field for field in others if field is not first]
    return (first, draft.pick(rest)) if rest else (first,)


def outputs(entity: Entity) -> list[Field]:
    """Columns that may be asked for beside the label."""
    label = entity.label.fields if entity.label else ()
    return [
        field
        for field in entity.fields
        if field.role
        in (Role.QUANTITY, Role.YEAR, Role.DATE, Role.CATEGORY, Role.NAME, Role.TEXT, Role.CODE)
        and field not in label
        and field.is_full
        and (field.role is not Role.CODE or field.noun.is_readable)
        and field.noun.last != "ID"
        and not {"password", "hash", "token"} & set(field.noun.one.split(" "))
        and not _is_bit(field)
    ]


def _is_bit(field: Field) -> bool:
    """Whether it holds 1 and 0 for something that its name does not tell: "the hazardous"."""
    return field.role is Role.CODE and set(field.values) <= {0, 1}

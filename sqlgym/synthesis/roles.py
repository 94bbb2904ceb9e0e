"""Roles of columns, from their types, their names and their values.

The decision is a pure function of a `Sample`, so that each rule is a row of a test. Names decide
among what the values allow: a column is never a date because it is called one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlgym.synthesis import lexicon
from sqlgym.synthesis.flags import is_adjective, is_state
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.nouns import column_noun
from sqlgym.synthesis.parts import parts_of, words_of
from sqlgym.synthesis.schema import Role

FEW = 30
"""So many different values, at most, make a category."""
LONGEST = 60
"""Characters of a value that a question or an answer may hold."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_UNCLEAN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd\\]")
_NOTHING = frozenset({"", "null", "none", "n/a", "na", "-", "nan", "unknown", "?", "nil"})
_FLAGS = (
    ("T", "F"),
    ("true", "false"),
    ("yes", "no"),
    ("Y", "N"),
    ("ja", "nein"),
    ("J", "N"),
    ("1", "0"),
)
_NAMES = frozenset(["name", "title"])
_WORDY = word_set("""
    description comment comments details detail note notes text summary review abstract
    content address password URL bio remark remarks message body
""")
_PROSE = word_set("body text message content bio review abstract summary")
"""Of these no value is one of a kind, even where some are written again and again."""
_CODED = word_set("""
    ID code number key phone fax zip postal postcode isbn ISBN SKU SSN IBAN password email
    e-mail URL ZIP hash token barcode latitude longitude login version
""")


_NAMED_THINGS = word_set("""
    date time timestamp month day sex gender type status name title major discipline course
    class section zone category group parent source reference model brand language channel
    flag indicator kind colour color
""")
"""Of these a whole number is a code and no quantity."""
NO_LABEL = _WORDY | _CODED | lexicon.PLACE_COLUMNS | frozenset({"date", "time", "location"})
"""Words of columns that do not say what a row is, however different their values are."""
_SINCE = word_set("start from since founded built opened established begin end until")


_PLACES_IN_ORDER = word_set("""
    rank ranking position place standing line sequence step ordinal stop round row slot seat
    chapter episode order lane track turn priority season period term week quarter phase stage
    floor platform gate edition tier rung division auditorium bay aisle desk dock rack
""")
_RANKED = word_set("grade support service access security skill difficulty education clearance")
"""Behind these a level is one, and not how much."""
"""Of these a whole number says which one, and not how much."""


@dataclass(frozen=True)
class Sample:
    """The facts from which the role of a column is decided.

    Attributes:
        type: Its declared type.
        nulls: Rows that lack it.
        values: Values of a sample, without NULLs.
        is_key: It identifies the rows of its table.
        refers: It refers to another table.
        table_words: The words of its table's noun.
    """

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int
    values: tuple[Any, ...]
    is_key: bool = False
    refers: bool = False
    table_words: tuple[str, ...] = ()

    @property
    def present(self) -> int:
        """Rows that have it."""
        return self.rows - self.nulls


def role_of(sample: Sample) -> Role:
    """The role of a column."""
    if sample.refers:
        return Role.REFERENCE
    if sample.is_key:
        return Role.KEY
    values = sample.values
    if not values or any(isinstance(value, bytes) for value in values):
        return Role.OTHER
    if flag_values(sample) is not None:
        return Role.FLAG
    if all(isinstance(value, int | float) for value in values):
        return _role_of_numbers(sample)
    if not all(isinstance(value, str) for value in values):
        return Role.OTHER
    if any(len(value) > LONGEST or is_unclean(value) for value in values):
        return Role.TEXT
    if is_dates(values):
        return Role.DATE
    if holds_numbers(values):
        return _role_of_numbers(sample)
    mixed = sum(bool(_NUMBER.fullmatch(v) or _DATE.match(v)) for v in values)
    return Role.OTHER if 5 * mixed > len(values) else _role_of_texts(sample)


def flag_values(sample: Sample) -> tuple[Any, Any] | None:
    """The values for yes and no, if a column has both and no others."""
    words = words_of(sample.name)
    values = set(sample.values)
    if len(values) != 2 or sample.distinct != 2:
        return None
    is_flag_name = words[:1] and words[0] in ("is", "has", "was", "can", "does", "did", "are")
    if values == {0, 1}:
        return (
            (1, 0)
            if is_flag_name
            or words[-1:] in (("flag",), ("indicator",))
            or is_state(words)
            or (len(words) == 1 and is_adjective(words[0]))
            else None
        )
    for yes, no in _FLAGS[:-1]:
        for form in (str, str.lower, str.upper, str.capitalize):
            if values == {form(yes), form(no)}:
                return form(yes), form(no)
    return None


def is_unclean(value: str) -> bool:
    """Whether a text cannot be read and typed again without care."""
    return bool(_UNCLEAN.search(value))


def is_typable(value: Any) -> bool:
    """Whether a value can be written into a question and found in the data as it was written."""
    return not isinstance(value, str) or (
        value == " ".join(value.split()) != "" and not is_unclean(value) and not is_blank(value)
    )


def is_blank(value: Any) -> bool:
    """Whether a text stands for nothing."""
    return isinstance(value, str) and value.strip().lower() in _NOTHING


def is_dates(values: tuple[Any, ...]) -> bool:
    """Whether all values are ISO dates, all with a time of day or all without one."""
    if not all(isinstance(value, str) for value in values):
        return False
    for form in (_DATE, _DATE_TIME):
        if all(form.fullmatch(value) for value in values):
            return all(map(_is_day, values))
    return False


def holds_numbers(values: tuple[Any, ...]) -> bool:
    """Whether all values are numbers written as texts, each in its shortest form."""
    return all(isinstance(v, str) and len(v) < 16 and _NUMBER.fullmatch(v) for v in values)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return text[:4] >= "1000"


def _role_of_numbers(sample: Sample) -> Role:
    words = words_of(sample.name)
    numbers = [float(value) for value in sample.values]
    if not all(map(math.isfinite, numbers)):
        return Role.OTHER
    whole = all(number.is_integer() for number in numbers)
    last = words[-1] if words else ""
    of_year = whole and ("year" in words[-2:] or words[:1] == ("year",))
    if of_year and all(1000 <= number <= 2200 for number in numbers):
        return Role.YEAR
    if parts_of(sample.name)[-1:] and parts_of(sample.name)[-1].lower() in ("id", "key", "code"):
        return Role.CODE
    if sample.distinct > 1 and column_noun(sample.name, (), True).unit:
        return Role.QUANTITY
    if whole and _SINCE & set(words) and all(1800 <= number <= 2100 for number in numbers):
        return Role.YEAR
    if words[:2] == ("number", "of") or (words[:1] == ("number",) and len(words) > 1):
        return Role.QUANTITY
    if whole and last == "by":
        return Role.OTHER  # it tells who did it, by a number
    if last in _CODED or _CODED & set(words[-2:]) - {"number"}:
        return Role.CODE
    if last in _NAMED_THINGS or last in lexicon.PERSONS or last in lexicon.PLACES:
        return Role.CODE
    if whole and last == "level" and (words == ("level",) or words[-2] in _RANKED):
        return Role.CODE
    if whole and (last in _PLACES_IN_ORDER or words[:1] == ("line",)):
        return Role.CODE  # a high rank is a small number, so nobody knows what is more
    if last in ("rank", "ranking", "position", "standing"):
        return Role.CODE
    if not whole or last in lexicon.ADDED:
        return Role.QUANTITY if sample.distinct > 1 else Role.OTHER
    if sample.distinct == sample.present == sample.rows > 3 and _is_run(numbers):
        return Role.CODE
    return Role.QUANTITY if sample.distinct > 1 and set(numbers) != {0, 1} else Role.CODE


def _role_of_texts(sample: Sample) -> Role:
    words = words_of(sample.name)
    last = words[-1] if words else ""
    own = sample.table_words and words == sample.table_words[-len(words) :]
    repeats = sample.distinct <= 0.5 * sample.present
    if last == "by" and (len(words) < 2 or words[-2] not in lexicon.AGENTS):
        return Role.OTHER
    if last in _PROSE or (last in _WORDY and not (sample.distinct <= FEW and repeats)):
        return Role.TEXT
    if last in _CODED and not (sample.distinct <= FEW and repeats and last == "code"):
        return Role.CODE
    if last in _NAMES or own:
        return Role.NAME
    if sample.distinct <= max(FEW, sample.present // 4) and (
        repeats or (sample.distinct < sample.present and sample.distinct <= 12)
    ):
        return Role.CATEGORY
    return Role.CATEGORY if last in lexicon.PLACE_COLUMNS and repeats else Role.TEXT


def _is_run(numbers: list[float]) -> bool:
    """Whether numbers follow each other without gaps, as those of a counter do."""
    return max(numbers) - min(numbers) + 1 <= 1.2 * len(numbers)

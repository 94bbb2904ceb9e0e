"""Roles of columns, determined from their names, types and values.

The values determine the possible roles of a column, and the name selects one of them. A column is
never treated as a date on the basis of its name alone. A number that is an id, a code or an ordinal
is not a quantity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Any

from sqlgym.synthesis.lexicon import (
    FREE_TEXTS,
    PERSONS,
    PLACE_COLUMNS,
    word_set,
    words_of,
)
from sqlgym.synthesis.nouns import column_noun


class Role(StrEnum):
    """The role of a column in questions."""

    KEY = "key"
    REFERENCE = "reference"
    NAME = "name"
    CATEGORY = "category"
    QUANTITY = "quantity"
    YEAR = "year"
    DATE = "date"
    CODE = "code"
    TEXT = "text"
    OTHER = "other"


FEW = 30
"""Maximum number of distinct values of a category."""
LONGEST = 60
"""Maximum length of a value in a question or an answer, in characters."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?")
_ANY_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,4}[-/. ](?:\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}")
"""Matches a date in any format."""
_LETTERS = re.compile(r"(?=.*[a-z])\D*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_UNCLEAN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd\\]")
_BLANK = frozenset({"", "null", "none", "n/a", "na", "-", "nan", "unknown", "?", "nil"})
_YES_NO = word_set("y n yes no t f true false x")
_FLAGS = word_set("is has was can are does")
_CODES = word_set("""
    ID IDs code key phone fax zip postal postcode isbn ISBN SKU SSN password email URL ZIP hash
    token barcode latitude longitude login version date time timestamp month day sex gender type
    status name title class section zone category group parent source model brand language channel
    flag indicator kind color rank ranking position place standing line sequence step ordinal stop
    round row slot seat chapter episode order lane track turn priority season period term week
    quarter phase stage floor platform gate edition tier division level grade lap by capital major
    minor course discipline locker room box desk bay berth unit lot block cycle
""")
"""Last words of the names of columns whose numbers identify something rather than measure it."""
_SINCE = word_set("start since founded built opened established begin end until born birth")
MEASURES = word_set("""
    size capacity weight height length width depth distance area volume age price cost fee amount
    salary budget income revenue profit population score rating quantity number count duration
    speed temperature pressure percentage rate ratio share total balance discount points stock
    altitude elevation power energy mass bonus tax wage gross attendance enrollment mark
""")
"""Last words of the names of columns that contain quantities, regardless of their values."""


def role_of(name: str, values: Sequence[Any], distinct: int, present: int, own: bool) -> Role:
    """Return the role of a column that is neither a key nor a reference.

    Args:
        name: The name of the column.
        values: Values of a sample of rows, without NULLs.
        distinct: The number of distinct values.
        present: The number of rows with a value.
        own: Whether the column is named after its table.
    """
    words = words_of(name)
    last = words[-1] if words else ""
    if not values:
        return Role.OTHER
    if words[:1] and words[0] in _FLAGS and distinct == 2:
        return Role.OTHER
    if all(isinstance(value, int | float) for value in values) or holds_numbers(values):
        return _role_of_numbers(name, [float(value) for value in values], distinct, present)
    if not all(isinstance(value, str) for value in values):
        return Role.OTHER
    if any(len(value) > LONGEST or is_unclean(value) for value in values):
        return Role.TEXT
    if _are_dates(values):
        return Role.DATE
    mixed = sum(bool(_NUMBER.fullmatch(value) or _ANY_DATE.match(value)) for value in values)
    if 5 * mixed > len(values) or last == "by" or "other" in words:
        return Role.OTHER
    if _YES_NO.issuperset(value.lower() for value in values):
        return Role.OTHER
    repeats = distinct <= 0.5 * present
    if last in FREE_TEXTS and not (distinct <= FEW and repeats and last not in ("body", "text")):
        return Role.TEXT
    if last in ("name", "title", "headline") or own:
        return Role.NAME
    is_code = last in ("number", "phone", "code") and not (distinct <= FEW and repeats)
    if is_code or (last in _CODES and last.isupper()):
        return Role.CODE
    few = distinct <= max(FEW, present // 4) and (repeats or distinct <= min(12, present - 1))
    return Role.CATEGORY if few or (last in PLACE_COLUMNS and repeats) else Role.TEXT


def holds_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values are numbers that are stored as text."""
    return all(isinstance(v, str) and len(v) < 16 and _NUMBER.fullmatch(v) for v in values)


def _role_of_numbers(name: str, numbers: list[float], distinct: int, present: int) -> Role:
    words = words_of(name)
    if not all(map(math.isfinite, numbers)):
        return Role.OTHER
    whole = all(number.is_integer() for number in numbers)
    last = words[-1] if words else ""
    is_of_years = whole and all(1000 <= number <= 2200 for number in numbers)
    if is_of_years and ("year" in words or _SINCE & set(words)):
        return Role.YEAR
    noun = column_noun(name, (), "count" if whole else "number")
    if distinct < 2 or {"latitude", "longitude", "rank", "version"} & set(words):
        return Role.CODE
    if whole and (set(numbers) <= {0, 1} or _are_packed(numbers)):
        return Role.OTHER
    if last == "ID" or (whole and is_clipped_id(name)) or (last == "code" and not noun.counts):
        return Role.CODE
    if noun.counts or noun.unit or last in MEASURES:
        is_numeral = last == "number" and words[-2:-1] != ("total",)
        return Role.CODE if is_numeral and not noun.counts else Role.QUANTITY
    is_long = whole and min(numbers) >= 1e7
    if whole and (last in _CODES | PERSONS | PLACE_COLUMNS or words[:1] == ("line",) or is_long):
        return Role.CODE
    is_run = max(numbers) - min(numbers) + 1 <= 1.2 * len(numbers)
    return Role.CODE if whole and distinct == present > 3 and is_run else Role.QUANTITY


def _are_packed(numbers: Sequence[float]) -> bool:
    """Return whether all numbers are dates of eight digits, such as 20240131."""
    return all(
        1800_00_00 < number < 2100_00_00 and 0 < number // 100 % 100 < 13 and 0 < number % 100 < 32
        for number in numbers
    )


def are_names(values: Sequence[Any]) -> bool:
    """Return whether all values have lower-case letters and no digits, and thus are not codes."""
    return all(isinstance(v, str) and _LETTERS.fullmatch(v) for v in values)


def is_clipped_id(name: str) -> bool:
    """Return whether the name of a column is a letter and "id", such as `bid` in a table of
    bikes.
    """
    return re.fullmatch(r"[a-z]id", name.lower()) is not None


def is_measure(name: str) -> bool:
    """Return whether the name of a numeric column indicates a quantity."""
    noun = column_noun(name, (), "count")
    return bool(noun.counts or noun.unit or noun.last in MEASURES)


def is_unclean(value: str) -> bool:
    """Return whether text contains characters that cannot be copied from an observation."""
    return bool(_UNCLEAN.search(value))


def is_blank(value: Any) -> bool:
    """Return whether text indicates a missing value, such as "", "N/A" or "unknown"."""
    return isinstance(value, str) and value.strip().lower() in _BLANK


def is_typable(value: Any) -> bool:
    """Return whether a value can be copied from a question into a query that finds it."""
    return not isinstance(value, str) or (
        value == " ".join(value.split()) != "" and not is_unclean(value) and not is_blank(value)
    )


def _are_dates(values: Sequence[str]) -> bool:
    """Return whether all values are ISO dates, all with a time of day or all without one."""
    return any(all(map(form.fullmatch, values)) for form in (_DATE, _DATE_TIME)) and all(
        map(_is_day, values)
    )


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return text >= "1000"

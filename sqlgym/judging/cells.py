"""Compare one cell of a gold result with one value of an answer.

| gold    | accepted                                                                               |
|---------|----------------------------------------------------------------------------------------|
| integer | the same number: 1234, "1234.0", "1,234"; true/false for 1/0                           |
| float   | equal when rounded to the decimals of the answer, at least two; or within 1e-6         |
| either  | with a matching unit: "$1,234", "1234 km", "12%" (see `sqlgym.judging.units`)          |
| text    | the same, ignoring Unicode form (NFC), case, runs of spaces and one pair of quotes     |
| date    | as text, or the same day in another format: "2014-05-03", "2014/5/3", "May 3, 2014"    |
| NULL    | null, "NULL", "None", or nothing                                                       |
| bytes   | as shown: x'00ff'                                                                      |

A value that is only part of the gold text, or one of several numbers in a string, is never
accepted. Zero is not accepted as the rounded form of a nonzero number. If the gold value is text, a
bare number is accepted if it is written in the same way, or if the text is a decimal number with
the same value ("4.50" for 4.5, but not "007" for 7).
"""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from sqlgym.judging.nfc import nfc
from sqlgym.judging.units import ANY, Units
from toolgym.lazy import lazy

LONGEST_NUMBER = 400
"""Maximum length of a number's text, and its maximum decimal exponent. SQLite cannot represent
larger numbers.
"""

_NUMBER = re.compile(
    r"""(?P<sign>[+-]?)\s?(?P<currency>us\$|[$€£¥₹]|usd|eur|gbp)?\s?(?P<minus>-?)
    (?P<digits>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?P<power>e[+-]?[0-9]{1,4})?
    (?P<unit>[\s-]?[^\W\d].{0,60}|\s?[%$€£¥₹°].{0,60})?""",
    re.IGNORECASE | re.VERBOSE,
)
_PLAIN_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}
_NOTHING = frozenset({"", "null", "none"})
_TRUE = frozenset({"true", "t", "yes", "y", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "0"})

_DAY = r"(?P<day>[0-9]{1,2})"
_MONTH_WORDS = """
    january february march april may june july august september october november december
"""
_MONTH_NAMES = _MONTH_WORDS.split()
_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_DATES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/]" + _DAY + r"(?:[ T](?P<time>[0-9:.]+))?",
        _DAY + r"(?:st|nd|rd|th)? " + _MONTH + r",? (?P<year>[0-9]{4})",
        _MONTH + " " + _DAY + r"(?:st|nd|rd|th)?,? (?P<year>[0-9]{4})",
    )
)
_MIDNIGHT = re.compile(r"[0:.]*")


class Number(NamedTuple):
    """A number in a string: its value, its number of decimal places, and the rest of the string."""

    value: Decimal
    decimals: int
    unit: str


class Cell:
    """A value with cached parsed forms.

    The cache is needed because comparing two tables regardless of row order compares every pair of
    rows.

    Args:
        value: A cell of a gold result or of an answer.
        units: The units that an answer can have, if the value is a cell of a gold result.
    """

    def __init__(self, value: Any, units: Units = ANY) -> None:
        self.value = value
        self.units = units

    @lazy
    def normal(self) -> str:
        """Normalized text in which quotes are kept; see `normal_text`."""
        return _normal(self.value)

    @lazy
    def text(self) -> str:
        """Normalized text; a decimal number is kept as written. See `normal_text`."""
        return _unquoted(self.normal) if isinstance(self.value, str) else repr(self.value)

    @lazy
    def number(self) -> Number | None:
        """The number in the value, which can be quoted; see `read_number`."""
        written = self.value if isinstance(self.value, str) else repr(self.value)
        return read_number(written) or read_number(self.text)

    @lazy
    def is_day(self) -> bool:
        """Whether the value is a date in SQLite's format."""
        return isinstance(self.value, str) and is_date(self.value)

    @lazy
    def day(self) -> tuple[date, str] | None:
        """The date that the value represents."""
        return _read_date(self.value if self.is_day else self.text)

    @lazy
    def sort_key(self) -> str:
        """A string that is the same for most pairs of equal values."""
        value = self.value
        if isinstance(value, str):
            return f"{float(self.number.value):.6g}" if self.number else self.text
        is_number = isinstance(value, int | float) and abs(value) < 1e300
        return f"{float(value):.6g}" if is_number else ""


def same_cell(gold: Any, value: Any) -> bool:
    """Return whether a value is correct for one cell of the gold result; False if not a scalar.

    >>> same_cell(1234, "$1,234"), same_cell(2 / 3, 0.67), same_cell("Île", " île")
    (True, True, True)
    >>> same_cell(3, "3 or 4")
    False
    """
    gold_cell = gold if isinstance(gold, Cell) else Cell(gold)
    return _same(gold_cell, value if isinstance(value, Cell) else Cell(value))


def normal_text(text: str) -> str:
    """Normalize text for comparison: NFC, lower case, single spaces, and no surrounding quotes.

    >>> normal_text(' "New   York" ')
    'new york'
    """
    return _unquoted(_normal(text))


def is_date(text: str) -> bool:
    """Return whether a string is a date in SQLite's format, with or without a time."""
    return bool(_DATES[0].fullmatch(text.strip())) and _read_date(text) is not None


def read_number(text: str) -> Number | None:
    """Return the number in a string, or None if the string does not contain exactly one number.

    Words can precede or follow the number.

    >>> read_number("1,234.50 km"), read_number("2014-05-03")
    (Number(value=Decimal('1234.50'), decimals=2, unit='km'), None)
    """
    if len(text) > LONGEST_NUMBER:
        return None
    match = _NUMBER.fullmatch(text.replace("\u2212", "-").replace("\xa0", " ").strip())
    if match is None or (match["sign"] and match["minus"]):
        return None
    digits = match["sign"] + match["minus"] + match["digits"].replace(",", "")
    number = Decimal(digits + (match["power"] or ""))
    if abs(number.adjusted()) > LONGEST_NUMBER:
        return None
    beside = f"{match['currency'] or ''} {match['unit'] or ''}".strip()
    return Number(number, _decimals(number), beside)


def _normal(text: str) -> str:
    composed = " ".join(nfc(text).split())
    return nfc(composed.casefold())


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and _QUOTES.get(text[0]) == text[-1]
    return text[1:-1].strip() if quoted else text


def _same(gold: Cell, value: Cell) -> bool:
    if gold.value is None:
        return value.value is None or (isinstance(value.value, str) and value.normal in _NOTHING)
    if isinstance(value.value, bool):
        return _same_truth(gold, value.value)
    if isinstance(gold.value, int | float):
        return _same_number(gold, value)
    if isinstance(gold.value, str):
        return _same_text(gold, value)
    if isinstance(gold.value, bytes) and isinstance(value.value, str):
        return value.value.strip().lower() == f"x'{gold.value.hex()}'"
    return False


def _same_truth(gold: Cell, value: bool) -> bool:
    if isinstance(gold.value, str):
        return gold.text in (_TRUE if value else _FALSE)
    return isinstance(gold.value, int | float) and gold.value == int(value)


def _same_number(gold: Cell, value: Cell) -> bool:
    number, answer = gold.value, value.value
    if isinstance(answer, int):
        return bool(number == answer) or _agrees(number, answer)
    if not isinstance(answer, str | float):
        return False
    if value.text in {"true", "false"}:
        return bool(number == int(value.text == "true"))
    if isinstance(number, float) and not math.isfinite(number):
        return value.text == repr(number)
    if value.number is None:
        return False
    read, decimals, unit = value.number
    if _equal(number, read, decimals) and gold.units.allow(unit):
        return True
    is_share = isinstance(number, float) and abs(number) <= 1 and gold.units.allow_share(unit)
    return is_share and _equal(number, read / 100, decimals + 2)


def _agrees(gold: int | float, value: int) -> bool:
    """Return whether an integer is correct for a float."""
    if isinstance(gold, int) or not math.isfinite(gold) or value.bit_length() > 1_024:
        return False
    return _equal(gold, Decimal(value), 0)


def _equal(gold: int | float, number: Decimal, decimals: int) -> bool:
    if isinstance(gold, int):
        return number == gold
    if float(number) == gold:
        return True
    exact = Decimal(repr(gold))
    difference = abs(number - exact)
    if difference <= abs(exact) * Decimal("1e-6"):
        return True
    if number.is_zero() and abs(exact) >= Decimal("1e-9"):
        return False
    return difference <= Decimal(5).scaleb(-max(2, decimals) - 1)


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _same_text(gold: Cell, value: Cell) -> bool:
    if isinstance(value.value, int | float):
        return _same_as_written(gold.value, value.value)
    if not isinstance(value.value, str):
        return False
    if gold.text == value.text or gold.normal == value.normal:
        return True
    return gold.is_day and gold.day == value.day


def _same_as_written(gold: str, value: int | float) -> bool:
    """Return whether a bare number is correct for a string such as a year or a code."""
    if isinstance(value, int) and value.bit_length() > 1_024:
        return False
    text = gold.strip()
    if text.lower() == repr(value).lower():
        return True
    if len(text) > LONGEST_NUMBER or not _PLAIN_DECIMAL.fullmatch(text) or not math.isfinite(value):
        return False
    return Decimal(text) == Decimal(repr(value))


def _read_date(text: str) -> tuple[date, str] | None:
    """Return the day, and the time of day unless it is midnight."""
    text = " ".join(text.split())
    for form in _DATES:
        match = form.fullmatch(text)
        if match is None:
            continue
        parts = match.groupdict()
        month = _month(parts["month"])
        time = parts.get("time") or ""
        try:
            day = date(int(parts["year"]), month, int(parts["day"]))
        except ValueError:
            return None
        return day, "" if _MIDNIGHT.fullmatch(time) else _full_time(time)
    return None


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    word = text.lower()
    return next((i for i, name in enumerate(_MONTH_NAMES, 1) if word in {name, name[:3]}), 0)


def _full_time(time: str) -> str:
    """Return a time with seconds and without trailing zeros of fractions."""
    whole, _, fraction = time.partition(".")
    whole += ":00" if whole.count(":") == 1 else ""
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".")

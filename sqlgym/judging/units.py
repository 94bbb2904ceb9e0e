"""Determine the units that a number in an answer can have, from the question and the column name.

An answer with a wrong unit is incorrect: `1539 kg` is not a height, and `45%` is not a count. If
the question ("in metres", "how many years") or the column name (`height_m`) names a unit, a number
can only have this unit. If neither names a unit, the number can have any known unit except `%`. A
unit after a number in the question ("longer than 3 km") belongs to that number and is ignored.

`45%` means 45 if the question or the column names percent, as in a column `moist_pct`. `45%` means
0.45 if the gold value is a share between 0 and 1.

A number without a unit is compared by its value alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PERCENT: Final = "%"
COUNT: Final = "count"
_SPELLINGS: Final = {
    PERCENT: "% percent percentage percentages pct",
    "$": "$ us$ usd dollar dollars", "€": "€ eur euro euros", "£": "£ gbp", "pound": "pound pounds",
    "¥": "¥ yen", "₹": "₹ inr rupee rupees",
    "mm": "mm millimeters millimetres", "cm": "cm centimeters centimetres",
    "m": "m meter meters metre metres", "km": "km kilometer kilometers kilometre kilometres",
    "in": "in inch inches", "ft": "ft foot feet", "mi": "mi mile miles", "nm": "nm nmi",
    "ha": "ha hectare hectares", "acre": "acre acres",
    "mg": "mg milligram milligrams", "g": "g gram grams", "kg": "kg kilogram kilograms",
    "t": "t tonne tonnes ton tons", "lb": "lb lbs", "ml": "ml milliliters millilitres",
    "l": "l liter liters litre litres", "gal": "gal gallon gallons", "cc": "cc",
    "s": "s sec second seconds", "min": "min minute minutes", "h": "h hour hours",
    "day": "day days", "week": "week weeks", "month": "month months", "year": "year years",
    "kw": "kw kilowatt kilowatts", "mw": "mw megawatt megawatts", "hp": "hp horsepower",
    "°": "° deg degree degrees", "°c": "°c c celsius", "°f": "°f fahrenheit", "knot": "knot knots",
    COUNT: "people persons rows records items times points units",
}  # fmt: skip
_UNITS: Final = {
    **{word: frozenset({unit}) for unit, words in _SPELLINGS.items() for word in words.split()},
    **dict.fromkeys(("kmh", "kph"), frozenset({"km", "h"})),
    "mph": frozenset({"mi", "h"}),
}
_LOOSE: Final = tuple(map(frozenset, (("pound", "lb"), ("pound", "£"), ("°", "°c"), ("°", "°f"))))
"""Pairs of units that are accepted for each other."""
_TIMES: Final = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
"""Words of a question that may mean something other than a unit: "the second", "in which year"."""
_FILLERS: Final = frozenset({"total", "altogether", "old", "per", "of"})
_OTHER_NUMBERS: Final = """
    no not nor none never or and but than more less fewer minus plus times over half double twice k
    hundred thousand million billion trillion dozen approximately about almost at most least
"""
"""Words that change the value of the number before them. They are not units, even if the question
contains them.
"""
_TOKEN: Final = re.compile(
    r"(?:(?P<power>sq|square|cubic)\.? )?(?P<word>us\$|°[cf]\b|[%$€£¥₹°]|[^\W\d_²³]+)"
    r"(?:\^?(?P<degree>[23²³])(?!\d))?"
)
_DEGREES: Final = {"sq": "2", "square": "2", "cubic": "3", "²": "2", "³": "3"}
_BETWEEN: Final = re.compile(r"[\s./-]*")
_NUMBER_BEFORE: Final = re.compile(
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million))[ (-]*$"
)
_MANY: Final = re.compile(r"\b(?:how many|numbers? of) (?:(?:square|cubic) )?(\w+)")
_COUNTS: Final = re.compile(r"\s*count\s*\(", re.IGNORECASE)
_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*+(?!\s*[.(])|[%$€£]")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST: Final = 4_000
"""Number of characters of a question, and of a column name, that are searched for units."""


@dataclass(frozen=True)
class Units:
    """The units that a number in one column can have.

    Attributes:
        named: The units that the column name or the question contains.
        nouns: The words of the question; any of them can name the counted items.
        is_percent: Whether the column contains percentages.
    """

    named: frozenset[str] = frozenset()
    nouns: frozenset[str] = frozenset()
    is_percent: bool = False

    def allow(self, text: str) -> bool:
        """Return whether a number keeps its value when this text precedes or follows it.

        >>> (height,) = units_of("How high is the hut?", ("height_m",), (True,))
        >>> [height.allow(text) for text in ("", "m", "metres", "kg", "%")]
        [True, True, True, False, False]
        """
        if not text:
            return True
        units = self._read(text)
        if units is None or (PERCENT in units and PERCENT not in self.named):
            return False
        if not units:  # only words from the question
            return not self.named or COUNT in self.named
        return not self.named or units <= self.named

    def allow_share(self, text: str) -> bool:
        """Return whether this text marks a number as a percentage that denotes a share."""
        if self.is_percent or not self.named <= {COUNT, PERCENT}:
            return False
        return self._read(text) == {PERCENT}

    def _read(self, text: str) -> set[str] | None:
        """Return the units in a string, or None if it contains anything other than units and known
        words.
        """
        units: set[str] = set()
        text, end = text.lower().replace("in total", "total"), 0
        for match in _TOKEN.finditer(text):
            if not _BETWEEN.fullmatch(text, end, match.start()):
                return None
            end = match.end()
            found = _units(match)
            units |= found
            word = match["word"]
            is_noun = word in _FILLERS or _singular(word) in self.nouns
            if not found and (match["degree"] or not is_noun):
                return None
        return units if _BETWEEN.fullmatch(text, end) else None


ANY: Final = Units()
"""The units if neither the question nor the column is known."""


@functools.lru_cache(maxsize=1_024)
def units_of(
    question: str, columns: tuple[str, ...], numeric: tuple[bool, ...]
) -> tuple[Units, ...]:
    """Determine the units that the numbers in each column of a result can have.

    Args:
        question: The question in words; empty if unknown.
        columns: The names of the columns; empty if unknown.
        numeric: Which columns contain numbers. If several columns contain numbers, a unit in the
            question is ambiguous, so only units in column names are used.
    """
    question = question[:_LONGEST].lower()
    words = set(_words(question)) - set(_words(_OTHER_NUMBERS))
    asked = frozenset(_asked(question)) if sum(numeric) == 1 else frozenset()
    names = (*columns, *("" for _ in numeric))[: len(numeric)]
    found = []
    for own in (frozenset(_of_column(name[:_LONGEST])) for name in names):
        named = own | asked
        named = named.union(*(pair for pair in _LOOSE if pair & named))
        found.append(Units(named, frozenset(words), PERCENT in own))
    return tuple(found)


def _words(text: str) -> list[str]:
    return [_singular(word) for word in re.findall(r"[^\W\d_]+", text)]


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _units(match: re.Match[str]) -> frozenset[str]:
    """Return the units of one word with their powers; empty if it is not a unit."""
    power = match["degree"] or match["power"] or ""
    return frozenset(
        unit + _DEGREES.get(power, power) for unit in _UNITS.get(match["word"], frozenset())
    )


def _asked(question: str) -> Iterator[str]:
    """Yield the units that a question names, except those that belong to its own numbers."""
    counts = any(_UNITS.get(word, {COUNT}) == {COUNT} for word in _MANY.findall(question))
    named = {COUNT} if counts else set[str]()
    for match in _TOKEN.finditer(question):
        start, end = match.span()
        before = question[max(0, start - 12) : start]
        if before.endswith((" per ", "/")):
            is_named = bool(named)
        elif _NUMBER_BEFORE.search(before) or question[end : end + 1].isdigit():
            is_named = False
        else:
            is_named = match["word"] not in _TIMES and (
                not _is_short(match) or before.endswith((" in ", "("))
            )
        if is_named:
            named |= _units(match) - {COUNT}
    yield from named


def _of_column(name: str) -> Iterator[str]:
    """Yield the units that a column name contains, unless it is a computed product or share."""
    if _COUNTS.match(name):
        yield COUNT
    elif not re.search("[*/]", name):
        for identifier in _IDENTIFIER.findall(name):
            words = _HUMP.sub(" ", identifier).replace("_", " ").lower()
            named = set[str]()
            for match in _TOKEN.finditer(words):
                start, end = match.span()
                if words[:start].endswith("per "):
                    is_named = bool(named)
                elif match["word"] == "in":  # `moved_in`
                    is_named = False
                else:
                    is_named = not _is_short(match) or 0 < start < end == len(words)
                if is_named:
                    named |= _units(match) - {COUNT}
            yield from named


def _is_short(match: re.Match[str]) -> bool:
    """Return whether a word is so short that it counts as a unit only in unambiguous positions."""
    word = match["word"]
    return word in ("in", "min") or (len(word) == 1 and word.isalpha())

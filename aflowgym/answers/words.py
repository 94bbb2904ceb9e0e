"""Parse numbers in English words, and the units after a number.

`read_number_words` parses a string that consists only of number words (`two thousand five hundred`,
`three quarters`), and otherwise returns None. Digits can precede a word for a large number (`5
million`).

`5 cm` and `5 centimetres` have the same unit, and so do `5 cm^2` and `5 square centimetres`. An
answer without a unit is taken to be in the unit of the gold answer. If the gold answer has no unit,
any unit is accepted, unless the question asks for a particular unit ("how many dollars", "in
minutes") or names another unit of the same kind: `18 dollars` answers "how many dollars", but `18
kg` and `18%` do not. A word that is not a unit can follow a number only if the word occurs in the
question (`18 eggs`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

_WORDS: Final = """zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen"""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL: Final = {word: value for value, word in enumerate(_WORDS.split())} | {
    word: 10 * place for place, word in enumerate(_TENS.split(), 2)
}
_LARGE: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS: Final = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
_DIGITS: Final = re.compile(r"\d{1,3}(?:,\d{3}){1,30}|\d{1,100}(?:\.\d{1,100})?")


def read_number_words(text: str) -> Fraction | None:
    """Read a number in words. Return None for any other string.

    >>> [read_number_words(each) for each in ("one hundred and five", "one and a half", "a few")]
    [Fraction(105, 1), Fraction(3, 2), None]
    """
    words = text.lower().replace("-", " ").split()
    if words[:1] in (["minus"], ["negative"]):
        value = _number(words[1:])
        return None if value is None else -value
    return _number(words)


def _number(words: Sequence[str]) -> Fraction | None:
    """Read a whole number, a number of dozens, a fraction or a mixed number."""
    match words:
        case [*count, "dozen"]:
            dozens = Fraction(1) if count in ([], ["a"]) else _whole(count)
            return None if dozens is None else 12 * dozens
        case [*count, "and", above, part] if (rest := _part(above, part)) is not None:
            whole = _whole(count)
            return None if whole is None else whole + rest
        case [above, part] if (rest := _part(above, part)) is not None:
            return rest
        case ["half"]:
            return Fraction(1, 2)
    return _whole(words)


def _part(above: str, below: str) -> Fraction | None:
    """Read fractions such as `a third` and `three quarters`."""
    count = 1 if above == "a" else _SMALL.get(above)
    size = _PARTS.get("half" if below == "halves" else below.removesuffix("s"))
    return Fraction(count, size) if count and count < 20 and size else None


def _whole(words: Sequence[str]) -> Fraction | None:
    """Read groups below a thousand, each followed by a smaller large number than the previous one.

    `room` is an upper bound on the next word of a group.
    """
    total = group = Fraction(0)
    room, last, before = 1000, 10**15, ""
    for word in words:
        value = _SMALL.get(word)
        if value is not None and value < room and (value or not before):
            group, room = group + value, 10 if value >= 20 else 1
        elif word == "a" and not before:
            group, room = Fraction(1), 1
        elif _DIGITS.fullmatch(word) and not before:
            group, room = Fraction(word.replace(",", "")), 0
        elif word == "hundred" and 0 < group < 100 and room:
            group, room = group * 100, 100
        elif word in _LARGE and before and _LARGE[word] < last and room < 1000:
            last = _LARGE[word]
            total, group, room = total + group * last, Fraction(0), 1000
        elif word != "and" or before not in ("hundred", *_LARGE):
            return None
        before = word
    said = before in _SMALL or before in _LARGE or before == "hundred"
    return total + group if said else None


PERCENT: Final = "%"
_SPELLINGS: Final = {
    "%": "% percent pct", "$": "$ dollar dollars usd", "€": "€ euro euros eur",
    "£": "£ pound-sterling gbp", "¢": "¢ cent cents", "°": "° degree degrees deg",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "m": "m meter meters metre metres", "km": "km kilometer kilometers kilometre kilometres kms",
    "in": "inch inches", "ft": "ft foot feet", "yd": "yd yard yards", "mi": "mi mile miles",
    "mg": "mg milligram milligrams", "g": "g gram grams", "kg": "kg kilogram kilograms kgs kilos",
    "t": "tonne tonnes ton tons", "lb": "lb lbs", "pound": "pound pounds", "oz": "oz ounce ounces",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "l": "l liter liters litre litres", "gal": "gal gallon gallons",
    "s": "s sec secs second seconds", "min": "min mins minute minutes",
    "h": "h hr hrs hour hours", "d": "day days", "wk": "week weeks", "mo": "month months",
    "yr": "yr year years", "km/h": "kmh kph", "mi/h": "mph",
    "°C": "celsius centigrade", "°F": "fahrenheit", "rad": "rad radian radians",
    "unit": "unit units",
}  # fmt: skip
_UNIT: Final = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
_SIZES: Final[tuple[dict[str, str], ...]] = (
    {"mm": "1/1000", "cm": "1/100", "m": "1", "km": "1000"},
    {"in": "1", "ft": "12", "yd": "36", "mi": "63360"},
    {"mg": "1/1000", "g": "1", "kg": "1000", "t": "1000000"},
    {"oz": "1", "lb": "16"},
    {"ml": "1/1000", "l": "1"},
    {"s": "1", "min": "60", "h": "3600", "d": "86400", "wk": "604800"},
    {"$": "1", "¢": "1/100"},
)
"""Units that can be converted exactly, with their sizes."""
_DIMENSIONS: Final = tuple(
    frozenset(units.split())
    for units in (
        "mm cm m km in ft yd mi",
        "mg g kg t lb oz pound",
        "ml l gal",
        "s min h d wk mo yr",
        "$ € £ ¢ pound",
        "°C °F",
        "° rad",
    )
)
_ASKED_FOR: Final = re.compile(
    r"\bhow many ((?:[a-z]+ ){0,2}[a-z]+)|\bin (?:square |cubic )?(?!how\b|second\b)([a-z]+)"
)
_ASKS_ELSE: Final = re.compile(r"\b(?:how (?!many)|what|which|find)")
_DEGREES: Final = re.compile(r"(?:°|\bdegrees?\b) *(celsius|centigrade|fahrenheit|c\b|f\b)")
_LETTER: Final = {"c": "celsius", "f": "fahrenheit"}
_LINK_WORDS: Final = "of a an the in per each every total altogether"
_NEVER_WORDS: Final = """not no nor none never or and but than more less fewer minus plus times over
half double twice hundred thousand million billion dozen approximately about"""
LINKS: Final = frozenset(_LINK_WORDS.split())
_NEVER: Final = frozenset(_NEVER_WORDS.split())
_WORD: Final = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)?|[%$€£¢°]")
_PART: Final = re.compile(r"([A-Za-z-]+|[%$€£¢°])\s*(?:\^\s*\{?([23])\}?)?")
_POWER_WORDS: Final = {
    "2": frozenset({"square", "squared", "sq", "area", "areas", "surface"}),
    "3": frozenset({"cubic", "cubed", "volume", "volumes", "capacity"}),
}
_POWERS: Final = {"square": "2", "sq": "2", "cubic": "3", "squared": "2", "cubed": "3"}


@functools.lru_cache(maxsize=1024)
def words_of(question: str) -> frozenset[str]:
    """Return the words of a question that can follow a number in the answer, in lower case."""
    return frozenset(_WORD.findall(question.lower())) - _NEVER


@functools.lru_cache(maxsize=1024)
def units_of(words: frozenset[str]) -> frozenset[str]:
    """Return the units that some words name, with their squares and cubes.

    A single letter does not count as a unit.
    """
    named = (word for word in words if word in _UNIT and not (len(word) == 1 and word.isalpha()))
    powers = {degree for degree, spellings in _POWER_WORDS.items() if words & spellings}
    return frozenset(part for word in named for part in _UNIT[word].split("/")) | powers


@functools.lru_cache(maxsize=1024)
def asks_percent(question: str) -> bool:
    """Return whether a question asks for a percentage.

    If a question asks for a percentage, a number without a percent sign is interpreted as one.
    """
    asked = r"what percent|percentage|how many percent|(?:in|as a) percent"
    return re.search(asked, question.lower()) is not None


@functools.lru_cache(maxsize=1024)
def asked_for(question: str) -> frozenset[str]:
    """Return the units in which the question asks for a number; "unit" denotes a count.

    >>> [sorted(asked_for(f"How many {what}?")) for what in ("dollars are left", "eggs are left")]
    [['$'], ['unit']]
    """
    text = question.lower()
    words = {word for found in _ASKED_FOR.findall(text) for part in found for word in part.split()}
    units = frozenset(_UNIT[word] for word in words if word in _UNIT and len(word) > 1)
    _, asks, last = text.rpartition("how many ")
    return units or frozenset({"unit"} if asks and not _ASKS_ELSE.search(last) else ())


def read_unit(text: str, nouns: frozenset[str]) -> str | None:
    """Return the canonical unit that a string names.

    The result is empty if the string contains only known nouns, and None if it is not a unit.

    >>> read_unit("square centimetres", frozenset()), read_unit("km / h", frozenset())
    ('cm2', 'km/h')
    >>> read_unit("eggs per day", frozenset({"eggs"})), read_unit("or 6", frozenset({"eggs"}))
    ('/d', None)
    """
    parts: list[str] = []
    power = ""
    rest = re.sub(r"\bper\b|/", " / ", text.lower())
    if "°" in rest or "degree" in rest:
        rest = _DEGREES.sub(lambda named: _LETTER.get(named[1], named[1]), rest)
    for piece in re.findall(r"/|[^/]+", rest):
        if piece == "/":
            parts.append("/")
            continue
        for named in _pieces(piece):
            if named is None:
                return None
            word, degree = named
            if word in _POWERS:
                power = _POWERS[word]
                if parts and word in ("squared", "cubed"):
                    parts[-1] += power
                    power = ""
            elif word in _UNIT:
                parts.append(_UNIT[word] + (degree or power))
                power = ""
            elif word not in LINKS and word not in nouns:
                return None
    return "".join(parts) if any(part != "/" for part in parts) else ""


def _pieces(text: str) -> list[tuple[str, str] | None]:
    """Return the words of a string with their powers, or None if the text has another form."""
    pieces: list[tuple[str, str] | None] = []
    place = 0
    for match in _PART.finditer(text):
        if text[place : match.start()].strip() or match[1] in _NEVER:
            pieces.append(None)
        pieces.append((match[1], match[2] or ""))
        place = match.end()
    if text[place:].strip():
        pieces.append(None)
    return pieces


def same_unit(gold: str, answer: str, asked: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether an answer in the second unit is acceptable for a gold answer in the first.

    Args:
        gold: The canonical unit of the gold answer; empty if it has none.
        answer: The canonical unit of the answer.
        asked: Units in the question, and their powers.
        wanted: Units in which the question asks for a number.
    """
    if not answer:
        return True
    if gold:
        return gold == answer or {gold, answer} in ({"pound", "£"}, {"pound", "lb"})
    first = answer.split("/")[0].rstrip("23")
    sorts = [group for group in _DIMENSIONS if first in group]
    fits = first in {"", "unit", *wanted} or any(map(wanted.intersection, sorts))
    is_several = first not in _UNIT.values() and first.startswith(tuple(wanted))  # `$18 every day`
    if wanted and not (fits or is_several):
        return False
    for part in filter(None, answer.split("/")):
        unit = part.rstrip("23")
        power = part.removeprefix(unit)
        fits = unit in asked and (not power or power in asked)
        measures_as_asked = any(unit in group and group & asked for group in _DIMENSIONS)
        if not fits and (unit in asked or measures_as_asked):
            return False
    return True


def exchange(gold: str, answer: str, asked: frozenset[str]) -> Fraction | None:
    """Return the conversion factor from the answer's unit to the gold answer's unit.

    The result is None if the answer's unit is not allowed.

    Args:
        gold: The canonical unit of the gold.
        answer: The canonical unit of the answer.
        asked: Units in the question; answers cannot use other units in their place.

    >>> exchange("cm2", "m2", frozenset()), exchange("cm", "m", frozenset({"cm"}))
    (Fraction(10000, 1), None)
    """
    power = gold[-1:] if gold[-1:] in ("2", "3") else "1"
    one, other = gold.removesuffix(power), answer.removesuffix(power)
    if (power == "1" and answer[-1:] in ("2", "3")) or one in asked:
        return None
    sizes = next((group for group in _SIZES if one in group and other in group), None)
    if sizes is None or (power != "1" and answer[-1:] != power):
        return None
    ratio: Fraction = (Fraction(sizes[other]) / Fraction(sizes[one])) ** int(power)
    return ratio

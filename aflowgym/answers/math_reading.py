"""Read the answer to a math problem: a quantity, several of them in brackets, or a word.

A quantity is an exact value (`aflowgym.answers.exact`) with its unit, the unknown it names
(`x = 5`), and the number of decimals it was written with. Several are a list (`3, 5`, `3 and 5`), a
tuple, an interval or a set. Anything that is read is read whole: words that are no unit and do not
stand in the question make the text unreadable, so that "42 or so" is no 42.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from aflowgym.answers import exact, units
from aflowgym.answers.exact import Unreadable, Value
from aflowgym.answers.expression import MAX_LENGTH, read_expression
from aflowgym.answers.latex import plain

_SMALL_WORDS: Final = """zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen"""
_TEN_WORDS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL: Final = _SMALL_WORDS.split()
_TENS: Final = _TEN_WORDS.split()
_NUMBER_WORDS: Final = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * place for place, word in enumerate(_TENS, 2)}
    | {
        f"{ten}-{one}": 10 * place + value
        for place, ten in enumerate(_TENS, 2)
        for value, one in enumerate(_SMALL[1:10], 1)
    }
)
_NAMED: Final = re.compile(r"([A-Za-z])\s*(?:\(\s*[A-Za-z]\s*\))?\s*=\s*(?=[^=])")
_DECIMAL: Final = re.compile(r"[+-]?\d*\.(\d+)")
_MEASURED: Final = re.compile(
    r"(.*?[\d)}\].πi])\s*((?:\^\{?[23]\}?|[A-Za-z%$€£¢°/ -])+?(?:\^\s*\{?[23]\}?)?)"
)
_WORD: Final = re.compile(r"\(?([A-Za-z][A-Za-z '-]*)\)?")
_SEPARATOR: Final = re.compile(r"\s*(?:[,;]\s*(?:and|or)\s|[,;]|\s(?:and|or)\s)\s*")
_THOUSANDS: Final = re.compile(r"[^\d]*\d{1,3}(?:,\d{3})+(?:\.\d+)?[^\d,]*")
_CLOSED_BY: Final = {"(": ")]", "[": ")]", "⦃": "⦄"}


@dataclass(frozen=True)
class Quantity:
    """One number or polynomial: its value, unit, the decimals it was written with, its name."""

    value: tuple[tuple[exact.Monomial, Fraction], ...]
    unit: str = ""
    decimals: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Several:
    """A list, a tuple, an interval or a set; `brackets` is empty for a plain list."""

    brackets: str
    items: tuple[Quantity | Several | Word, ...]


@dataclass(frozen=True)
class Word:
    """An answer in words (`even`, `yes`, an option), in small letters."""

    text: str


Reading = Quantity | Several | Word


def read_math(text: str, nouns: frozenset[str] = frozenset()) -> Reading:
    """Read one answer, without anything around it.

    Args:
        text: The answer.
        nouns: The words that may follow a number beside units; in small letters.

    Raises:
        Unreadable: It is nothing that this module reads.
    """
    if len(text) > MAX_LENGTH:
        raise Unreadable("it is too long")
    if text.isascii() and text.isdigit():  # what most answers are; the patterns take far longer
        return _made(read_expression(text), "", None, "")
    return _read(plain(text).strip(), nouns, 0)


def _read(text: str, nouns: frozenset[str], depth: int) -> Reading:
    if not text or depth > 3:
        raise Unreadable("it is empty" if not text else "it is nested too deeply")
    closing = _CLOSED_BY.get(text[0])
    parts: list[str] = []
    if closing and text[-1] in closing and _is_group(text):
        parts = _split(text[1:-1])
        if len(parts) > 1 or text[0] == "⦃":
            brackets = "" if text[0] == "⦃" else text[0] + text[-1]
            items = tuple(_read(part, nouns, depth + 1) for part in parts)
            return Several(brackets, items)
    elif not _THOUSANDS.fullmatch(text) and len(parts := _split(text)) > 1:
        return Several("", tuple(_read(part, nouns, depth + 1) for part in parts))
    try:
        return _quantity(text, nouns)
    except Unreadable:
        found = _WORD.fullmatch(text)
        if found is None:
            raise
        return Word(" ".join(found[1].lower().split()))


def _is_group(text: str) -> bool:
    """Does the bracket that opens the text close at its end?"""
    level = 0
    for index, sign in enumerate(text):
        level += (sign in "([{⦃") - (sign in ")]}⦄")
        if not level:
            return index == len(text) - 1
    return False


def _split(text: str) -> list[str]:
    """The parts between separators that stand in no bracket."""
    parts, level, start, index = [], 0, 0, 0
    while index < len(text):
        level += (text[index] in "([{⦃") - (text[index] in ")]}⦄")
        found = None if level else _SEPARATOR.match(text, index)
        if found is None:
            index += 1
            continue
        parts.append(text[start:index].strip())
        start = index = found.end()
    return [*parts, text[start:].strip()]


def _quantity(text: str, nouns: frozenset[str]) -> Quantity:
    name = ""
    if named := _NAMED.match(text):
        name, text = named[1], text[named.end() :]
    prefix = ""
    if text[0] in "$€£" or text[:2] in ("-$", "-€", "-£"):
        prefix, text = text.lstrip("-")[0], text.replace(text.lstrip("-")[0], "", 1)
    lowered = text.lower()
    if lowered in _NUMBER_WORDS:
        return _made(exact.number(_NUMBER_WORDS[lowered]), prefix, None, name)
    measured = _MEASURED.fullmatch(text)
    if measured and _ends_apart(measured[1], measured[2], text):
        unit = units.read_unit(measured[2], nouns)
        if unit is not None:
            text = measured[1].strip()
            prefix = unit if unit == prefix else prefix + unit
    if "∞" in text and text.strip().lstrip("+-") != "∞":
        raise Unreadable("it computes with infinity")
    decimal = _DECIMAL.fullmatch(text)
    return _made(read_expression(text), prefix, len(decimal[1]) if decimal else None, name)


def _ends_apart(value: str, rest: str, text: str) -> bool:
    """Is the rest a unit, not a factor? A single letter is one only with a space before it."""
    return len(rest.strip()) > 1 or not rest.strip().isalpha() or text[len(value)] == " "


def _made(value: Value, unit: str, decimals: int | None, name: str) -> Quantity:
    return Quantity(tuple(sorted(value.items())), unit, decimals, name)

"""Parse the answer to a math problem: a quantity, several quantities, or a word.

A quantity has an exact value (`aflowgym.answers.math.exact`), a unit, an unknown to which it is
assigned (`x = 5`), its number of decimal places, and its remaining computations. Several quantities
form a list (`3, 5`, `3 and 5`, `±2`), a tuple, an interval (also `2 < x < 5`), a union of intervals
or a set. The parser must be able to interpret the entire text. Text with a word that is neither a
unit nor contained in the question is unreadable, so "42 or so" is not accepted as 42.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from aflowgym.answers.answer import plain
from aflowgym.answers.math import exact
from aflowgym.answers.math.exact import Unreadable, Value
from aflowgym.answers.math.expression import MAX_LENGTH, PLAIN, Form, read_expression
from aflowgym.answers.words import exchange, read_number_words, read_unit

_NAMED: Final = re.compile(r"([A-Za-z])\s*(?:\(\s*[A-Za-z]\s*\))?\s*=\s*(?=[^=])")
_DECIMAL: Final = re.compile(r"[+-]?\d*\.(\d+)")
_MEASURED: Final = re.compile(
    r"(.*?[\d)}\].πi])\s*((?:\^\{?[23]\}?|[A-Za-z%$€£¢°/ -])+?(?:\^\s*\{?[23]\}?)?)"
)
_WORD: Final = re.compile(r"\(?([A-Za-z][A-Za-z '-]*)\)?")
_SEPARATOR: Final = re.compile(r"\s*(?:[,;]\s*(?:and|or)\s|[,;]|\s(?:and|or)\s)\s*")
_THOUSANDS: Final = re.compile(r"[^\d]*\d{1,3}(?:,\d{3})+(?:\.\d+)?[^\d,]*")
_CLOSED_BY: Final = {"(": ")]", "[": ")]", "⦃": "⦄", "{": "}"}
_MEMBER: Final = re.compile(r"[A-Za-z]\s*∈\s*|\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])+\s*\)\s*=\s*")
_ORDER: Final = re.compile(r"\s*([<>≤≥])\s*")
_UNKNOWN: Final = re.compile(r"[A-Za-z](?:\([A-Za-z]\))?")
_TURNED: Final = str.maketrans("<>≤≥", "><≥≤")
_DELIMITER: Final = re.compile(r"(?<!\\)\$(?! ?\d)")
_GOES_ON: Final = re.compile(r"([+-]?\d*\.\d{2,})(?:…|\.\.\.)")
_PIECES: Final = re.compile(r"(?<=[A-Za-z])(?:, (?:and )?| and | )(?=\d)")
_PIECE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
_MOST_WORDS: Final = 20
_NOTHING: Final = frozenset({"∅", "⦃⦄", "⦃ ⦄", "empty set", "the empty set", "no solution"})


@dataclass(frozen=True)
class Quantity:
    """A number or polynomial.

    Attributes:
        value: The terms of the value.
        unit: The canonical unit.
        decimals: Number of decimal places in the answer; None if the value is not a decimal.
        name: The unknown to which the value is assigned.
        form: The computations that remain to be done. Comparisons ignore this field.
        goes_on: Whether dots follow the last decimal.
    """

    value: tuple[tuple[exact.Monomial, Fraction], ...]
    unit: str = ""
    decimals: int | None = None
    name: str = ""
    form: Form = field(default=PLAIN, compare=False)
    goes_on: bool = False


@dataclass(frozen=True)
class Several:
    """A list, a tuple, an interval or a set. `brackets` is empty for a plain list."""

    brackets: str
    items: tuple[Quantity | Several | Word, ...]


@dataclass(frozen=True)
class Word:
    """An answer in words (`even`, `yes`, or an option of the question), in lower case."""

    text: str


Reading = Quantity | Several | Word


def read_math(text: str, nouns: frozenset[str] = frozenset()) -> Reading:
    """Parse one answer without surrounding text.

    Args:
        text: The answer.
        nouns: Lower-case words that can follow a number, in addition to units.

    Raises:
        Unreadable: If the answer has no supported form.
    """
    if len(text) > MAX_LENGTH:
        raise Unreadable("it is too long")
    # Most answers are plain numbers, and the patterns take far longer.
    if text.isascii() and text.isdigit():
        return _made(*read_expression(text), "", None, "")
    if text.count("$") > 1:  # formulas between words, `$x$ or $y$`
        text = _DELIMITER.sub("", text)
    return _read(plain(text).strip(), nouns, 0)


def _read(text: str, nouns: frozenset[str], depth: int) -> Reading:
    if not text or depth > 3:
        raise Unreadable("it is empty" if not text else "it is nested too deeply")
    if text.lower() in _NOTHING:
        return Several("", ())
    if member := _MEMBER.match(text):
        text = text[member.end() :]
    if (number := read_number_words(text)) is not None:
        return _made(exact.number(number), PLAIN, "", None, "")
    whole = _compound(text) or _several(text, nouns, depth)
    if whole is not None:
        return whole
    try:
        return _quantity(text, nouns)
    except Unreadable:
        word = _WORD.fullmatch(text)
        if word is None:
            raise
        return Word(" ".join(word[1].lower().split()))


def _several(text: str, nouns: frozenset[str], depth: int) -> Several | None:
    """Read several quantities. Return None if the text has a different form."""
    closing = _CLOSED_BY.get(text[:1])
    if closing and text[-1] in closing and _is_group(text):
        parts = _split(text[1:-1])
        if len(parts) > 1 or text[0] == "⦃":
            brackets = "" if text[0] in "⦃{" else text[0] + text[-1]
            return Several(brackets, tuple(_read(part, nouns, depth + 1) for part in parts))
    elif not _THOUSANDS.fullmatch(text) and len(parts := _split(text)) > 1:
        if _ORDER.search(text) and " or " not in text:
            raise Unreadable("it joins two conditions")
        return Several("", tuple(_read(part, nouns, depth + 1) for part in parts))
    if "∪" in text:
        parts = [part.strip() for part in text.split("∪")]
        return Several("", tuple(_read(part, nouns, depth + 1) for part in parts))
    if text.count("±") == 1:
        signs = (text.replace("±", sign) for sign in "+-")
        return Several("", tuple(_read(each, nouns, depth + 1) for each in signs))
    return _interval(_ORDER.split(text), nouns)


def _interval(parts: list[str], nouns: frozenset[str]) -> Several | None:
    """Read `2 < x ≤ 5`, `x > 3` and `3 < x` as intervals."""
    if len(parts) == 3 and not _UNKNOWN.fullmatch(parts[0]):
        parts = [parts[2], parts[1].translate(_TURNED), parts[0]]
    if len(parts) == 3:
        smaller = parts[1] in "<≤"
        ends = ["-∞", "<", *parts] if smaller else [parts[2], parts[1].translate(_TURNED)]
        parts = ends if smaller else [*ends, parts[0], "<", "∞"]
    if len(parts) != 5:
        return None
    low, first, unknown, second, high = parts
    if first in ">≥" and second in ">≥":
        low, first, second, high = high, second.translate(_TURNED), first.translate(_TURNED), low
    if not _UNKNOWN.fullmatch(unknown) or first not in "<≤" or second not in "<≤":
        raise Unreadable("it compares a value other than an unknown")
    brackets = ("[" if first == "≤" else "(") + ("]" if second == "≤" else ")")
    return Several(brackets, (_quantity(low, nouns), _quantity(high, nouns)))


def _compound(text: str) -> Quantity | None:
    """Read a quantity such as `2 hours and 30 minutes` in its first unit."""
    pieces = [_PIECE.fullmatch(each) for each in _PIECES.split(text)]
    if not 2 <= len(pieces) <= 3:
        return None
    total, first, last = Fraction(0), "", Fraction(0)
    for piece in pieces:
        unit = read_unit(piece[2], frozenset()) if piece else None
        if piece is None or not unit:
            return None
        size = exchange(first or unit, unit, frozenset())
        if size is None or (last and size >= last):
            return None
        first, last = first or unit, size
        total += Fraction(piece[1]) * size
    return _made(exact.number(total), PLAIN, first, None, "")


def _is_group(text: str) -> bool:
    """Return whether the bracket that opens the text closes at its end."""
    level = 0
    for index, sign in enumerate(text):
        level += (sign in "([{⦃") - (sign in ")]}⦄")
        if not level:
            return index == len(text) - 1
    return False


def _split(text: str) -> list[str]:
    """Split a string at the separators that are outside brackets."""
    parts, level, start, index = [], 0, 0, 0
    while index < len(text):
        level += (text[index] in "([{⦃") - (text[index] in ")]}⦄")
        separator = None if level else _SEPARATOR.match(text, index)
        if separator is None:
            index += 1
            continue
        parts.append(text[start:index].strip())
        start = index = separator.end()
    return [*parts, text[start:].strip()]


def _quantity(text: str, nouns: frozenset[str]) -> Quantity:
    name = ""
    if named := _NAMED.match(text):
        name, text = named[1], text[named.end() :]
    if not text:
        raise Unreadable("it is empty")
    prefix = ""
    if text[0] in "$€£" or text[:2] in ("-$", "-€", "-£"):
        prefix, text = text.lstrip("-")[0], text.replace(text.lstrip("-")[0], "", 1)
    if (worded := _number_in_words(text, nouns)) is not None:
        value, unit = worded
        return _made(
            exact.number(value), PLAIN, unit if unit == prefix else prefix + unit, None, name
        )
    measured = _MEASURED.fullmatch(text)
    if measured and _ends_apart(measured[1], measured[2], text):
        unit_ = read_unit(measured[2], nouns)
        if unit_ is not None:
            text = measured[1].strip()
            prefix = unit_ if unit_ == prefix else prefix + unit_
    if "∞" in text and text.strip().lstrip("+-") != "∞":
        raise Unreadable("it computes with infinity")
    if on := _GOES_ON.fullmatch(text):
        text = on[1]
    decimal = _DECIMAL.fullmatch(text)
    places = len(decimal[1]) if decimal else None
    return replace(_made(*read_expression(text), prefix, places, name), goes_on=on is not None)


def _number_in_words(text: str, nouns: frozenset[str]) -> tuple[Fraction, str] | None:
    """Return a number in words, and the unit that follows it."""
    words = text.split()[:_MOST_WORDS]
    for end in range(len(words), 0, -1):
        if (value := read_number_words(" ".join(words[:end]))) is not None:
            unit = read_unit(" ".join(words[end:]), nouns)
            return (value, unit) if unit is not None else None
    return None


def _ends_apart(value: str, rest: str, text: str) -> bool:
    """Return whether the remaining text is a unit rather than a factor.

    A single letter is a unit only after a space.
    """
    return len(rest.strip()) > 1 or not rest.strip().isalpha() or text[len(value)] == " "


def _made(value: Value, form: Form, unit: str, decimals: int | None, name: str) -> Quantity:
    return Quantity(tuple(sorted(value.items())), unit, decimals, name, form)

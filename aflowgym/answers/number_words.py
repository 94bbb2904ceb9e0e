"""Numbers in English words: `twenty-one`, `two thousand five hundred`, `three quarters`, `a dozen`.

A text is read whole or not at all: with any other word in it, it is no number. Digits may precede
a large number (`5 million`, `1.5 billion`) and nothing else.
"""

from __future__ import annotations

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
    """Read a number in words; None if the text is anything else.

    >>> [read_number_words(each) for each in ("one hundred and five", "one and a half", "a few")]
    [Fraction(105, 1), Fraction(3, 2), None]
    """
    words = text.lower().replace("-", " ").split()
    if words[:1] in (["minus"], ["negative"]):
        value = _number(words[1:])
        return None if value is None else -value
    return _number(words)


def _number(words: Sequence[str]) -> Fraction | None:
    """A whole number, a number of dozens, a fraction, or a whole number and a fraction."""
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
    """`a third`, `three quarters`."""
    count = 1 if above == "a" else _SMALL.get(above)
    size = _PARTS.get("half" if below == "halves" else below.removesuffix("s"))
    return Fraction(count, size) if count and count < 20 and size else None


def _whole(words: Sequence[str]) -> Fraction | None:
    """Groups below a thousand, each before a smaller large number than the one before.

    `room` is what the next word of a group must be less than.
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

"""Numbers in English words: `twenty-one`, `two thousand five hundred`, `three quarters`, `a dozen`.

A text is read whole or not at all: any other word in it makes it none. Digits may stand before a
large number (`5 million`, `1.5 billion`) and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

_SMALL_WORDS: Final = """zero one two three four five six seven eight nine ten eleven twelve
thirteen fourteen fifteen sixteen seventeen eighteen nineteen"""
_TEN_WORDS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL: Final = {word: value for value, word in enumerate(_SMALL_WORDS.split())}
_TENS: Final = {word: 10 * place for place, word in enumerate(_TEN_WORDS.split(), 2)}
_LARGE: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS: Final = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
_DIGITS: Final = re.compile(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?")
NUMBER_WORDS: Final = frozenset(
    {*_SMALL, *_TENS, *_LARGE, *_PARTS, "hundred", "dozen", "halves"}
    | {f"{part}s" for part in _PARTS}
)
"""The words that a number may be made of, without `a`, `and`, `minus` and `negative`."""


def read_number_words(text: str) -> Fraction | None:
    """The number that a text says in words; None if it says anything else.

    >>> [read_number_words(each) for each in ("one hundred and five", "one and a half", "a few")]
    [Fraction(105, 1), Fraction(3, 2), None]
    """
    words = text.lower().replace("-", " ").split()
    if not words or not NUMBER_WORDS.intersection(words):
        return None
    if words[0] in ("minus", "negative"):
        value = _number(words[1:])
        return -value if value is not None else None
    return _number(words)


def _number(words: list[str]) -> Fraction | None:
    """A whole number, a fraction, or a whole number and a fraction."""
    if words and words[-1] == "dozen":
        return _times(words[:-1], 12)
    part = _part(words)
    if part is not None:
        return part
    for size in (1, 2):  # words of the fraction
        if words[-size - 1 : -size] == ["and"] and (rest := _part(words[-size:])) is not None:
            whole = _whole(words[: -size - 1])
            return whole + rest if whole is not None else None
    return _whole(words)


def _times(words: list[str], factor: int) -> Fraction | None:
    if words == ["half", "a"]:
        return Fraction(factor, 2)
    count = Fraction(1) if words in ([], ["a"]) else _whole(words)
    return count * factor if count is not None else None


def _part(words: list[str]) -> Fraction | None:
    """`half`, `a third`, `three quarters`, `one-half`."""
    if not words:
        return None
    last = "half" if words[-1] == "halves" else words[-1].removesuffix("s")
    count = _SMALL.get(words[0], 1 if words[0] == "a" else None) if len(words) == 2 else None
    if words == ["half"]:
        count = 1
    return Fraction(count, _PARTS[last]) if count and last in _PARTS else None


def _whole(words: Sequence[str]) -> Fraction | None:
    """Groups of hundreds, tens and ones before large numbers that become smaller."""
    total, group, last = Fraction(0), Fraction(0), 10**15
    open_, before = False, ""
    for word in words:
        if word in _LARGE:
            if not open_ or _LARGE[word] >= last:
                return None
            last = _LARGE[word]
            total, group, open_ = total + group * last, Fraction(0), False
        elif word == "and":
            if before not in ("hundred", *_LARGE):
                return None
        else:
            added = _added(word, group, before, open_)
            if added is None:
                return None
            group, open_ = added, True
        before = word
    return total + group if words and before != "and" else None


def _added(word: str, group: Fraction, before: str, open_: bool) -> Fraction | None:
    """A group below a thousand with one more word; None if it does not fit there."""
    if word == "hundred":
        counted = open_ and 0 < group < 100 and (before == "a" or before in {**_SMALL, **_TENS})
        return group * 100 if counted else None
    if word == "a":
        return Fraction(1) if not open_ and not before else None
    if _DIGITS.fullmatch(word):
        return Fraction(word.replace(",", "")) if not before else None
    after = not open_ or before in ("and", "hundred")
    if word in _TENS:
        return group + _TENS[word] if after else None
    if word in _SMALL and (after or (before in _TENS and 0 < _SMALL[word] < 10)):
        return group + _SMALL[word]
    return None

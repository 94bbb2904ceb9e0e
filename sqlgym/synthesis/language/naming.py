"""The parts of a name of a table or column, and whether they can be read.

A name is cut at underscores, blanks and changes of case, and abbreviations are written out. A part
that no English word could be (`x7`, `zzqp`) makes the whole name unreadable: it is then quoted as
it stands, since a question may only speak of what an agent can find in the database.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlgym.synthesis.language import lexicon
from sqlgym.synthesis.language.lexicon import word_set

_PARTS = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*|[A-Z]|\d+")
_VOWEL = re.compile(r"[aeiouy]")
_CLUSTER = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{5}|^[bcdfghjklmnpqrtvwxz]{3}(?<!chr)(?<!thr)(?<!phr)(?<!sch)(?<!shr)"
)
_STARTS = word_set(
    """
    bl br ch cl cr dr dw fl fr gh gl gn gr kn kr ph pl pr ps rh sc sh sk sl sm sn sp sq st sv
    sw th tr ts tw wh wr
    """
)
_ENDS = word_set(
    """
    ch sh th ng nk nd nt st ct ft lt pt xt rd rt rk rm rn rl rp rs rb rf rc rg ld lk lm lp lf
    ls lb ll ss ff zz tt dd gg nn rr ck ks ps ts ns ms ds gs bs cs ws mp mn mb sk sp sm gn gh
    ph wn wl wk wd ht bt ys ms vs mt
    """
)
"""Pairs of consonants with which English words start and end; others are of abbreviations."""


@lru_cache(maxsize=8192)
def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as written, without what separates them.

    >>> parts_of("Song_release_year"), parts_of("trackLengthKM"), parts_of("PetIDs")
    (('Song', 'release', 'year'), ('track', 'Length', 'KM'), ('Pet', 'IDs'))
    """
    parts: list[str] = []
    for word in re.split(r"[\W_]+", name):
        known = word.lower() in lexicon.ABBREVIATIONS
        parts += [word] if known else _PARTS.findall(word)
    return tuple(parts)


@lru_cache(maxsize=8192)
def words_of(name: str) -> tuple[str, ...]:
    """The parts of a name in lower case, abbreviations written out.

    >>> words_of("emp_hire_dt"), words_of("no_of_cars"), words_of("TV_Channel")
    (('employee', 'hire', 'date'), ('number', 'of', 'cars'), ('TV', 'channel'))
    """
    parts = parts_of(name)
    mixed = not name.isupper()
    words: list[str] = []
    for place, part in enumerate(parts):
        lower = part.lower()
        if lower == "no" and (place + 1 < len(parts) or place > 0):
            words.append("number")
        elif lower in lexicon.ABBREVIATIONS:
            words += lexicon.ABBREVIATIONS[lower].split(" ")
        elif (mixed and part.isupper() and 1 < len(part) <= 4 and len(parts) > 1) or (
            part.isupper() and 1 < len(part) <= 4 and not _VOWEL.search(lower[:2])
        ):
            words.append(part)
        else:
            words.append(lower)
    return _without_repeats(words)


@lru_cache(maxsize=8192)
def is_readable(name: str) -> bool:
    """Whether each part of a name is a word, or stands for one.

    >>> [is_readable(name) for name in ("song_name", "fldX", "x7", "zzqp", "größe", "MPG")]
    [True, False, False, False, False, True]
    """
    parts = parts_of(name)
    if not parts or not name.isascii() or len(parts) > 6:
        return False
    last = parts[-1].lower()
    if any(f"{last} {word}" in lexicon.SHORT_UNITS for word in words_of(name)[:-1]):
        parts = parts[:-1]
    return all(_is_word(part) for part in parts)


def _is_word(part: str) -> bool:
    lower = part.lower()
    if lower in lexicon.ABBREVIATIONS or lower in lexicon.UNITS or lower in lexicon.LINK_WORDS:
        return True
    if lower in ("no", "m", "s", "min", "h", "km2", "m2", "day", "sex", "as", "per", "up"):
        return True
    if part.isupper() and part.isalpha() and 2 <= len(part) <= 4:
        return True  # an acronym, which is said as it is
    if (lower in lexicon.CRYPTIC and len(lower) < 4) or not lower.isalpha():
        return False
    if len(lower) < 3 or not _VOWEL.search(lower) or _CLUSTER.search(lower):
        return False
    starts, ends = not _VOWEL.search(lower[:2]), not _VOWEL.search(lower[-2:])
    return not (starts and lower[:2] not in _STARTS) and not (ends and lower[-2:] not in _ENDS)


def _without_repeats(words: list[str]) -> tuple[str, ...]:
    """`phone_number` is "phone number number" word by word."""
    kept: list[str] = []
    for word in words:
        if not kept or kept[-1] != word:
            kept.append(word)
    for double in (["number", "of", "number"], ["name", "name"], ["address", "e-mail", "address"]):
        kept = _once(kept, double)
    return tuple(kept)


def _once(words: list[str], double: list[str]) -> list[str]:
    """Words with the first word only of each such sequence, from the last one on."""
    size, place = len(double), len(words)
    kept: list[str] = []  # backwards, so that nothing is moved
    while place:
        place -= 1
        kept.append(words[place])
        if kept[-1 : -size - 1 : -1] == double:
            del kept[-size:-1]
    return kept[::-1]

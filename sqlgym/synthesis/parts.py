"""The parts of a name as words, and whether they are any.

    emp_hire_dt     employee, hire, date
    no_of_cars      number, of, cars
    KO_TM           KO is no word that anybody knows: hardly asked about
    x7, zzqp        no words at all: quoted as they stand

A name is cut at underscores, blanks and changes of case, and what is shortened is written out.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlgym.synthesis import lexicon, spelling
from sqlgym.synthesis.lexicon import word_set

_PARTS = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*|[A-Z]|\d+")
_E_MAIL = re.compile(r"(?<![A-Za-z])[Ee][-_ ]?[Mm]ail(?![a-z])")
_VOWEL = re.compile(r"[aeiouy]")
_CLUSTER = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{5}|^[bcdfghjklmnpqrtvwxz]{3}(?<!chr)(?<!thr)(?<!phr)"
    r"|^s(?!c[hrl]|hr|p[hlr]|tr)[bcdfghjklmnpqrstvwxz]{2}"
)
_STARTS = word_set("""
    bl br ch cl cr dr dw fl fr gh gl gn gr kn kr ph pl pr ps rh sc sh sk sl sm sn sp sq st sv
    sw th tr ts tw wh wr
""")
_ENDS = word_set("""
    ch sh th ng nk nd nt st ct ft lt pt xt rd rt rk rm rn rl rp rs rb rf rc rg ld lk lm lp lf
    ls lb ll ss ff zz tt dd gg nn rr ck ks ps ts ns ms ds gs bs cs ws mp mn mb sk sp sm gn gh
    ph wn wl wk wd ht bt ys ms vs mt gm
""")
"""Pairs of consonants with which English words start and end; others are of abbreviations."""


@lru_cache(maxsize=8192)
def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as written, without what separates them.

    >>> parts_of("Song_release_year"), parts_of("trackLengthKM"), parts_of("PetIDs")
    (('Song', 'release', 'year'), ('track', 'Length', 'KM'), ('Pet', 'IDs'))
    """
    parts: list[str] = []
    for word in re.split(r"[\W_]+", _E_MAIL.sub("email", name)):
        is_abbreviation = word.lower() in lexicon.ABBREVIATIONS and word[1:2] + word[-1:] != "ID"
        parts += [word] if is_abbreviation else _PARTS.findall(word)
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
        if lower == "no" and [p.lower() for p in parts[place + 1 : place + 2]] == ["show"]:
            words.append("no")
        elif lower == "no" and (place + 1 < len(parts) or place > 0):
            words.append("number")
        elif lower == "ref" and 0 < place == len(parts) - 1:
            words.append("reference")
        elif lower in lexicon.ABBREVIATIONS:
            words += lexicon.ABBREVIATIONS[lower].split(" ")
        elif not (mixed and part.isupper()) and (written := spelling.written_out(lower)):
            words.append(written)
        elif (mixed and part.isupper() and 1 < len(part) <= 4 and len(parts) > 1) or (
            part.isupper()
            and 1 < len(part) <= 4
            and not _VOWEL.search(lower[:2])
            and not spelling.is_usual(lower)
        ):
            words.append(part)
        else:
            words.append(lower)
    return _without_repeats(words)


@lru_cache(maxsize=8192)
def is_readable(name: str) -> bool:
    """Whether each part of a name is a word, or stands for one.

    >>> [is_readable(name) for name in ("song_name", "fldX", "x7", "zzqp", "größte", "MPG")]
    [True, False, False, False, False, True]
    """
    parts = parts_of(name)
    is_known = name.isascii() or all(part.lower() in lexicon.GERMAN for part in parts)
    if not parts or not is_known or len(parts) > 6:
        return False
    last = parts[-1].lower()
    if any(f"{last} {word}" in lexicon.SHORT_UNITS for word in words_of(name)[:-1]):
        parts = parts[:-1]
    words = [part for part in parts if not part[0].isdigit()]
    if len(words) < len(parts) and not _are_said(parts):
        return False
    return all(_is_word(part) for part in words)


def _are_said(parts: tuple[str, ...]) -> bool:
    """Whether the numbers of a name can be said: a year, or what stands before or behind words.

    `currency_2024` and `18_49_rating`, but not `fld_03`, `line_2` or `q3_4`.
    """
    real = [part for part in parts if len(part) > 3 and part.isalpha() and _is_word(part)]
    if not real or any(part.lower() in lexicon.CRYPTIC for part in parts if part.isalpha()):
        return False
    last = parts[-1]
    is_year = len(last) == 4 and last[:2] in ("19", "20") and last.isdigit()
    return is_year or last.isalpha() or parts[-2].lower() in lexicon.PREPOSITIONS


def _is_word(part: str) -> bool:
    lower = part.lower()
    if lower in lexicon.ABBREVIATIONS or lower in lexicon.UNITS or lower in lexicon.LINK_WORDS:
        return True
    if spelling.written_out(lower):
        return True
    if lower in ("ad", "no", "m", "s", "min", "h", "km2", "m2", "day", "sex", "as", "per", "up"):
        return True
    if part.isupper() and part.isalpha() and 2 <= len(part) <= 4:
        return True  # an acronym, which is said as it is
    if (lower in lexicon.CRYPTIC and len(lower) < 4) or not lower.isalpha():
        return False
    if len(lower) < 3 or not _VOWEL.search(lower) or _CLUSTER.search(lower):
        return False
    starts, ends = not _VOWEL.search(lower[:2]), not _VOWEL.search(lower[-2:])
    return not (starts and lower[:2] not in _STARTS) and not (ends and lower[-2:] not in _ENDS)


@lru_cache(maxsize=8192)
def is_plain(name: str) -> bool:
    """Whether each part of a name is a usual word, or surely stands for one.

    >>> [is_plain(name) for name in ("home_club", "KO_TM", "SURF", "surfaceCap", "homeURL")]
    [True, False, False, False, True]
    """
    return is_readable(name) and all(
        _is_plain_part(part, place, parts_of(name)) for place, part in enumerate(parts_of(name))
    )


def _is_plain_part(part: str, place: int, parts: tuple[str, ...]) -> bool:
    lower = part.lower()
    if (lower in _UNSURE and place + 1 == len(parts)) or lower in _COUNTING:
        return False
    if lower in lexicon.UNITS and place:
        return True
    if lower.isdigit():
        return place > 0 and len(lower) == 4
    if lower in lexicon.ABBREVIATIONS or (lower == "ref" and place + 1 == len(parts)):
        return True
    if lower in lexicon.LINK_WORDS | lexicon.PREPOSITIONS | _PARTICLES or spelling.is_usual(lower):
        return True
    if spelling.written_out(lower):
        return True
    if len(lower) < 3:
        return place > 0 and any(f"{lower} {word.lower()}" in lexicon.SHORT_UNITS for word in parts)
    return len(lower) > 4 and _is_word(lower)


_PARTICLES = frozenset(["up", "out", "off", "no", "we", "it", "he", "my", "do", "go", "me", "if"])
_COUNTING = word_set("zero one two three four five")
_UNSURE = frozenset(["hr"])
"""Abbreviations that are of two things at the end of a name."""


def _without_repeats(words: list[str]) -> tuple[str, ...]:
    """`phone_number` is "phone number number" word by word."""
    unique: list[str] = []
    for word in words:
        if not unique or unique[-1] != word:
            unique.append(word)
    for double in (["number", "of", "number"], ["name", "name"], ["address", "e-mail", "address"]):
        unique = _once(unique, double)
    return tuple(unique)


def _once(words: list[str], double: list[str]) -> list[str]:
    """Words with the first word only of each such sequence, from the last one on."""
    size, place = len(double), len(words)
    backwards: list[str] = []  # backwards, so that nothing is moved
    while place:
        place -= 1
        backwards.append(words[place])
        if backwards[-1 : -size - 1 : -1] == double:
            del backwards[-size:-1]
    return backwards[::-1]

"""How a column of yes and no is said, where its name tells the grammar.

    is_active     that are active        has_crane     that have a crane
    in_service    that are in service    is_matinee    that are matinees
    has_expired   that have expired      can_fly       that can fly

Of `is_wheelchair` or `does_ship` nobody can tell from the name how to say it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from sqlgym.synthesis import english, lexicon
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.parts import is_plain, words_of


class Flag(NamedTuple):
    """The kind of form that says a flag, and its text for yes and for no."""

    kind: str
    yes: str
    no: str


_ENDINGS = ("ed", "able", "ible", "ive", "ous", "ful", "less")
_NOUNS = word_set("""
    matinee holiday weekend duplicate draft gift sample premiere member leader prototype
    favourite favorite bestseller sequel remake subsidiary capital island headquarters
    novelty rental donation refund deposit reprint classic hit bonus rehearsal
""")
"""Nouns that say what something is: "that are matinees"."""
_UNCOUNTED = word_set("""
    fuel parking wifi internet insurance water electricity heating power gas access experience
    training catering lighting signage tenure citizenship air-conditioning wi-fi storage breakfast
    staff furniture security childcare shade shelter cover broadband accommodation permission
    consent debt credit pain fever asthma diabetes cargo luggage
""")
"""What something has without an article."""
_STATES = word_set("""
    service stock use hold sale display loan duty order print production storage transit office
    operation progress season time budget track schedule leave probation
""")
"""What something is in or on: "in service", "on hold"."""


def is_state(words: tuple[str, ...]) -> bool:
    """Whether a name is a preposition with a state: `in_service`, `on_hold`."""
    return len(words) == 2 and words[0] in ("in", "on", "under", "off") and words[1] in _STATES


def is_adjective(word: str) -> bool:
    """Whether a word says what something is like, as far as its letters tell.

    >>> [is_adjective(word) for word in ("renewable", "paid", "crane", "active")]
    [True, True, False, True]
    """
    return word in lexicon.ADJECTIVES or word.endswith(_ENDINGS) or english.is_participle(word)


@lru_cache(maxsize=4096)
def flag_of(name: str) -> Flag | None:
    """How a flag of this name is said; None where the name does not tell.

    >>> flag_of("has_crane").no, flag_of("is_matinee").yes, flag_of("is_wheelchair")
    ('no crane', 'matinees', None)
    """
    words = [word for word in words_of(name) if word not in ("flag", "indicator")]
    if not words or not is_plain(name):
        return None
    if is_state(tuple(words)):
        return _that(" ".join(words))
    start, *rest = words if len(words) > 1 else ("", *words)
    if start in ("has", "have", "had"):
        return _owned(rest)
    if start == "can":
        can = " ".join(rest)
        return Flag("can", f"can {can}", f"cannot {can}")
    if start not in ("is", "was", "are", ""):
        start, rest = "", words
    return _being(start, rest)


def _being(start: str, rest: list[str]) -> Flag | None:
    said = "-".join(rest)
    if said in lexicon.ADJECTIVES or (len(rest) == 1 and is_adjective(said)):
        return _that(said)
    if is_state(tuple(rest)):
        return _that(" ".join(rest))
    if len(rest) == 2 and rest[0].endswith("ly") and english.is_participle(rest[1]):
        return _that(" ".join(rest))
    last = rest[-1]
    if len(rest) < 3 and (last in _NOUNS or (last in lexicon.PERSONS and start)):
        return _that(english.plural(" ".join(rest)))
    return None


def _that(text: str) -> Flag:
    return Flag("that", text, f"not {text}")


def _owned(rest: list[str]) -> Flag | None:
    things = " ".join(rest)
    if english.is_participle(rest[0]):
        return Flag("owns", things, f"not {things}") if len(rest) == 1 else None
    last = rest[-1]
    if last in lexicon.LINK_WORDS | lexicon.PREPOSITIONS or is_adjective(last):
        return None
    is_bare = (
        english.is_plural(last)
        or last in _UNCOUNTED | english.MASS
        or "-".join(rest) in _UNCOUNTED
        or (last.endswith("ing") and last not in lexicon.COUNTABLE_ING)
        or things.isupper()
    )
    return Flag("owns", things if is_bare else english.a(things), f"no {things}")

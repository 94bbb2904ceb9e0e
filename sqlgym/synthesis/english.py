"""English inflection by rule: plurals and singulars, articles, possessives, lists and dates.

The words are names of tables and columns. Most are regular nouns, many are already plural, and some
are uncountable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from sqlgym.synthesis.lexicon import word_set

_IRREGULAR_TEXT = """
    person people | man men | woman women | child children | mouse mice | foot feet | goose geese
    tooth teeth | ox oxen | wife wives | knife knives | life lives | leaf leaves | shelf shelves
    half halves | thief thieves | wolf wolves | loaf loaves | calf calves | analysis analyses
    diagnosis diagnoses | basis bases | crisis crises | hypothesis hypotheses | thesis theses
    axis axes | synthesis syntheses | criterion criteria | phenomenon phenomena | medium media
    stadium stadiums | matrix matrices | index indexes | vertex vertices | appendix appendices
    curriculum curricula | alumnus alumni | nucleus nuclei | fungus fungi | genus genera
    bus buses | gas gases | lens lenses | bias biases | alias aliases | canvas canvases
    atlas atlases | quiz quizzes | movie movies | cookie cookies | tie ties | pie pies | lie lies
    calorie calories | zombie zombies | selfie selfies | cache caches | niche niches
    headache headaches | hero heroes | potato potatoes | tomato tomatoes | echo echoes
    veto vetoes | torpedo torpedoes | shoe shoes | toe toes | phase phases | premise premises
    mother-in-law mothers-in-law | passer-by passers-by | datum data | bacterium bacteria
    stimulus stimuli | radius radii | plus pluses | iris irises | virus viruses | menu menus
    axe axes | database databases | purchase purchases | release releases | cafe cafes
    volcano volcanoes | mosquito mosquitoes | tornado tornadoes | buffalo buffaloes
    avalanche avalanches | mustache mustaches | ache aches | oasis oases | glass glasses
"""
_WORDS = _IRREGULAR_TEXT.replace("|", " ").split()
_MANY = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
_ONE = {many: one for one, many in _MANY.items() if one not in ("axe", "datum")}
INVARIABLE = word_set("""
    series species aircraft spacecraft sheep fish deer salmon trout headquarters means
""")
"""Countable nouns that are the same in singular and plural."""
MASS = word_set("""
    crew data staff history information info personnel equipment inventory news weather stock
    music traffic research software hardware furniture luggage baggage feedback money cash
    sales metadata content evidence advice homework knowledge work population faculty
    logistics finance economics physics mathematics statistics politics payroll attendance
    enrolment enrollment revenue income housing audio video geography climate usage access
    stuff art transport demographics media employment education membership ownership storage
    water energy electricity merchandise
""")
"""Uncountable nouns; a row of a table with such a name is called a "record"."""
_SINGULAR_S = re.compile(r"(?:ss|us|is|ics)$")
_MONTH_WORDS = """
    January February March April May June July August September October November December
"""
_MONTHS = _MONTH_WORDS.split()
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = _NUMBER_WORDS.split()
_PARTICIPLES = word_set("""
    due fed led heard sent made born sold paid built given taken won lost spent lent shown bought
    held sown grown driven flown worn written read run set met caught found kept left sung drawn
    seen begun withdrawn chosen broken stolen
""")
_NOUNS_ED = word_set("shed sled moped biped unwed watershed infrared hundred")
_VOWEL = re.compile(r"[aeiou8]|1[18]|hour|hon(?:est|o)|heir")
_LIKE_YOU = re.compile(r"uni(?![nm]|d)|us[eau]|eur|ewe|onc?e|uk|ufo|uti|ubi")


def plural(noun: str) -> str:
    """Return the plural of a noun phrase, in which the last word or the word before "of" is
    inflected.

    >>> plural("city"), plural("bus"), plural("date of birth"), plural("TV series")
    ('cities', 'buses', 'dates of birth', 'TV series')
    """
    if " or " in noun:
        return " or ".join(map(plural, noun.split(" or ")))
    head, tail = _head(noun)
    start, space, word = head.rpartition(" ")
    return f"{start}{space}{_plural_word(word)}{tail}"


def singular(noun: str) -> str:
    """Return the singular of a noun phrase in the plural. A singular phrase is returned unchanged.

    >>> singular("cities"), singular("address"), singular("campuses"), singular("hours per week")
    ('city', 'address', 'campus', 'hour per week')
    """
    head, tail = _head(noun)
    start, space, word = head.rpartition(" ")
    return f"{start}{space}{_singular_word(word)}{tail}"


def is_plural(word: str) -> bool:
    """Return whether a single word is a plural that differs from its singular."""
    return _singular_word(word) != word


def a(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> a("age"), a("year"), a("hour"), a("university"), a("MPG"), a("URL")
    ('an age', 'a year', 'an hour', 'a university', 'an MPG', 'a URL')
    """
    word = noun.lstrip("\"'").split(" ")[0]
    if len(word) == 1 or word.isupper():  # a letter, or an acronym, which is spelled out
        is_vowel = word[:1].upper() in tuple("AEFHILMNORSX")
    else:
        lower = word.lower()
        is_vowel = bool(_VOWEL.match(lower)) and not _LIKE_YOU.match(lower)
    return f"{'an' if is_vowel else 'a'} {noun}"


def join_words(parts: Sequence[str], word: str = "and") -> str:
    """Return parts joined as a list in a sentence.

    >>> join_words(["a"]), join_words(["a", "b"]), join_words(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def number_word(number: int) -> str:
    """Return a whole number up to twelve as a word, and a larger number in digits."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else str(number)


def written_date(day: date) -> str:
    """Return a date as it is written in a sentence.

    >>> written_date(date(2014, 5, 3))
    '3 May 2014'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def month_name(month: int) -> str:
    """Return the name of a month, from 1 to 12."""
    return _MONTHS[month - 1]


def possessive(noun: str) -> str:
    """Return a noun with the possessive ending.

    >>> possessive("stadium"), possessive("customers"), possessive("species")
    ("stadium's", "customers'", "species'")
    """
    last = noun.rpartition(" ")[2]
    is_many = last.endswith("s") and (is_plural(last) or last in INVARIABLE)
    return f"{noun}'" if is_many else f"{noun}'s"


def stands_alone(part: str, text: str) -> bool:
    """Return whether text contains a part that has no letter, digit or underscore next to it.

    >>> stands_alone("30", "older than 30"), stands_alone("30", "older than 300")
    (True, False)
    """
    return part in text and bool(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text))


def sentence(text: str) -> str:
    """Return text with an initial capital letter and single spaces.

    >>> sentence("how  many?"), sentence('"x7" is 3?')
    ('How many?', '"x7" is 3?')
    """
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]


def is_participle(word: str) -> bool:
    """Return whether a word is spelled like a past participle: "purchased", but not "speed"."""
    return word in _PARTICIPLES or (
        len(word) > 4 and word.endswith("ed") and not word.endswith("eed") and word not in _NOUNS_ED
    )


def _head(noun: str) -> tuple[str, str]:
    words = noun.split(" ")
    if len(words) > 1 and is_participle(words[-1]):
        return " ".join(words[:-1]), f" {words[-1]}"
    for link in (" of ", " in ", " from ", " to ", " per "):
        head, preposition, tail = noun.partition(link)
        if preposition:
            return head, preposition + tail
    return noun, ""


def _plural_word(word: str) -> str:
    lower = word.lower()
    if lower in INVARIABLE or lower == "times":  # "times per day" is already a count
        return word
    if lower in _MANY:
        return _cased(word, _MANY[lower])
    if re.search(r"(?:s|x|z|ch|sh)$", lower):
        return f"{word}es" if not word.isupper() else f"{word}s"
    if re.search(r"[^aeiou]y$", lower) and not word.isupper():
        return f"{word[:-1]}ies"
    if lower.endswith("man") and lower not in ("human", "german", "roman"):
        return f"{word[:-2]}en"
    return f"{word}s"


def _singular_word(word: str) -> str:
    lower = word.lower()
    if lower in INVARIABLE or lower in MASS or lower in _MANY or len(lower) < 3:
        return word
    if lower in _ONE:
        return _cased(word, _ONE[lower])
    if lower.endswith("men") and lower not in ("women", "specimen", "regimen", "abdomen", "omen"):
        return f"{word[:-2]}an"
    if not lower.endswith("s") or _SINGULAR_S.search(lower):
        return word
    if lower.endswith("ies") and len(lower) > 4:
        return f"{word[:-3]}y"
    if re.search(r"(?:ss|x|ch|sh|zz)es$", lower) or _ends_in_us(lower):
        return word[:-2]
    return word[:-1]


def _ends_in_us(lower: str) -> bool:
    """Return whether a plural belongs to a word in -us (campuses) rather than -use (houses,
    causes).
    """
    return lower.endswith("uses") and not re.search(r"(?:[aoe]|^|ca|cl|m|f|ab|exc|ref)uses$", lower)


def _cased(pattern: str, word: str) -> str:
    return word.upper() if pattern.isupper() and len(pattern) > 1 else word

"""Nouns for tables and columns, made from the parts of their names.

    emp_hire_dt    employee hire date        no_of_cars     number of cars (counts cars)
    trackLengthKm  track length, in km       x7             value in column "x7"

A name is cut at underscores, blanks and changes of case, and abbreviations are written out. A last
part that is a unit is said as one, and the name of the table in front is left out. A part that no
English word could be (`x7`, `zzqp`) makes the whole name unreadable: it is then quoted as it
stands, since a question may only speak of what an agent can find in the database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sqlgym.synthesis.language import english, lexicon
from sqlgym.synthesis.language.lexicon import word_set
from toolgym.lazy import lazy

_PARTS = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*|[A-Z]|\d+")
_E_MAIL = re.compile(r"(?<![A-Za-z])[Ee][-_ ]?[Mm]ail(?![a-z])")
_VOWEL = re.compile(r"[aeiouy]")
_CLUSTER = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{5}|^[bcdfghjklmnpqrtvwxz]{3}(?<!chr)(?<!thr)(?<!phr)(?<!sch)(?<!shr)"
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


_SAID_ALONE = frozenset(["field", "feature", "item", "attribute"])
_LIMITS = frozenset(["maximum", "minimum", "average", "total"])
_TIMES = frozenset(["hours", "days", "weeks", "months", "minutes", "seconds"])
_SAY_NOTHING = lexicon.CRYPTIC | lexicon.NOT_NOUNS


@dataclass(frozen=True)
class Noun:
    """A noun phrase in both numbers.

    Attributes:
        one: In the singular.
        many: In the plural.
        is_readable: It is English, not a name in quotes.
        counts: Of "number of cars", the noun that is counted, in the plural; else "".
        unit: What its values are measured in, as said in a sentence; "" if unknown.
    """

    one: str
    many: str
    is_readable: bool = True
    counts: str = ""
    unit: str = ""

    @lazy
    def a(self) -> str:
        """With the indefinite article."""
        return self.one if self.is_plural else english.a(self.one)

    @lazy
    def be(self) -> str:
        """ "is", or "are" of a noun that is a plural in itself."""
        return "are" if self.is_plural else "is"

    @lazy
    def is_plural(self) -> bool:
        """Also its singular is a plural, as of "account details"."""
        return (
            self.is_readable
            and not self.counts
            and self.one == self.many
            and self.one.endswith("s")
        )

    @property
    def last(self) -> str:
        """The last word, which says what it is."""
        return self.one.rpartition(" ")[2]


def column_noun(
    name: str,
    table_words: tuple[str, ...] = (),
    is_number: bool = False,
    is_key: bool = False,
    kind: str = "",
) -> Noun:
    """The noun of a column, without the name of its table in front.

    Args:
        table_words: The singular words of its table's name.
        is_number: It holds numbers, so that a unit or a count may be in its name.
        is_key: It identifies the rows, so that the `mID` of movies is their ID.
        kind: "date", "year", "figure" or "value" if what it holds is known: a name that is no
            noun then is one of such a thing, the date hired, the highest figure.

    >>> column_noun("customer_first_name", ("customer",)).many
    'first names'
    >>> column_noun("length_km", (), True)
    Noun(one='length', many='lengths', is_readable=True, counts='', unit='km')
    >>> column_noun("x7").many
    'values in column "x7"'
    >>> column_noun("hired", kind="date").one, column_noun("drives_on", kind="value").one
    ('date hired', 'drives-on value')
    """
    words = words_of(name)
    if is_key and table_words and words == (table_words[0][0], "ID"):
        return _noun(f"{' '.join(table_words)} ID", "", "")
    if not is_readable(name):
        return quoted_column(name)
    words = _with_ranges(_without_table(words, table_words))
    unit = ""
    if is_number:
        words, unit = _without_unit(words, parts_of(name))
    phrase = lexicon.COMPOUNDS.get(" ".join(words)) or _date_phrase(words, table_words)
    phrase += _what_lasts(words, unit)
    if is_number and not unit and len(words) > 1 and len(parts_of(name)[-1]) == 1:
        return quoted_column(name)  # metres, minutes or millions
    phrase, counts = _count_phrase(phrase, is_number)
    if words[:1] and words[0] in lexicon.UNITS and words[1:2] == ("per",) and is_number:
        return _noun(*_number_of(" ".join(words)), unit)
    if is_number and (measured := _of_unit(words, unit)) is not None:
        return measured
    alone = len(words) == 1 and english.is_participle(words[0])
    if kind == "value" and phrase in _SAID_ALONE:
        return _noun(phrase, "", "")
    if (
        alone
        or (len(words) > 1 and words[0] in lexicon.UNITS and words[0] not in _TIMES)
        or not phrase
        or phrase in _SAY_NOTHING
        or phrase.split(" ")[-1] in lexicon.LINK_WORDS | lexicon.PREPOSITIONS
        or phrase.split(" ")[0] in lexicon.PREPOSITIONS
    ):
        phrase = _named_after(words, kind)
        return _noun(phrase, "", unit) if phrase else quoted_column(name)
    return _noun(phrase, counts, unit)


def _what_lasts(words: tuple[str, ...], unit: str) -> str:
    """What is said behind a noun of which the time is measured: "lesson duration"."""
    if unit in ("minutes", "seconds") and words and words[-1] in lexicon.OCCASIONS:
        return " duration"
    is_timed = unit in ("minutes", "seconds", "hours", "days") and words
    return " time" if is_timed and words[-1] in lexicon.TIMED else ""


def _of_unit(words: tuple[str, ...], unit: str) -> Noun | None:
    """The noun of a name that tells a unit and not what it measures: `max_kg`, `km_driven`."""
    if len(words) == 2 and english.is_participle(words[1]) and words[0] not in _TIMES:
        unit = lexicon.UNITS.get(words[0], "")
        form = "{} " + words[1]
    elif len(words) == 1 and (words[0] in _LIMITS or english.is_participle(words[0])):
        form = words[0] + " {}"
    else:
        return None
    measure = lexicon.MEASURED.get(unit)
    return _noun(form.format(measure), "", unit) if measure else None


def _with_ranges(words: tuple[str, ...]) -> tuple[str, ...]:
    """Numbers beside each other are a range, and a year at the end is one: "currency in 2024"."""
    joined: list[str] = []
    for place, word in enumerate(words):
        if word.isdigit() and 0 < place == len(words) - 1 and not words[place - 1].isdigit():
            joined.append("in")
        if joined and word.isdigit() and joined[-1].isdigit():
            joined[-1] += f"-{word}"
        else:
            joined.append(word)
    return tuple(joined)


def _named_after(words: tuple[str, ...], kind: str) -> str:
    """A noun for words that are none: "date hired", "highest figure"; "" where none is known."""
    if not words or not kind or (words[0] in lexicon.UNITS and words[0] not in _TIMES):
        return ""
    if len(words) == 1:
        (word,) = words
        if english.is_participle(word):
            amount = "amount" if word in lexicon.PAYMENTS else "number"
            plain = {"figure": f"{amount} {word}", "value": f"{word} value"}
            return plain.get(kind, f"{kind} {word}")
        if word in lexicon.CRYPTIC:
            return ""
        return {"total": "total", "since": f"start {kind}"}.get(word, f"{word} {kind}")
    if kind == "date" and words[-1] in ("at", "on") and len(words) > 2:
        of = "" if english.is_participle(words[-2]) else "of "
        return f"date {of}{' '.join(words[:-1])}"
    if words[0] == "date" and kind == "date":
        words = words[1:]
    is_clause = words[0] in lexicon.PREPOSITIONS or words[-1] in lexicon.LINK_WORDS | (
        lexicon.PREPOSITIONS
    )
    return f"{'-'.join(words) if is_clause else ' '.join(words)} {kind}"


def quoted_column(name: str) -> Noun:
    """A column that is spoken of by its name as it stands."""
    shown = name.replace('"', '""')
    return Noun(f'value in column "{shown}"', f'values in column "{shown}"', False)


def quoted_table(name: str) -> Noun:
    """A row of a table that is spoken of by its name as it stands."""
    shown = name.replace('"', '""')
    return Noun(f'record in "{shown}"', f'records in "{shown}"', False)


def table_noun(name: str, has_names: bool = False) -> Noun:
    """The noun of a table's rows.

    Args:
        has_names: Its rows have names, so that a row of "staff" is somebody.

    >>> table_noun("Product_Categories").one, table_noun("job_history").many
    ('product category', 'job history records')
    >>> table_noun("singer_in_concert").many, table_noun("tbl_emp").one
    ('records in "singer_in_concert"', 'employee')
    """
    words = list(words_of(name))
    records = quoted_table(name)
    while len(words) > 1 and words[-1] in lexicon.ENTITY_SUFFIXES:
        words.pop()
    while len(words) > 1 and words[0] in lexicon.ENTITY_PREFIXES:
        words.pop(0)
    if not is_readable(_bare(name)):
        if not _is_owned(parts_of(_bare(name))):
            return records
        words[0] = words[0].upper()
    if (
        (words[0] in lexicon.VERBS and len(words) > 1)
        or lexicon.LINK_WORDS & set(words)
        or len(words) > 4
    ):
        return records
    if words[-1] == "data" and len(words) > 1 and english.is_plural(words[-2]):
        words.pop()
    words[-1] = lexicon.NOMINAL.get(words[-1], words[-1])
    last = words[-1]
    if last in english.MASS or _is_activity(last) or last in lexicon.CRYPTIC - {"item"}:
        if len(words) == 1 and last in lexicon.CRYPTIC:
            return records
        kind = "member" if last in lexicon.GROUPS else "record"
        return Noun(f"{' '.join(words)} {kind}", f"{' '.join(words)} {kind}s")
    one = english.singular(" ".join(words))
    return Noun(one, english.plural(one))


def _is_owned(parts: tuple[str, ...]) -> bool:
    """Whether letters that are no word stand before words: `csu_fees` are CSU fees."""
    if len(parts) < 2:
        return False
    first, rest = parts[0], "_".join(parts[1:])
    return 1 < len(first) < 5 and first.isalpha() and len(rest) > 3 and is_readable(rest)


def _bare(name: str) -> str:
    """A table's name without a first part such as "tbl"."""
    parts = parts_of(name)
    if len(parts) > 1 and parts[0].lower() in lexicon.ENTITY_PREFIXES:
        parts = parts[1:]
    if len(parts) > 1 and parts[-1].lower() in lexicon.ENTITY_SUFFIXES:
        parts = parts[:-1]
    return "_".join(parts)


def _without_table(words: tuple[str, ...], table: tuple[str, ...]) -> tuple[str, ...]:
    """`customer_first_name` of customers is their first name."""
    for size in range(min(len(table), len(words) - 1), 0, -1):
        start = (*words[: size - 1], english.singular(words[size - 1]))
        same = table[-size:] in (words[:size], start)
        if same and words[size] not in lexicon.LINK_WORDS:
            return words[size:]
    return words


def _without_unit(words: tuple[str, ...], parts: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    if len(words) < 2:
        return words, ""
    last = parts[-1].lower()
    if last in lexicon.UNITS and words[0] != "number":
        rest = words[:-1]
        if rest[-1] in ("in", "sq") and len(rest) > 1:
            rest = rest[:-1]
        return rest, lexicon.UNITS[last]
    if last in ("max", "min") and f"{last} {words[-2]}" not in lexicon.SHORT_UNITS:
        return (words[-1], *words[:-1]), ""
    for word in words[:-1]:
        unit = lexicon.SHORT_UNITS.get(f"{last} {word}")
        if unit:
            return words[:-1], unit
    return words, ""


def _date_phrase(words: tuple[str, ...], table: tuple[str, ...] = ()) -> str:
    """`joined_on` is the date joined, `date_order_placed` the date when the order was placed."""
    if len(words) == 2 and english.is_participle(words[0]):
        kind = {"on": "date", "at": "date", "in": "year"}.get(words[1], words[1])
        if kind == "date" and words[0] in lexicon.DATES_OF:
            return lexicon.DATES_OF[words[0]]
        if kind in ("date", "year", "time"):
            return f"{kind} {words[0]}"
    if len(words) == 2 and words[1] == "by" and words[0] in lexicon.AGENTS:
        return lexicon.AGENTS[words[0]]
    if len(words) > 2 and words[0] == "date" and english.is_participle(words[-1]):
        if words[1:-1] == table[-len(words) + 2 :]:
            return f"date {words[-1]}"
        return f"date when the {' '.join(words[1:-1])} was {words[-1]}"
    if len(words) > 1 and lexicon.PLACE_COLUMNS.issuperset(words):
        return english.join_words(words, "or")
    return " ".join(words)


def _count_phrase(phrase: str, is_number: bool) -> tuple[str, str]:
    """Of a number of things: the phrase, and the things in the plural."""
    words = phrase.split(" ")
    if not is_number or {"and", "or", "per"} & set(words):
        return phrase, ""
    things = words
    if words[:2] == ["number", "of"]:
        things = words[2:]
    elif words[0] == "number":
        things = words[1:]
    elif words[-1] == "count":
        things = words[:-1]
        return _number_of(english.plural(english.singular(" ".join(things))))
    if not things or not english.is_plural(things[-1]) or "of" in things:
        return phrase, ""
    return _number_of(" ".join(things))


def _number_of(things: str) -> tuple[str, str]:
    return f"number of {things}", things


def _noun(phrase: str, counts: str, unit: str) -> Noun:
    if counts:
        return Noun(phrase, phrase.replace("number of", "numbers of", 1), True, counts, unit)
    first, _, rest = phrase.partition(" ")
    if first in _TIMES and english.is_participle(rest):
        return Noun(phrase, phrase, True, "", unit)
    if phrase.startswith("date "):
        return Noun(phrase, f"dates {phrase.removeprefix('date ')}", True, "", unit)
    many = english.plural(english.singular(phrase))
    return Noun(phrase, many, True, "", unit)


def _is_activity(word: str) -> bool:
    return word.endswith("ing") and word not in lexicon.COUNTABLE_ING and len(word) > 4

"""Nouns for tables and columns, made from the words of their names.

* `emp_hire_dt` becomes "employee hire date".
* `no_of_cars` becomes "number of cars", which counts cars.
* `trackLengthKm` becomes "track length", in km.
* `opened_on` becomes "date opened".

Words are inflected but not added or guessed, except "date" and "year" for columns that contain
dates and years. A name that is not a noun, such as `highest` or `x7`, is quoted.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlgym.synthesis import english
from sqlgym.synthesis.lexicon import (
    PLACE_COLUMNS,
    PREPOSITIONS,
    parts_of,
    unit_of,
    word_set,
    words_of,
)
from toolgym.lazy import lazy


@dataclass(frozen=True)
class Noun:
    """A noun phrase in singular and plural.

    Attributes:
        one: The singular.
        many: The plural.
        is_readable: Whether the phrase consists of words; False for a quoted name.
        counts: The plural of what is counted, such as "cars" for "number of cars"; else "".
        unit: Unit of the values, such as "km"; "" if unknown.
    """

    one: str
    many: str
    is_readable: bool = True
    counts: str = ""
    unit: str = ""

    @lazy
    def a(self) -> str:
        """Return the singular with its indefinite article."""
        return self.one if self.is_plural else english.a(self.one)

    @lazy
    def be(self) -> str:
        """Return "is", or "are" for a noun without a singular."""
        return "are" if self.is_plural else "is"

    @lazy
    def is_plural(self) -> bool:
        """Return whether the noun has no singular, such as "account details"."""
        is_same = self.is_readable and not self.counts and self.one == self.many
        return is_same and self.one.endswith("s")

    @property
    def last(self) -> str:
        """The last word."""
        return self.one.rpartition(" ")[2]


def quoted_column(name: str) -> Noun:
    """Return the noun of a column whose name is quoted."""
    shown = name.replace('"', '""')
    return Noun(f'value in column "{shown}"', f'values in column "{shown}"', False)


def quoted_table(name: str) -> Noun:
    """Return the noun for the rows of a table whose name is quoted."""
    shown = name.replace('"', '""')
    return Noun(f'record in "{shown}"', f'records in "{shown}"', False)


def column_noun(name: str, table_words: tuple[str, ...] = (), kind: str = "") -> Noun:
    """Return the noun of a column, without a leading table name.

    Args:
        name: The name of the column; its words are assumed to be readable.
        table_words: The singular words of its table's name.
        kind: The kind of its values: "date", "year", "count" (whole numbers), "number", or "".

    >>> column_noun("customer_first_name", ("customer",)).many
    'first names'
    >>> column_noun("length_km", (), "number")
    Noun(one='length', many='lengths', is_readable=True, counts='', unit='km')
    >>> column_noun("hired_on", kind="date").one, column_noun("pages", kind="count").one
    ('date hired', 'number of pages')
    >>> column_noun("highest").one
    'value in column "highest"'
    """
    words, unit = list(_without_table(words_of(name), table_words)), ""
    if kind in ("date", "year"):
        words = _dated(words, kind)
    elif kind and "number" not in words:
        unit = unit_of(parts_of(name))
        words = words[:-1] if unit else words
        if unit in _TIMES and words and words[-1] not in _LASTING and "time" not in words:
            words.append("time")  # `cook_min` becomes "cook time"
    is_place = len(words) > 1 and PLACE_COLUMNS.issuperset(words)
    phrase = english.join_words(words, "or") if is_place else " ".join(words)
    is_activity = phrase.endswith("ing") and phrase not in _COUNTABLE
    if (
        not words
        or phrase in _NOT_NOUNS
        or words[0] in PREPOSITIONS
        or words[-1] in PREPOSITIONS
        or not _UNCLEAR.isdisjoint(words)
        or (kind in ("date", "year") and "to" in words)
        or (len(words) == 1 and (english.is_participle(phrase) or is_activity))
    ):
        return quoted_column(name)
    is_measured = kind == "number" and not _MEASURED.isdisjoint({words[0], words[-1]})
    counts = _counted(words) if (kind == "count" and not unit) or is_measured else ""
    if counts:
        return Noun(f"number of {counts}", f"numbers of {counts}", True, counts)
    if kind == "count" and words[0] in ("maximum", "minimum") and (things := _counted(words[1:])):
        return Noun(f"{words[0]} number of {things}", f"{words[0]} numbers of {things}")
    is_amount = kind in ("count", "number") and len(words) > 1
    is_clipped = words[-1] in _NOT_NOUNS and words[-1] not in ("total", "average")
    is_counted = english.is_plural(words[-1]) and words[-1] not in _SUMS
    if (is_amount and (words[-1] == "count" or is_clipped)) or (unit and is_counted):
        return quoted_column(name)
    return Noun(phrase, english.plural(english.singular(phrase)), True, "", unit)


_NOT_NOUNS = word_set("""
    highest lowest average maximum minimum mean median total high low open first last current
    active new old big small best worst long short male female weekly monthly daily annual local
    foreign other main when where who what data flag undergraduate graduate accelerate net gross
    start end actual free top
""")
"""Words that are not nouns by themselves."""
_UNCLEAR = word_set("dates since until by into onto via includes has is")
"""Words that turn a name into a clause: `member_since`."""
_TIMES = word_set("minutes seconds hours")
_MEASURED = word_set("days hours weeks months minutes acres")
"""Plural nouns whose values can also be fractions."""
_LASTING = word_set("time duration delay length wait age interval runtime")
_SUMS = word_set("""
    fines fees costs expenses earnings savings taxes wages debts sales dues tips damages bonuses
    losses profits proceeds royalties premiums discounts charges stars points statistics percent
""")
"""Plural nouns that name an amount rather than things to count."""


def _dated(words: list[str], kind: str) -> list[str]:
    """Return the noun of a date column.

    `opened_on` and `opened_date` become "date opened", and `start_from` becomes "start date".
    """
    while len(words) > 1 and words[-1] in ("on", "at", "from"):
        words = words[:-1]
    words = [{"born": "birth", "died": "death"}.get(word, word) for word in words]
    if words[-1:] == [kind] and len(words) > 1 and english.is_participle(words[-2]):
        words = words[:-1]
    if {"date", "year", "time", "day", "month", "timestamp", "birthday", "deadline"} & set(words):
        return words
    if words and english.is_participle(words[-1]):
        return [kind, *words]
    return [*words[:-1], english.singular(words[-1]), kind] if words else words


def _counted(words: list[str]) -> str:
    """Return the plural of the counted things, or "" if the name does not contain one."""
    is_number = words[0] == "number" or words[-1] == "count"
    things = [word for word in words if word not in ("number", "of", "count")]
    is_state = len(words) == 2 and english.is_participle(words[-1])  # `units_added`
    end = next((i for i, word in enumerate(words) if word in PREPOSITIONS), len(words))
    head = words[0] if is_state else words[end - 1]  # `days_to_maturity`
    if not things or not (is_number or (english.is_plural(head) and head not in _SUMS)):
        return ""
    if head != words[-1] and not is_number:
        return " ".join(words)
    if not (PREPOSITIONS | _STATISTICS).isdisjoint(things):
        return ""
    return " ".join([*things[:-1], english.plural(english.singular(things[-1]))])


_STATISTICS = word_set("average maximum minimum total percentage mean median")


def table_noun(name: str, has_names: bool = False) -> Noun:
    """Return the noun of a table's rows.

    Args:
        name: The name of the table; its words are assumed to be readable.
        has_names: Whether the rows have names. If they do, a row of "staff" is called a staff
            member.

    >>> table_noun("Product_Categories").one, table_noun("job_history").many
    ('product category', 'job history records')
    >>> table_noun("singer_in_concert").many, table_noun("tbl_emp").one
    ('records in "singer_in_concert"', 'employee')
    """
    words = list(table_words(name))
    last = words[-1] if words else ""
    if not words or PREPOSITIONS & set(words) or len(words) > 4 or _VERBS & {words[0], last}:
        return quoted_table(name)
    written = words_of(name)[-1]
    is_activity = last.endswith("ing") and last not in _COUNTABLE and not written.endswith("ings")
    if is_activity or (last in english.MASS and last == written):
        words.append("member" if has_names and last in _GROUPS else "record")
    one = " ".join(words)
    return Noun(one, english.plural(one))


_VERBS = word_set("""
    has have is are lives plays belongs takes teaches works knows treats undergoes arrange teach
    enroll attend assign participate own employ appoint perform operate receive deliver manage live
    drunk sour bulk
""")
"""Words that indicate, at the start or end of a name, that it is a clause and not a noun."""
_GROUPS = word_set("staff crew personnel faculty")
_COUNTABLE = word_set("""
    building meeting booking training listing painting recording rating reading posting filing
    offering screening sailing drawing ranking landing wedding hearing holding ring string thing
    crossing evening opening
""")
_PREFIXES = word_set("tbl tb t dim fact stg vw app lk lkp tlkp lookup reference")
_SUFFIXES = word_set("header list lu table tbl master data information export log")


def table_words(name: str) -> tuple[str, ...]:
    """Return the words of a table's name, without prefixes such as "tbl" and in the singular."""
    words = list(words_of(name))
    while len(words) > 1 and (words[0] in _PREFIXES or words[0].isdigit()):
        words.pop(0)
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        if english.is_participle(words[-2]):  # `cooked_log`
            break
        words.pop()
    if words:
        words[-1] = english.singular(words[-1])
    return tuple(words)


def _without_table(words: tuple[str, ...], table: tuple[str, ...]) -> tuple[str, ...]:
    for size in range(min(len(table), len(words) - 1), 0, -1):
        start = (*words[: size - 1], english.singular(words[size - 1]))
        if start == table[-size:] and words[size] not in PREPOSITIONS:
            return words[size:]
    return words

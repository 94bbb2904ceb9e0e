"""Nouns for tables and columns, made from the parts of their names.

    emp_hire_dt    employee hire date        no_of_cars     number of cars (counts cars)
    trackLengthKm  track length, in km       x7             value in column "x7"

A name is cut at underscores, blanks and changes of case, and abbreviations are written out. A last
part that is a unit is said as one, and the name of the table in front is left out. A part that no
English word could be (`x7`, `zzqp`) makes the whole name unreadable: it is then quoted as it
stands, since a question may only speak of what an agent can find in the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlgym.synthesis import english, happenings, lexicon, spelling
from sqlgym.synthesis.lexicon import word_set
from sqlgym.synthesis.parts import is_plain, is_readable, parts_of, words_of
from toolgym.lazy import lazy

_SAID_ALONE = frozenset(["field", "feature", "item", "attribute"])
_LIMITS = frozenset(["maximum", "minimum", "average", "total"])
_TIMES = frozenset(["hours", "days", "weeks", "months", "minutes", "seconds"])
_SUMS = word_set("""
    fines fees costs expenses earnings savings taxes wages debts dues tips damages deductions
    bonuses losses profits proceeds royalties subsidies premiums discounts charges
""")
"""Plurals of which a number is an amount of money, and no count."""
_PER = frozenset(["m3", "m2", "ml", "sqm", "km2", "ha"])
"""Units of which another one in front is so much of each: `density_kg_m3`."""
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
        event: Of a date or year, what happened to rows then, as a verb: "were hired".
        graded: The quantity whose adjectives fit it: "length" of what is longer or shorter.
        is_odd: Nobody would say it; it is hardly ever asked about.
    """

    one: str
    many: str
    is_readable: bool = True
    counts: str = ""
    unit: str = ""
    event: str = field(default="", repr=False)
    graded: str = field(default="", repr=False)
    is_odd: bool = field(default=False, repr=False)

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
    """The noun of a column, and what happened at its date; see `_column_noun`.

    >>> column_noun("hired", kind="date").one, column_noun("hired", kind="date").event
    ('hire date', 'were hired')
    """
    known = _by_kind(name, table_words, is_number, kind)
    noun = _column_noun(known, table_words, is_number, is_key, kind)
    if not noun.is_readable:
        return quoted_column(name)
    event = ""
    if kind in ("date", "year"):
        event = happenings.event_of(_without_table(words_of(known), table_words), table_words)
    is_record = kind == "date" and table_words[-1:] and table_words[-1] in lexicon.PERSONS
    is_odd = noun.is_odd or not is_plain(known) or (is_record and noun.one in _OF_RECORDS)
    return replace(noun, event=event, is_odd=bool(is_odd))


_OF_RECORDS = frozenset(["creation date", "date of the last update", "date of the last change"])
"""Dates of what is written down of somebody, which nobody has."""


def _by_kind(name: str, table: tuple[str, ...], is_number: bool, kind: str) -> str:
    """A name with short parts written out where what the column holds tells what they are."""
    held = kind if kind in ("date", "year") else "number" if is_number else kind
    parts = [_OF_KIND.get((part.lower(), held), part) for part in parts_of(name)]
    if len(parts) > 1 and table and _is_clipped(parts[0].lower(), table[-1]):
        parts[0] = table[-1]
    if is_number and table and table[-1] in lexicon.PLACES | _HOLDERS:
        parts = ["capacity" if part.lower() == "cap" else part for part in parts]
    if tuple(parts) == parts_of(name):
        return name
    return "_".join(parts).lower() if name.isupper() else "_".join(parts)


_HOLDERS = word_set("ward hall classroom tank vehicle bus train vessel ship truck lift")
"""What holds so many, besides places: their cap is a capacity."""


def _is_clipped(part: str, word: str) -> bool:
    """Whether a part is the head of its table's word: `mod_title` of modules."""
    is_head = 2 < len(part) < len(word) - 1 and word.startswith(part)
    return is_head and not spelling.is_usual(part)


_OF_KIND = {
    ("estab", "year"): "established",
    ("estab", "date"): "established",
    ("pub", "year"): "published",
    ("pub", "date"): "published",
    ("grad", "year"): "graduation",
    ("grad", "date"): "graduation",
    ("enrol", "year"): "enrolment",
    ("enrol", "date"): "enrolment",
    ("enrol", "number"): "enrolment",
    ("enroll", "year"): "enrolment",
    ("enroll", "number"): "enrolment",
    ("cat", "value"): "category",
    ("pd", "date"): "paid",
    ("pd", "number"): "paid",
    ("fnd", "year"): "founded",
    ("fnd", "date"): "founded",
    ("fndd", "year"): "founded",
    ("est", "year"): "established",
    ("est", "date"): "established",
    ("bld", "year"): "built",
    ("blt", "year"): "built",
    ("rel", "year"): "release",
    ("rel", "date"): "release",
    ("exp", "date"): "expiry",
    ("eff", "date"): "effective",
    ("upd", "date"): "updated",
    ("crt", "date"): "created",
    ("cre", "date"): "created",
    ("mod", "date"): "modified",
    ("iss", "date"): "issued",
    ("dep", "date"): "departure",
    ("sc", "number"): "score",
}


def _column_noun(
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
    ('hire date', 'drives-on value')
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
    phrase = lexicon.COMPOUNDS.get(" ".join(words)) or _date_phrase(words, table_words, kind)
    phrase += _what_lasts(words, unit)
    if is_number and not unit and len(words) > 1 and len(parts_of(name)[-1]) == 1:
        return quoted_column(name)  # metres, minutes or millions
    if unit in _TIMES and english.is_plural(phrase) and " " in phrase:
        phrase = english.singular(phrase)  # payment terms of so many days
    phrase, counts = _count_phrase(phrase, is_number, unit in lexicon.MONEY)
    if words[:1] and words[0] in lexicon.UNITS and words[1:2] == ("per",) and is_number:
        return _noun(*_number_of(" ".join(words)), unit)
    if is_number and (measured := _of_unit(words, unit)) is not None:
        return measured
    alone = len(words) == 1 and english.is_participle(words[0]) and phrase == words[0]
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
        if not phrase:
            return quoted_column(name)
        odd = kind == "value" or "-" in phrase or (kind == "figure" and phrase.endswith(" figure"))
        return replace(_noun(phrase, "", unit), is_odd=odd)
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
    """The noun of a table's rows, odd where a part of it is no word; see `_table_noun`."""
    noun = _table_noun(name, has_names)
    return replace(noun, is_odd=not noun.is_readable or not is_plain(_bare(name)))


def _table_noun(name: str, has_names: bool) -> Noun:
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
    if len(parts) > 2 and last in _PER and parts[-2].lower() in lexicon.UNITS and len(words) > 2:
        per = english.singular(lexicon.UNITS[last])
        return words[:-2], f"{lexicon.UNITS[parts[-2].lower()]} per {per}"
    if last in _TIMES and len(words) == 2 and words[0] in lexicon.ADJECTIVES:
        return words, ""  # remote days are counted
    if last in lexicon.UNITS and words[0] != "number":
        rest = words[:-1]
        if rest[-1] in ("in", "sq") and len(rest) > 1:
            rest = rest[:-1]
        return rest, lexicon.UNITS[last]
    if len(words) == 2 and words[0] in lexicon.MEASURES and english.is_plural(words[1]):
        return words[:1], words[1]
    if len(words) > 2 and words[-2] in lexicon.MEASURES and english.is_plural(words[-1]):
        return words[:-1], words[-1]
    if words[-1] in ("percentage", "percent") and words[-2] in (
        "rate",
        "share",
        "ratio",
        "margin",
        "level",
    ):
        return words[:-1], "percent"
    if last in ("max", "min") and f"{last} {words[-2]}" not in lexicon.SHORT_UNITS:
        return (words[-1], *words[:-1]), ""
    for word in words[:-1]:
        unit = lexicon.SHORT_UNITS.get(f"{last} {word}")
        if unit:
            return words[:-1], unit
    return words, ""


_HAPPENINGS = word_set("""
    delivery login logout visit inspection checkup check-up appointment service departure arrival
    purchase payment activity revision update maintenance review shipment dispatch pickup contact
    call order opening closing hire enrolment registration expiration expiry
""")
"""Last words of names of dates, behind which "date" is said."""


def _dated(words: tuple[str, ...]) -> str:
    """What a participle beside such words holds: "date", "year" or ""."""
    if len(words) == 2 and english.is_participle(words[0]):
        return {"on": "date", "at": "date", "in": "year", "date": "date", "year": "year"}.get(
            words[1], ""
        )
    is_last = len(words) > 1 and words[0] in ("date", "year") and english.is_participle(words[-1])
    return words[0] if is_last else ""


def _date_phrase(words: tuple[str, ...], table: tuple[str, ...] = (), kind: str = "") -> str:
    """`joined_on` is the joining date, `year_built` the construction year."""
    if words[-1:] in (("on",), ("at",), ("date",)) and " ".join(words[:-1]) in lexicon.COMPOUNDS:
        return lexicon.COMPOUNDS[" ".join(words[:-1])]
    dated = kind if kind in ("date", "year") else _dated(words)
    own = tuple(word for word in words if word not in table) or words
    if dated == "date" and table and own[-1:] == ("given",) and len(own) == 2:
        return f"{own[0]} date"  # when notice was given
    if dated == "date" and table and {"placed", "made", "taken", "held", "given"} & set(own):
        return f"{table[-1]} date"
    if dated and table and table[-1] in lexicon.PERSONS and own == ("since",):
        return f"{'start' if table[-1] in lexicon.BUYERS else 'joining'} {dated}"
    if dated and (said := happenings.name_of(own, dated, table)):
        return said
    if len(words) == 2 and words[1] == "time" and english.is_participle(words[0]):
        return happenings.name_of(words[:1], "time")
    if len(words) == 2 and words[1] == "by" and words[0] in lexicon.AGENTS:
        return lexicon.AGENTS[words[0]]
    if kind == "date" and len(words) > 1 and words[-1] == "due":
        return " ".join([*words, "date"])
    if kind == "date" and words and words[-1] in _HAPPENINGS:
        return " ".join([*words, "date"])
    if len(words) > 1 and lexicon.PLACE_COLUMNS.issuperset(words):
        return english.join_words(words, "or")
    return " ".join(words)


def _count_phrase(phrase: str, is_number: bool, is_money: bool) -> tuple[str, str]:
    """Of a number of things: the phrase, and the things in the plural."""
    words = phrase.split(" ")
    if not is_number or {"and", "or", "per"} & set(words):
        return phrase, ""
    things = words
    if len(words) == 2 and english.is_plural(words[0]) and english.is_participle(words[1]):
        return _number_of(words[0] if words[1] == "spent" else phrase)  # hours are spent on it
    if words[0] in ("maximum", "minimum") and english.is_plural(words[-1]) and not is_money:
        return f"{words[0]} number of {' '.join(words[1:])}", ""
    if words[:2] == ["number", "of"]:
        things = words[2:]
    elif words[0] == "number":
        things = words[1:]
    elif words[-1] == "count":
        things = words[:-1]
        return _number_of(english.plural(english.singular(" ".join(things))))
    if things is words and (things[-1] in _SUMS or (is_money and english.is_plural(things[-1]))):
        return f"amount of {phrase}", ""
    if not things or not english.is_plural(things[-1]) or "of" in things:
        return phrase, ""
    return _number_of(" ".join(things))


def _number_of(things: str) -> tuple[str, str]:
    return f"number of {things}", things


def _noun(phrase: str, counts: str, unit: str) -> Noun:
    if counts:
        return Noun(phrase, phrase.replace("number of", "numbers of", 1), True, counts, unit)
    if phrase.startswith("date "):
        return Noun(phrase, f"dates {phrase.removeprefix('date ')}", True, "", unit)
    many = english.plural(english.singular(phrase))
    return Noun(phrase, many, True, "", unit)


def _is_activity(word: str) -> bool:
    return word.endswith("ing") and word not in lexicon.COUNTABLE_ING and len(word) > 4

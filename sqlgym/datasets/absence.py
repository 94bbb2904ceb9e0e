"""What a database has no word for, and no row.

That something is not there can be shown only as far as names and cells are read. So it is shown
strictly: a text is lacking if no row of any table has all of its words, whatever their order and
their case, in whichever cells; a column or a table is lacking if none of its words is in any name
of the schema, nor any word that is used for the same thing (`ALIKE`). What cannot be read counts
as being there.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlgym.database.database import Database
from sqlgym.database.schema import Column, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.language import english, lexicon
from sqlgym.synthesis.language.lexicon import word_set
from sqlgym.synthesis.language.nouns import Noun, column_noun, table_noun
from sqlgym.synthesis.language.parts import words_of
from sqlgym.synthesis.reading.references import table_words
from sqlgym.synthesis.reading.world import literal
from toolgym.errors import ToolError
from toolgym.lazy import lazy

ALIKE: Final = tuple(
    frozenset(group.split())
    for group in """
    height altitude elevation tall high
    length distance long duration minute hour
    salary wage pay income earning stipend
    price cost fee fare rate amount charge value worth budget money euro dollar
    age birth born birthday dob year old
    date day month year time since when started founded opened joined built
    origin family ancestry
    city town place home residence location address country region district nationality village
    origin area site port continent zone
    hired hire joined employed started since
    insurer insurance
    institute institution university affiliation employer organisation
    phone telephone mobile contact email mail
    job position role profession occupation speciality specialty rank function title
    weight mass load tonnage
    area size surface extent
    population inhabitant resident people
    sex gender
    status state condition stage phase
    kind type category genre class style form group family sort variety
    score grade mark rating point level result rank
    capacity seat size bed volume berth
    speed pace velocity knot
    language tongue
    colour color
    subject topic field theme discipline speciality specialty department course
    experience seniority tenure year
    name title label surname
    house team club group section
    power strength energy
    quantity number count stock amount
    book volume publication
    film movie
    course class lesson
    teacher instructor professor lecturer tutor
    student pupil learner
    doctor physician
    patient admission
    hut cabin shelter lodge
    river stream
    truck vehicle car lorry
    ship vessel boat ferry
    author writer
    award prize medal
    stay visit admission booking reservation
    trail route path line way
    treatment therapy procedure
    mission flight launch
    planet body moon
    mountain peak summit
    lake sea water river
    theatre theater venue stage hall cinema branch building house station
    country nation state
    opera work composition play
    airport airfield
    loan borrowing
    sample specimen
    device machine instrument
    product article good
    run trial experiment
    order sale purchase delivery
    """.strip().splitlines()
)
"""Words of which each may stand for another; too many rather than too few."""

DERIVED: Final = word_set("""
    number total average mean count rate share percent percentage ratio rank sum maximum minimum
    first last latest earliest density age difference duration tenure seniority
""")
"""Words for what is often computed from something else."""

VAGUE: Final = word_set("""
    record item entry thing object event place location kind type detail info information link
    person people member customer client user employee staff guest visitor participant worker man
    woman adult child name title value note comment description remark text id code key number
    address status year date time day data motive author writer owner director leader winner
    scientist researcher player artist speaker friend
""")
"""Words that might mean something else that a database has."""

PERSONAL: Final = word_set("""
    sex gender blood type insurer insurance telephone phone mail email e-mail profession occupation
    salary street postcode nationality religion employer institute hobby subject house score point
    experience
""")
"""Words for what anybody has, so that any table of people could have a column for it."""

PLACES: Final = word_set("""
    river lake mountain hut port district region site village town city vessel island peak summit
    branch volcano airport bridge
""")
"""Things that have names of their own, of which new ones can be made."""

_DATED: Final = re.compile(r"(?:date|year|time) (?!of )")
"""Nouns such as "date hired", which stand badly before "of"."""

_COMPARED: Final = 2_000


@dataclass(frozen=True)
class Source:
    """A database of the set, as it names things."""

    item: str
    path: Path
    database: Database

    @lazy
    def tables(self) -> tuple[Table, ...]:
        """Its tables, without the views."""
        return tuple(table for table in self.database.schema.tables if not table.is_view)

    @lazy
    def words(self) -> frozenset[str]:
        """All words of the names in the schema, the database's own included, and what is alike."""
        names = [self.item, self.path.stem]
        for table in self.database.schema.tables:
            names += [table.name, *(column.name for column in table.columns)]
        return alike(stem for name in names for stem in stems(name))

    @lazy
    def column_stems(self) -> frozenset[str]:
        """The words of the columns' names."""
        return frozenset(
            stem for table in self.tables for c in table.columns for stem in stems(c.name)
        )

    def tempts(self, table: Table, columns: Sequence[frozenset[str]]) -> bool:
        """Whether a table of the same kind has a word for every column that is asked of one."""
        if kind_of(table) not in ("person", "place"):
            return False
        own = [each for each in self.tables if are_alike(table, each)]
        words = [alike(s for c in each.columns for s in stems(c.name)) for each in own]
        return any(all(column & has for column in columns) for has in words)

    def lacks(self, text: str) -> bool:
        """Whether no row of any table has all words of a text; False where that is not known."""
        words = re.findall(r"\w+", text)
        if not words:
            return False
        try:
            return not any(
                self.database.query(_holding(table, words)).rows
                for table in self.tables
                if table.columns
            )
        except ToolError:
            return False

    def is_askable(self, table: Table, column: Column) -> bool:
        """Whether a row can be asked for a column: its name is a noun, and it is no flag."""
        noun = noun_of(table, column)
        words = words_for(table, column)
        keys = {key.column.lower() for key in table.foreign_keys}
        return bool(
            noun.is_readable
            and not noun.counts
            and not column.primary_key
            and column.name.lower() not in keys
            and words
            and not words & DERIVED
            and not words <= VAGUE
            and len(noun.one.split(" ")) <= 3
            and not _DATED.match(noun.one)
            and not set(noun.one.split(" ")) & lexicon.PREPOSITIONS
            and not self.is_flag(table, column)
        )

    def is_flag(self, table: Table, column: Column) -> bool:
        """Whether a column has at most two values; of one that cannot be read, too."""
        sql = f"SELECT count(DISTINCT {quoted(column.name)}) < 3 FROM {quoted(table.name)}"
        try:
            return bool(self.database.query(sql).rows[0][0]) and holds_numbers(column)
        except ToolError:
            return True

    def values(self, table: Table, column: Column) -> list[str]:
        """Some texts of a column, in the order of a hash."""
        sql = (
            f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(table.name)}"
            f" WHERE typeof({quoted(column.name)}) = 'text' LIMIT {_COMPARED}"
        )
        try:
            rows = self.database.query(sql).rows
        except ToolError:
            return []
        return sorted((str(row[0]) for row in rows), key=place_of)


def _holding(table: Table, words: Sequence[str]) -> str:
    """A query for a row that has every one of these words in some cell, whatever their case."""
    conditions = []
    for word in words:
        spellings = dict.fromkeys((word, word.lower(), word.upper(), word.title()))
        cells = [
            f"instr({quoted(column.name)}, {literal(spelling)}) > 0"
            for column in table.columns
            for spelling in spellings
        ]
        cells += [
            f"instr(lower({quoted(column.name)}), {literal(word.lower())}) > 0"
            for column in table.columns
        ]
        conditions.append(f"({' OR '.join(cells)})")
    return f"SELECT 1 FROM {quoted(table.name)} WHERE {' AND '.join(conditions)} LIMIT 1"


@functools.lru_cache(maxsize=65_536)
def stems(name: str) -> frozenset[str]:
    """The words of a name in the singular and in lower case, without those that say nothing.

    >>> sorted(stems("home_towns")), sorted(stems("number_of_seats"))
    (['home', 'town'], ['number', 'seat'])
    """
    words = {english.singular(word.lower()) for word in words_of(name) if len(word) > 1}
    return frozenset(words - lexicon.LINK_WORDS - {"id", "the"})


def alike(words: Iterator[str] | frozenset[str]) -> frozenset[str]:
    """Words, and all that may stand for one of them.

    >>> "altitude" in alike(frozenset(["height"]))
    True
    """
    own = frozenset(words)
    return own.union(*(group for group in ALIKE if group & own))


def place_of(text: str) -> str:
    """What to sort by for an order that is the same everywhere and says nothing."""
    return hashlib.sha256(f"toolgym-unanswerable-{text}".encode("utf-8", "replace")).hexdigest()


@functools.lru_cache(maxsize=8192)
def noun_of(table: Table, column: Column) -> Noun:
    """What a column is called in a sentence."""
    return column_noun(column.name, table_words(table.name), holds_numbers(column))


def holds_numbers(column: Column) -> bool:
    """Whether a column is declared to hold numbers."""
    return any(word in column.type.upper() for word in ("INT", "REAL", "NUM", "FLOA", "DOUB"))


@functools.lru_cache(maxsize=8192)
def entity_of(name: str) -> Noun:
    """What a row of the table of this name is called in a sentence."""
    return table_noun(name)


def kind_of(table: Table) -> str:
    """The kind of thing that a table is about: "person", "place", or its noun."""
    last = entity_of(table.name).last
    return "person" if last in lexicon.PERSONS else "place" if last in lexicon.PLACES else last


@functools.lru_cache(maxsize=65_536)
def are_same_things(one: Table, other: Table) -> bool:
    """Both are of the same things: by their noun, and by a column that both have.

    A language of a school and one of programmers have the noun in common and nothing else.
    """
    if entity_of(one.name).last != entity_of(other.name).last:
        return False
    words = [frozenset(s for c in t.columns for s in stems(c.name)) for t in (one, other)]
    return bool((words[0] & words[1]) - VAGUE - {"language"} - set(table_words(one.name)))


def are_alike(one: Table, other: Table) -> bool:
    """Whether two tables are about the same kind of thing."""
    return kind_of(one) == kind_of(other)


def words_for(table: Table, column: Column) -> frozenset[str]:
    """The words of a column's name, and of what it is called in a sentence."""
    words = stems(column.name) | stems(noun_of(table, column).one)
    return words - {"type", "address"} or words


def could_have(table: Table, theirs: Table, column: Column) -> bool:
    """A table like another one could have a column of it: the same things, or people."""
    if are_same_things(table, theirs):
        return True
    if any(stems(each.name) & {"died", "death", "dead", "deceased"} for each in table.columns):
        return False  # people of the past have no telephone
    return kind_of(table) == "person" and words_for(theirs, column) <= PERSONAL

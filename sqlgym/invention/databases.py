"""Invented databases: small ones with plausible tables, as many and as different as asked for.

A model that learns from a dozen databases learns their tables by heart, and writes their columns in
queries on any other. These have two to five tables each out of some eighty things, with a choice of
their columns, under names of several styles, so that a query can only be written by who reads the
schema. What is asked of them is written by `sqlgym.synthesis`, as of any other database.

Each has a number, and a number is always the same database.
"""

from __future__ import annotations

import random
import sqlite3
import tomllib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError, EnvironmentFault

_RESERVED: Final = frozenset({"order", "match", "group", "index", "table", "references"})
_DIALECTS: Final = (
    *(("TEXT", "INTEGER", "REAL"), ("TEXT", "INTEGER", "REAL")),
    *(("VARCHAR(40)", "INT", "FLOAT"), ("varchar(60)", "int", "real")),
)
_NULLS: Final = 0.02  # of the values of a column
_WIDE: Final = 200  # a range whose ends differ by this factor is drawn from by orders of magnitude
_TRIES: Final = 20  # for a name that no other row has


@dataclass(frozen=True)
class Thing:
    """A thing of which a table has a row each.

    Attributes:
        name: In the singular.
        columns: Name and kind of values of each.
        parents: What a row may refer to.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """All things, and words to name them by; see the file for each."""

    things: dict[str, Thing]
    first_names: list[str]
    last_names: list[str]
    adjectives: list[str]
    nouns: list[str]
    syllables: list[str]
    people: list[str]
    places: list[str]
    titled: list[str]
    nameless: list[str]
    few: list[str]


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, read once."""
    file = resources("sqlgym.invention") / "vocabulary.toml"
    words: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    things = {name: _thing(name, **described) for name, described in words.pop("things").items()}
    return Vocabulary(things, **words)


def _thing(name: str, columns: list[str], parents: tuple[str, ...] = ()) -> Thing:
    pairs = (column.partition(" ") for column in columns)
    return Thing(name, tuple((column, kind) for column, _, kind in pairs), tuple(parents))


def invent_databases(
    out: str | Path, n: int, first: int = 0, told: Callable[[int, int], None] | None = None
) -> tuple[Path, ...]:
    """Write databases into a folder, as `inv_000.sqlite` and so on, and return their paths.

    Args:
        n: How many.
        first: The number of the first one. A number is always the same database.
        told: Called with how many are done, and `n`.

    Raises:
        ConfigurationError: There is such a file in the folder already.
        EnvironmentFault: One cannot be written.
    """
    out = Path(out)
    files = tuple(out / f"inv_{number:03d}.sqlite" for number in range(first, first + n))
    there = next((file for file in files if file.exists()), None)
    if there is not None:
        raise ConfigurationError(f"{there} is there already: name another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for done, file in enumerate(files):
            _Invention(random.Random(f"inv-{first + done}")).write(file)
            if told is not None:
                told(done + 1, n)
    except (OSError, sqlite3.Error) as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem}.") from problem
    return files


@dataclass(frozen=True)
class _Style:
    """How a database names things.

    Attributes:
        case: Of names: snake, camel, pascal or title.
        types: What text, whole numbers and others are called.
        reference: The name of a column that refers to `{name}`.
        is_plural: Whether tables are.
        key: The name of the primary key of `{name}`.
    """

    case: str
    types: tuple[str, str, str]
    reference: str
    is_plural: bool
    key: str

    @classmethod
    def drawn(cls, draw: random.Random) -> _Style:
        """A style at random."""
        return cls(
            draw.choice(("snake", "snake", "snake", "camel", "pascal", "title")),
            draw.choice(_DIALECTS),
            draw.choice(("{name}_id", "{name}_id", "{name}")),
            draw.random() < 0.65,
            draw.choice(("id", "{name}_id", "{name}_id", "{name}_id")),
        )

    def column(self, name: str) -> str:
        """A column's name, from one in small letters with underscores."""
        parts = name.split("_")
        if self.case == "snake":
            return _quoted(name)
        if self.case == "camel":
            return _quoted(parts[0] + "".join(part.capitalize() for part in parts[1:]))
        return _quoted(("_" if self.case == "title" else "").join(map(str.capitalize, parts)))

    def table(self, thing: str) -> str:
        """The name of a thing's table."""
        name = _plural(thing) if self.is_plural else thing
        return _quoted(name if self.case in ("snake", "camel") else name.capitalize())

    def key_of(self, thing: str) -> str:
        """The name of its primary key."""
        return self.column(self.key.format(name=thing))

    def type_of(self, kind: str) -> str:
        """The type of a column by the kind of its values."""
        return self.types[0 if kind[0] in "dct" else 1 if kind[0] in "yfi" else 2]

    def reference_type(self) -> str:
        """The type of what refers to a key."""
        return self.types[1]

    def key_type(self) -> str:
        """The type of a primary key."""
        return "INTEGER" if self.types[1] == "int" else self.types[1]


def _quoted(name: str) -> str:
    return f'"{name}"' if name.lower() in _RESERVED else name


def _plural(word: str) -> str:
    """
    >>> [_plural(word) for word in ("city", "boat", "match", "day")]
    ['cities', 'boats', 'matches', 'days']
    """
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


class _Invention:
    """One database in the making.

    Args:
        draw: Everything is drawn from it, in the order in which it is written.
    """

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._words = vocabulary()
        self._style = _Style.drawn(draw)
        self._rows: dict[str, int] = {}

    def write(self, file: Path) -> None:
        """Write it to a new file."""
        things = self._things(self._draw.choice((2, 3, 3, 4, 4, 5)))
        with closing(sqlite3.connect(file)) as database:
            for place, thing in enumerate(things):
                earlier = [each.name for each in things[:place]]
                self._write_table(database, thing, [p for p in thing.parents if p in earlier])
            self._write_link(database, things)
            database.commit()

    def _things(self, size: int) -> list[Thing]:
        """Things that refer to each other, as far as there are; parents first."""
        all_things = self._words.things
        names = [self._draw.choice([name for name, thing in all_things.items() if thing.parents])]
        while len(names) < size:
            above = [p for name in names for p in all_things[name].parents if p not in names]
            below = [
                name
                for name, thing in all_things.items()
                if name not in names and set(thing.parents) & set(names)
            ]
            if not above and not below:
                break
            names.append(self._draw.choice(above + below))
        order: list[str] = []

        def place(name: str) -> None:
            if name in order:
                return
            for parent in all_things[name].parents:
                if parent in names:
                    place(parent)
            order.append(name)

        for name in names:
            place(name)
        return [all_things[name] for name in order]

    def _write_table(
        self, database: sqlite3.Connection, thing: Thing, parents: Sequence[str]
    ) -> None:
        draw, style = self._draw, self._style
        chosen = draw.sample(thing.columns, min(len(thing.columns), draw.randrange(3, 7)))
        if draw.random() < 0.5:
            chosen.sort(key=thing.columns.index)
        columns = [f"{style.key_of(thing.name)} {style.key_type()} PRIMARY KEY"]
        has_name = thing.name not in self._words.nameless
        if has_name:
            title = "title" if thing.name in self._words.titled else "name"
            name = draw.choice(("name", "name", "name", f"{thing.name}_name", title))
            columns.append(f"{style.column(name)} {style.types[0]}{draw.choice(('', ' NOT NULL'))}")
        columns += [f"{style.column(name)} {style.type_of(kind)}" for name, kind in chosen]
        taken = {name for name, _ in chosen}
        for parent in parents:
            name = style.reference.format(name=parent)
            name = style.column(f"{parent}_id" if name in taken else name)
            columns.append(f"{name} {style.reference_type()} {self._referring_to(parent)}")
        rows = draw.randrange(12, 30) if thing.name in self._words.few else draw.randrange(18, 70)
        self._rows[thing.name] = rows
        database.execute(f"CREATE TABLE {style.table(thing.name)} ({', '.join(columns)})")
        names: set[str] = set()
        for number in range(1, rows + 1):
            values: list[Any] = [self._name(thing.name)] if has_name else []
            values += [self._value(kind) if draw.random() > _NULLS else None for _, kind in chosen]
            values += [self._parent(parent) for parent in parents]
            if has_name:
                values[0] = self._unused(values[0], names, thing.name)
            self._insert(database, style.table(thing.name), [number, *values])

    def _referring_to(self, parent: str) -> str:
        return f"REFERENCES {self._style.table(parent)}({self._style.key_of(parent)})"

    def _unused(self, name: str, names: set[str], thing: str) -> str:
        for _ in range(_TRIES):
            if name not in names:
                break
            name = self._name(thing)
        names.add(name)
        return name

    def _parent(self, parent: str) -> int:
        """The key of a row; nobody refers to the last two of many."""
        rows = self._rows[parent]
        return self._draw.randrange(1, rows - 1 if rows > 6 else rows + 1)

    def _write_link(self, database: sqlite3.Connection, things: Sequence[Thing]) -> None:
        """Link two things of which none refers to the other, more often than not."""
        draw, style = self._draw, self._style
        free = [
            (one.name, other.name)
            for place, one in enumerate(things)
            for other in things[place + 1 :]
            if one.name not in other.parents and other.name not in one.parents
            if not {one.name, other.name} & {"city", "province"}
        ]
        if not free or draw.random() >= 0.6:
            return
        one, other = draw.choice(free)
        if draw.random() < 0.5:
            one, other = other, one
        table = style.column(f"{one}_{other}") + "s" * style.is_plural
        own = draw.choice(("", "since_year y", "amount p1-400", "added_on d"))
        name, _, kind = own.partition(" ")
        keys = [style.column(f"{thing}_id") for thing in (one, other)]
        columns = [
            f"{key} {style.reference_type()} {self._referring_to(thing)}"
            for key, thing in zip(keys, (one, other), strict=True)
        ]
        columns += [f"{style.column(name)} {style.type_of(kind)}"] if own else []
        columns.append(f"PRIMARY KEY ({', '.join(keys)})")
        database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        pairs: set[tuple[int, int]] = set()
        most = max(2, self._rows[other] * 4 // 5)
        for _ in range(draw.randrange(30, 110)):
            pair = (draw.randrange(1, self._rows[one] + 1), draw.randrange(1, most))
            if pair not in pairs:
                pairs.add(pair)
                self._insert(database, table, [*pair, *([self._value(kind)] if own else [])])

    def _insert(self, database: sqlite3.Connection, table: str, values: Sequence[Any]) -> None:
        places = ", ".join("?" * len(values))
        database.execute(f"INSERT INTO {table} VALUES ({places})", values)

    def _name(self, thing: str) -> str:
        draw = self._draw
        if thing in self._words.people:
            return self._person()
        if thing in self._words.places:
            syllables = (draw.choice(self._words.syllables) for _ in range(draw.choice((2, 2, 3))))
            return "".join(syllables).capitalize()
        return f"{draw.choice(self._words.adjectives)} {draw.choice(self._words.nouns)}"

    def _person(self) -> str:
        words = self._words
        return f"{self._draw.choice(words.first_names)} {self._draw.choice(words.last_names)}"

    def _value(self, kind: str) -> Any:
        """A value of a kind; see `sqlgym.invention.vocabulary`."""
        draw, letter, rest = self._draw, kind[0], kind[1:]
        if letter == "y":
            return draw.randrange(1900, 2025)
        if letter == "d":
            return (date(2010, 1, 1) + timedelta(days=draw.randrange(5400))).isoformat()
        if letter == "f":
            return int(draw.random() < 0.4)
        if letter == "c":
            return draw.choice(rest[1:].split(","))
        if letter == "t":
            return self._person()
        low, high = map(float, rest.split("-"))
        return _rounded(letter, _between(low, high, draw.random()), high)


def _between(low: float, high: float, share: float) -> float:
    """A number of a range; of a wide one as many of each order of magnitude."""
    least = max(low, 1.0)
    if high / least > _WIDE:
        return float(least * (high / least) ** share)
    return low + (high - low) * share


def _rounded(letter: str, number: float, high: float) -> float:
    """A number as people would write it: not 48,273 workers, but 48,300."""
    digits = len(str(int(number)))
    if letter == "i":
        return int(round(number, -max(0, digits - 3)))
    if letter == "p":
        return round(number, 2) if high < 500 else int(round(number, -max(0, digits - 2)))
    return round(number, 1)

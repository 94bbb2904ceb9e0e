"""Invents small databases with plausible tables.

A model that is trained on a dozen databases memorizes their tables, and uses their columns in
queries on other databases. An invented database has two to five tables, and each table contains
things of one of about eighty kinds. A table has some of the columns that are possible for its kind,
and all names follow one of several styles. The number of a database determines its content.
"""

from __future__ import annotations

import random
import sqlite3
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError, EnvironmentFault

_USUAL: Final = ("TEXT", "INTEGER", "REAL")
_DIALECTS: Final = (_USUAL, _USUAL, ("VARCHAR(40)", "INT", "FLOAT"), ("varchar(60)", "int", "real"))
_NULLS: Final = 0.02  # share of NULLs among the values of a column
_WIDE: Final = 200  # ratio of the ends of a range above which the scale is logarithmic
_TRIES: Final = 20  # attempts to find an unused name


@dataclass(frozen=True)
class Thing:
    """A kind of thing, such as a school. A database has one table for each kind of thing that it
    contains.

    Attributes:
        name: The singular noun.
        columns: Name and value kind of each possible column; see `vocabulary.toml`.
        parents: Entity types that a row can refer to.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    parents: tuple[str, ...]


@cache
def vocabulary() -> tuple[dict[str, Thing], dict[str, list[str]]]:
    """Return the content of `vocabulary.toml`: things by name, and lists of words by name."""
    file = resources("sqlgym.invention") / "vocabulary.toml"
    words: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    things = {}
    for name, described in words.pop("things").items():
        pairs = (column.partition(" ") for column in described["columns"])
        columns = tuple((column, kind) for column, _, kind in pairs)
        things[name] = Thing(name, columns, tuple(described.get("parents", ())))
    return things, words


def invent_databases(
    out: str | Path, n: int, first: int = 0, progress: Callable[[int, int], None] | None = None
) -> tuple[Path, ...]:
    """Write databases (`inv_000.sqlite`, ...) into a folder, and return their paths.

    Args:
        out: The folder.
        n: The number of databases.
        first: The number of the first database.
        progress: Called with the number of finished databases and the total.

    Raises:
        ConfigurationError: A file exists already.
        EnvironmentFault: A file cannot be written.
    """
    out = Path(out)
    files = tuple(out / f"inv_{number:03d}.sqlite" for number in range(first, first + n))
    if taken := next((file for file in files if file.exists()), None):
        raise ConfigurationError(f"{taken} already exists: choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for done, file in enumerate(files):
            with closing(sqlite3.connect(file)) as database:
                _Invention(random.Random(f"inv-{first + done}"), database).write()
                database.commit()
            if progress is not None:
                progress(done + 1, n)
    except (OSError, sqlite3.Error) as problem:
        raise EnvironmentFault(f"{out} cannot be written: {problem}.") from problem
    return files


def _plural(word: str) -> str:
    """Return the plural of a noun.

    >>> [_plural(word) for word in ("city", "boat", "match", "day")]
    ['cities', 'boats', 'matches', 'days']
    """
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}{'es' if word.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


class _Invention:
    """Writes one database.

    Args:
        draw: The random number generator; choices are made in the order of writing.
        database: The empty database.
    """

    def __init__(self, draw: random.Random, database: sqlite3.Connection) -> None:
        self._draw, self._database = draw, database
        self._things, self._words = vocabulary()
        self._rows: dict[str, int] = {}
        self._case = draw.choice(("snake", "snake", "snake", "camel", "pascal", "title"))
        self._text, self._whole, self._real = draw.choice(_DIALECTS)
        self._reference = draw.choice(("{}_id", "{}_id", "{}"))
        self._is_plural = draw.random() < 0.65
        self._key = draw.choice(("id", "{}_id", "{}_id", "{}_id"))

    def write(self) -> None:
        """Write all tables."""
        things = self._choose_things(self._draw.choice((2, 3, 3, 4, 4, 5)))
        for place, thing in enumerate(things):
            earlier = {each.name for each in things[:place]}
            self._write_table(thing, [parent for parent in thing.parents if parent in earlier])
        self._write_link(things)

    def _choose_things(self, size: int) -> list[Thing]:
        """Return things that refer to each other where possible; parents come first."""
        things = self._things
        names = [self._draw.choice([name for name, thing in things.items() if thing.parents])]
        while len(names) < size:
            near = [p for name in names for p in things[name].parents if p not in names]
            near += [n for n in things if n not in names and set(things[n].parents) & set(names)]
            if not near:
                break
            names.append(self._draw.choice(near))

        def with_parents(name: str) -> Iterator[str]:
            for parent in (each for each in things[name].parents if each in names):
                yield from with_parents(parent)
            yield name

        order = dict.fromkeys(each for name in names for each in with_parents(name))
        return [things[name] for name in order]

    def _write_table(self, thing: Thing, parents: Sequence[str]) -> None:
        draw = self._draw
        chosen = draw.sample(thing.columns, min(len(thing.columns), draw.randrange(3, 7)))
        if draw.random() < 0.5:
            chosen.sort(key=thing.columns.index)
        key = "INTEGER" if self._whole == "int" else self._whole
        columns = [f"{self._key_of(thing.name)} {key} PRIMARY KEY"]
        has_name = thing.name not in self._words["nameless"]
        if has_name:
            title = "title" if thing.name in self._words["titled"] else "name"
            name = draw.choice(("name", "name", "name", f"{thing.name}_name", title))
            columns.append(f"{self._column(name)} {self._text}{draw.choice(('', ' NOT NULL'))}")
        columns += [f"{self._column(name)} {self._type(kind)}" for name, kind in chosen]
        taken = {name for name, _ in chosen}
        for parent in parents:
            name = self._reference.format(parent)
            columns.append(self._referring(f"{parent}_id" if name in taken else name, parent))
        rows = (
            draw.randrange(12, 30) if thing.name in self._words["few"] else draw.randrange(18, 70)
        )
        self._rows[thing.name] = rows
        table = self._table(thing.name)
        self._database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        names: set[str] = set()
        for number in range(1, rows + 1):
            values: list[Any] = [self._name(thing.name)] if has_name else []
            values += [self._value(kind) if draw.random() > _NULLS else None for _, kind in chosen]
            for parent in parents:  # no row refers to the last two rows of a large parent
                most = self._rows[parent]
                values.append(draw.randrange(1, most - 1 if most > 6 else most + 1))
            if has_name:
                for _ in range(_TRIES):
                    if values[0] not in names:
                        break
                    values[0] = self._name(thing.name)
                names.add(values[0])
            self._insert(table, [number, *values])

    def _write_link(self, things: Sequence[Thing]) -> None:
        """Link two things that do not refer to each other, in more than half of the databases."""
        draw = self._draw
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
        table = self._column(f"{one}_{other}{'s' * self._is_plural}")
        own = draw.choice(("", "since_year y", "amount p1-400", "added_on d"))
        name, _, kind = own.partition(" ")
        columns = [self._referring(f"{thing}_id", thing) for thing in (one, other)]
        columns += [f"{self._column(name)} {self._type(kind)}"] if own else []
        keys = ", ".join(self._column(f"{thing}_id") for thing in (one, other))
        columns.append(f"PRIMARY KEY ({keys})")
        self._database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        pairs: set[tuple[int, int]] = set()
        most = max(2, self._rows[other] * 4 // 5)
        for _ in range(draw.randrange(30, 110)):
            pair = (draw.randrange(1, self._rows[one] + 1), draw.randrange(1, most))
            if pair not in pairs:
                pairs.add(pair)
                self._insert(table, [*pair, *([self._value(kind)] if own else [])])

    def _insert(self, table: str, values: Sequence[Any]) -> None:
        self._database.execute(
            f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values
        )

    def _column(self, name: str) -> str:
        """Return the quoted name of a column in the style of the database."""
        if self._case != "snake":
            first, *rest = name.split("_")
            first = first if self._case == "camel" else first.capitalize()
            name = ("_" if self._case == "title" else "").join([first, *map(str.capitalize, rest)])
        return f'"{name}"'

    def _table(self, thing: str) -> str:
        name = _plural(thing) if self._is_plural else thing
        return f'"{name if self._case in ("snake", "camel") else name.capitalize()}"'

    def _key_of(self, thing: str) -> str:
        return self._column(self._key.format(thing))

    def _referring(self, name: str, parent: str) -> str:
        """Return a column that refers to a thing."""
        target = f"{self._table(parent)}({self._key_of(parent)})"
        return f"{self._column(name)} {self._whole} REFERENCES {target}"

    def _type(self, kind: str) -> str:
        return self._text if kind[0] in "dct" else self._whole if kind[0] in "yfi" else self._real

    def _name(self, thing: str) -> str:
        draw, words = self._draw, self._words
        if thing in words["people"]:
            return f"{draw.choice(words['first_names'])} {draw.choice(words['last_names'])}"
        if thing in words["places"]:
            syllables = (draw.choice(words["syllables"]) for _ in range(draw.choice((2, 2, 3))))
            return "".join(syllables).capitalize()
        return f"{draw.choice(words['adjectives'])} {draw.choice(words['nouns'])}"

    def _value(self, kind: str) -> Any:
        """Return a random value of a kind; see `vocabulary.toml`. Numbers are rounded to plausible
        values.
        """
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
            return self._name(self._words["people"][0])
        low, high = map(float, rest.split("-"))
        least, share = max(low, 1.0), draw.random()
        number = low + (high - low) * share
        if high / least > _WIDE:
            number = least * (high / least) ** share
        digits = len(str(int(number)))
        if letter == "i":
            return int(round(number, -max(0, digits - 3)))
        if letter == "p":
            return round(number, 2) if high < 500 else int(round(number, -max(0, digits - 2)))
        return round(number, 1)

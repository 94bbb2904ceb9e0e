"""Small generated worlds for a model of half a million parameters: the data set "tiny".

Three schemas of three tables, each filled eight times with different rows: `shop_0` to `shop_7`
have the same tables and names but other numbers. A question about a schema is asked of all eight,
and its answers differ, so they cannot be learnt by heart: the model must use its tools.

Seven kinds of question: a count, a maximum, a minimum, a sum, a count above a bound, a number and
a text looked up by name. A sixth of the texts, chosen by a hash of schema and text, is held out
for `dev`, where every question is therefore one that training never asked, of a kind that it did.

Names are short lowercase words and numbers have two digits, because a transcript's length is the
cost of training on it. No value names two things within a schema, so each question has one
reading.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlgym import layout
from sqlgym.layout import ColumnSource, DatabaseSource, FolderSource, TableSource, Value
from toolgym.cache import cache_folder

SEEDS: Final = 8
HELD_OUT: Final = 6  # one text in so many goes to dev
FEWEST_ROWS, MOST_ROWS = 10, 20  # of a table whose rows have no names


@dataclass(frozen=True)
class Kind:
    """What a table holds: a category, two numbers with their ranges, names if its rows have any."""

    category: str
    values: tuple[str, ...]
    numbers: Mapping[str, tuple[int, int]]
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[ColumnSource, ...]:
        """The columns in order: name (if any), category, numbers."""
        texts = [*(["name"] if self.names else []), self.category]
        return (
            *(ColumnSource(text, "TEXT", nullable=False) for text in texts),
            *(ColumnSource(number, "INTEGER", nullable=False) for number in self.numbers),
        )


WORLDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "shop": {
        "products": Kind(
            "category",
            ("home", "office", "garden"),
            {"price": (5, 99), "stock": (0, 60)},
            ("lamp", "chair", "desk", "mug", "sofa", "rug", "vase", "clock", "shelf", "bed"),
        ),
        "customers": Kind(
            "city",
            ("paris", "rome", "oslo"),
            {"age": (18, 80), "points": (0, 99)},
            ("anna", "ben", "carl", "dora", "eva", "finn", "gina", "hugo", "ivan", "jane"),
        ),
        "orders": Kind(
            "status", ("open", "paid", "sent"), {"amount": (10, 99), "quantity": (1, 30)}
        ),
    },
    "school": {
        "students": Kind(
            "house",
            ("red", "blue", "green"),
            {"age": (10, 19), "score": (20, 99)},
            ("kim", "leo", "mia", "noah", "olga", "paul", "rita", "sam", "tara", "uma"),
        ),
        "teachers": Kind(
            "subject",
            ("math", "art", "music"),
            {"salary": (30, 90), "years": (1, 40)},
            ("adams", "baker", "clark", "davis", "evans", "ford", "grant", "hill"),
        ),
        "courses": Kind(
            "level", ("easy", "medium", "hard"), {"credits": (1, 12), "seats": (8, 60)}
        ),
    },
    "lab": {
        "samples": Kind(
            "type",
            ("soil", "water", "air"),
            {"weight": (2, 70), "purity": (40, 99)},
            ("alpha", "beta", "gamma", "delta", "theta", "sigma", "omega", "kappa"),
        ),
        "devices": Kind(
            "room",
            ("north", "south", "east"),
            {"power": (5, 95), "hours": (0, 90)},
            ("laser", "probe", "scale", "pump", "oven", "mixer", "press", "scope"),
        ),
        "runs": Kind("state", ("new", "done", "failed"), {"minutes": (3, 90), "cost": (10, 99)}),
    },
}


def build_tiny(cache: Path | None = None) -> Path:
    """The data set "tiny" as a folder in the Spider layout, generated on first use.

    Its place is named by a hash of this file: other worlds never meet an old cache.

    Args:
        cache: The cache folder; None means `cache_folder()`.

    Raises:
        EnvironmentFault: The cache cannot be written.
    """
    digest = hashlib.sha256(f"{layout.FORMAT_VERSION}\n".encode() + Path(__file__).read_bytes())
    place = (cache or cache_folder()) / "sql" / f"tiny-{digest.hexdigest()[:16]}"
    return layout.install(place, generate)


def generate() -> FolderSource:
    """All worlds with their questions. Every question fits every filling of its schema."""
    databases = tuple(
        DatabaseSource(f"{schema}_{seed}", _fill(schema, seed))
        for schema in WORLDS
        for seed in range(SEEDS)
    )
    splits: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for schema, kinds in WORLDS.items():
        texts = [pair for table, kind in kinds.items() for pair in _questions(table, kind)]
        for number, (question, query) in enumerate(texts):
            for seed in range(SEEDS):
                entry = {"id": f"{schema}_{seed}-{number:04d}", "db_id": f"{schema}_{seed}"}
                entry |= {"question": question, "query": query}
                splits[is_held_out(schema, question)].append(entry)
    for entries in splits.values():  # mixed, so that the first hundred are of every kind
        entries.sort(key=lambda entry: hashlib.sha256(entry["id"].encode()).digest())
    return FolderSource(databases, train=tuple(splits[False]), dev=tuple(splits[True]))


def is_held_out(schema: str, question: str) -> bool:
    """Whether a question's text belongs to dev, whichever filling of the schema it is asked of."""
    digest = hashlib.sha256(f"{schema}|{question}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT == 0


def _fill(schema: str, seed: int) -> tuple[TableSource, ...]:
    rng = random.Random(f"{schema}-{seed}")
    return tuple(
        TableSource(table, kind.columns, rows=tuple(_rows(kind, rng)))
        for table, kind in WORLDS[schema].items()
    )


def _rows(kind: Kind, rng: random.Random) -> Iterator[tuple[Value, ...]]:
    """Rows in which every category occurs twice or more: no maximum or sum over nothing."""
    count = len(kind.names) or rng.randint(FEWEST_ROWS, MOST_ROWS)
    values = [*kind.values, *kind.values]
    values += [rng.choice(kind.values) for _ in range(count - len(values))]
    rng.shuffle(values)
    for n, value in enumerate(values):
        numbers = [rng.randint(low, high) for low, high in kind.numbers.values()]
        yield (*kind.names[n : n + 1], value, *numbers)


def _questions(table: str, kind: Kind) -> Iterator[tuple[str, str]]:
    """Every (question, gold query) about one table, of all seven kinds, in a fixed order."""
    category = kind.category
    for value in kind.values:
        where = f"FROM {table} WHERE {category} = '{value}'"
        yield f"How many {table} have {category} {value}?", f"SELECT COUNT(*) {where}"
        for number in kind.numbers:
            for word, function in (("highest", "MAX"), ("lowest", "MIN"), ("total", "SUM")):
                yield (
                    f"What is the {word} {number} of {table} with {category} {value}?",
                    f"SELECT {function}({number}) {where}",
                )
    for number, (low, high) in kind.numbers.items():
        for bound in _bounds(low, high):
            yield (
                f"How many {table} have {number} above {bound}?",
                f"SELECT COUNT(*) FROM {table} WHERE {number} > {bound}",
            )
    for name in kind.names:
        for column in (*kind.numbers, category):
            yield (
                f"What is the {column} of {name}?",
                f"SELECT {column} FROM {table} WHERE name = '{name}'",
            )


def _bounds(low: int, high: int) -> range:
    """Round bounds inside a range: tens where it is wide, every number where it is not."""
    return range(low, high) if high < 20 else range(low // 10 * 10 + 10, high, 10)

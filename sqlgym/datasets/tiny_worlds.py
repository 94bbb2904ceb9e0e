"""Small generated worlds for a model of half a million parameters: the data set "tiny".

Three schemas of three tables, each filled nine times with different rows: `shop_0` to `shop_8`
have the same tables and names but other numbers. A question about a schema is asked of each filling
in which its condition matters: with another answer than without. The answers of a question differ,
so they cannot be learned by heart: the model must use its tools.

Seven kinds of question: a count, a maximum, a minimum, a sum, a count above a bound, a number and
a text looked up by name. A sixth of the texts, chosen by a hash of schema and text, is held out
for `dev`, where every question is therefore one that training never asked, on a database and of a
shape that it knows. `dev-databases` asks of three other schemas, and `dev-shapes` asks the known
databases for maxima, minima and sums above a bound. All words of both are words of `train`, since
a model from scratch knows no others; they are put together as nowhere there.

Names are short lowercase words and numbers have two digits, because a transcript's length is the
cost of training on it. No value names two things within a schema, so each question has one
reading.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlgym.datasets import layout
from sqlgym.datasets.layout import ColumnSource, DatabaseSource, FolderSource, TableSource, Value
from toolgym.cache import cache_folder

SEEDS: Final = 9
HELD_OUT: Final = 6  # one text in so many goes to dev
NEW_SEEDS: Final = 2  # fillings of a schema that train has not
COMPOSED: Final = 5000  # the numbers of composed questions begin here
EXTREMES: Final = (("highest", "MAX"), ("lowest", "MIN"), ("total", "SUM"))
FEWEST_ROWS, MOST_ROWS = 10, 20  # of a table whose rows have no names

Entry = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """The columns of a table: a category, two numbers with their ranges, names if rows have any."""

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


def _anew(category_of: str, numbers_of: tuple[str, str], names_of: str = "") -> Kind:
    """A table of words that are in use: the category of one, a number each of two, names of one."""
    tables = {name: kind for world in WORLDS.values() for name, kind in world.items()}
    owners = {column: kind for kind in tables.values() for column in kind.numbers}
    category = tables[category_of]
    numbers = {number: owners[number].numbers[number] for number in numbers_of}
    names = tables[names_of].names if names_of else ()
    return Kind(category.category, category.values, numbers, names)


NEW_WORLDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    # No table has a column that the table of its name has above.
    "market": {
        "customers": _anew("students", ("salary", "hours"), "teachers"),
        "devices": _anew("customers", ("points", "credits"), "products"),
        "courses": _anew("orders", ("weight", "cost")),
    },
    "clinic": {
        "teachers": _anew("customers", ("power", "amount"), "customers"),
        "samples": _anew("products", ("price", "minutes"), "devices"),
        "orders": _anew("courses", ("score", "seats")),
    },
    "studio": {
        "students": _anew("samples", ("stock", "purity"), "customers"),
        "products": _anew("teachers", ("seats", "quantity"), "samples"),
        "runs": _anew("students", ("salary", "credits")),
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
    """All worlds with the questions whose condition matters."""
    databases, others = _databases(WORLDS, SEEDS), _databases(NEW_WORLDS, NEW_SEEDS)
    splits: dict[bool, list[Entry]] = {False: [], True: []}
    for entry in _telling(databases, _entries(WORLDS, SEEDS)):
        splits[is_held_out(_schema(entry["db_id"]), entry["question"])].append(entry)
    train, dev = (_mixed(splits[held_out]) for held_out in (False, True))
    more = {
        "dev-databases": _mixed(_telling(others, _entries(NEW_WORLDS, NEW_SEEDS))),
        "dev-shapes": _mixed(_telling(databases, _composed(databases))),
    }
    return FolderSource(databases + others, train, dev, more=more)


def _databases(worlds: Mapping[str, Mapping[str, Kind]], seeds: int) -> tuple[DatabaseSource, ...]:
    return tuple(
        DatabaseSource(f"{schema}_{seed}", _fill(schema, seed, kinds))
        for schema, kinds in worlds.items()
        for seed in range(seeds)
    )


def _schema(db_id: str) -> str:
    return db_id.rpartition("_")[0]


def _telling(databases: Iterable[DatabaseSource], entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries that have another answer without their condition.

    The others would reward a query that leaves the condition out.
    """
    with ExitStack() as stack:
        opened = {
            database.db_id: stack.enter_context(layout.in_memory(database.tables))
            for database in databases
        }
        for entry in entries:
            ask, query = opened[entry["db_id"]].execute, entry["query"]
            everything = query.partition(" WHERE ")[0]
            if ask(query).fetchall() != ask(everything).fetchall():
                yield entry


def _entries(worlds: Mapping[str, Mapping[str, Kind]], seeds: int) -> Iterator[Entry]:
    """Every question about a schema, of every filling."""
    for schema, kinds in worlds.items():
        texts = [pair for table, kind in kinds.items() for pair in _questions(table, kind)]
        for number, (question, query) in enumerate(texts):
            for seed in range(seeds):
                yield _entry(f"{schema}_{seed}", number, question, query)


def _composed(databases: Iterable[DatabaseSource]) -> Iterator[Entry]:
    """Questions of a shape that the others have not, where two rows at least are asked about."""
    for database in databases:
        number = COMPOSED
        for table in database.tables:
            kind = WORLDS[_schema(database.db_id)][table.name]
            places = {column.name: place for place, column in enumerate(table.columns)}
            for question, query, column, bound in _extremes(table.name, kind):
                number += 1
                above = [row for row in table.rows if int(row[places[column]] or 0) > bound]
                if len(above) >= 2:
                    yield _entry(database.db_id, number, question, query)


def _entry(db_id: str, number: int, question: str, query: str) -> Entry:
    names = {"id": f"{db_id}-{number:04d}", "db_id": db_id}
    return {**names, "question": question, "query": query}


def _mixed(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries in an order by hash, so that the first hundred are of every kind."""
    return tuple(sorted(entries, key=lambda entry: hashlib.sha256(entry["id"].encode()).digest()))


def is_held_out(schema: str, question: str) -> bool:
    """Whether a question's text belongs to dev, whichever filling of the schema it is asked of."""
    digest = hashlib.sha256(f"{schema}|{question}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT == 0


def _fill(schema: str, seed: int, kinds: Mapping[str, Kind]) -> tuple[TableSource, ...]:
    rng = random.Random(f"{schema}-{seed}")
    return tuple(
        TableSource(table, kind.columns, rows=tuple(_rows(kind, rng)))
        for table, kind in kinds.items()
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
            for word, function in EXTREMES:
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


def _extremes(table: str, kind: Kind) -> Iterator[tuple[str, str, str, int]]:
    """Every (question, gold query, column of the bound, bound) of the composed shape."""
    for number, column in itertools.permutations(kind.numbers, 2):
        for bound in _bounds(*kind.numbers[column]):
            for word, function in EXTREMES:
                yield (
                    f"What is the {word} {number} of {table} with {column} above {bound}?",
                    f"SELECT {function}({number}) FROM {table} WHERE {column} > {bound}",
                    column,
                    bound,
                )


def _bounds(low: int, high: int) -> range:
    """Round bounds inside a range: tens where it is wide, every number where it is not."""
    return range(low, high) if high < 20 else range(low // 10 * 10 + 10, high, 10)

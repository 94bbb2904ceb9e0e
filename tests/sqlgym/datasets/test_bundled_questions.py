"""The gates that every bundled question passes: each gold is right to read, and the only one.

"bundled-2" holds the databases of "bundled" and more; what both have is the same and tested once.
"""

import inspect
import itertools
import random
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlglot

from sqlgym.datasets import bundled, text_source
from sqlgym.datasets.layout import DatabaseSource, TableSource
from sqlgym.tasks.hardness import hardness

LEVELS = ("easy", "medium", "hard", "extra")
SHUFFLES = (0, 1, 2, 3)
MOST_ROWS, MOST_CHARACTERS = 100, 3500
ORDER = re.compile(
    r"\b(order|alphabetical\w*|ascending|sort|sorted|from the \w+ \w*|first|earliest)\b", re.I
)

SETS = ("bundled", "bundled-2")
SPLITS = ("train", "dev", "test")
SOURCES = {name: bundled.read(bundled.bundled_dir(name)) for name in SETS}
IN_SET = {
    name: [dict(entry) | {"split": split} for split in SPLITS for entry in getattr(source, split)]
    for name, source in SOURCES.items()
}
QUESTIONS = {entry["id"]: entry for name in SETS for entry in IN_SET[name]}
DATABASES = {one.db_id: one for source in SOURCES.values() for one in source.databases}


def every_question(check: Callable[..., None]) -> Callable[..., None]:
    """Check all questions of a database in one test, which names those that fail and why."""
    fixtures = [name for name in inspect.signature(check).parameters if name != "question"]

    @pytest.mark.parametrize("db_id", DATABASES)
    def test(db_id: str, request: pytest.FixtureRequest) -> None:
        given = {name: request.getfixturevalue(name) for name in fixtures}
        asked = [question for question in QUESTIONS.values() if question["db_id"] == db_id]
        failed = {}
        for question in asked:
            try:
                check(question, **given)
            except AssertionError as error:
                failed[question["id"]] = str(error)
        assert asked
        assert failed == {}

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


every_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, sqlite3.Connection]]:
    """Every database as it is built."""
    folders = [bundled.dataset_folder(name) for name in SETS]
    paths = [path for folder in folders for path in folder.glob("database/*/*.sqlite")]
    opened = {path.stem: sqlite3.connect(path) for path in paths}
    yield opened
    for database in opened.values():
        database.close()


@pytest.fixture(scope="module")
def shuffled() -> Iterator[dict[str, list[sqlite3.Connection]]]:
    """Every database with its rows in other orders and without keys: what ties there are, break."""
    opened = {name: [shuffle(one, seed) for seed in SHUFFLES] for name, one in DATABASES.items()}
    yield opened
    for copies in opened.values():
        for database in copies:
            database.close()


def shuffle(source: DatabaseSource, seed: int) -> sqlite3.Connection:
    database, rng = sqlite3.connect(":memory:"), random.Random(seed)
    for table in source.tables:
        create(database, table)
        rows = rng.sample(table.rows, len(table.rows)) if seed else table.rows[::-1]
        marks = ",".join("?" * len(table.columns))
        database.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', rows)
    database.execute(f"PRAGMA reverse_unordered_selects = {seed % 2}")
    return database


def create(database: sqlite3.Connection, table: TableSource) -> None:
    types = {"INTEGER": "INTEGER", "REAL": "REAL"}
    columns = ", ".join(f'"{c.name}" {types.get(c.type, "TEXT")}' for c in table.columns)
    database.execute(f'CREATE TABLE "{table.name}" ({columns})')


def has(part: str, sql: str) -> bool:
    """Whether the outermost query has an "order" or a "limit"."""
    return bool(sqlglot.parse_one(sql, dialect="sqlite").args.get(part))


def rounded(rows: list[tuple[object, ...]], ordered: bool) -> list[tuple[object, ...]]:
    """Rows to compare: a sum of decimals depends on the order of its terms in the last bits."""
    plain = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]
    return plain if ordered else sorted(plain, key=repr)


@every_question
def test_the_gold_is_short_and_complete(question, databases):
    rows = databases[question["db_id"]].execute(question["query"]).fetchall()
    assert rows, "the gold is empty"
    assert all(value is not None for row in rows for value in row), "the gold has a NULL"
    assert len(set(rows)) == len(rows), "the gold has a row twice: is it to be listed twice?"
    assert len(rows) <= MOST_ROWS
    assert len("\n".join(" | ".join(map(str, row)) for row in rows)) <= MOST_CHARACTERS


@every_question
def test_the_gold_does_not_depend_on_the_order_of_the_rows_in_the_file(
    question, databases, shuffled
):
    ordered = has("order", question["query"])
    gold = databases[question["db_id"]].execute(question["query"]).fetchall()
    for database in shuffled[question["db_id"]]:
        again = database.execute(question["query"]).fetchall()
        assert rounded(again, ordered) == rounded(gold, ordered)


@every_question
def test_an_order_is_asked_for_exactly_where_the_gold_has_one(question, databases):
    rows = databases[question["db_id"]].execute(question["query"]).fetchall()
    if has("order", question["query"]) and len(rows) > 1:
        assert ORDER.search(question["question"]), "the question must ask for the order"
    if not has("order", question["query"]):
        assert not re.search(r"\b(alphabetical|sort|sorted|ascending)\b", question["question"])
        assert not has("limit", question["query"])


@every_question
def test_numbers_are_exact_or_the_question_says_how_to_round(question, databases):
    rows = databases[question["db_id"]].execute(question["query"]).fetchall()
    assert all(v == round(v, 3) for row in rows for v in row if isinstance(v, float))
    if "ROUND(" in question["query"].upper():
        assert re.search(r"\bround(ed)?\b", question["question"])


@every_question
def test_the_answer_does_not_stand_in_the_question(question, databases):
    rows = databases[question["db_id"]].execute(question["query"]).fetchall()
    if len(rows) == len(rows[0]) == 1:
        answer = re.escape(str(rows[0][0]))
        assert not re.search(rf"(?<![\w.]){answer}(?![\w.])", question["question"], re.I)


@every_question
def test_the_level_in_the_file_is_the_measured_one(question):
    assert question["hardness"] == hardness(question["query"])


@every_question
def test_an_id_names_its_database(question):
    assert re.fullmatch(rf"{question['db_id']}-\d{{3}}", question["id"])


@pytest.mark.parametrize(
    ("name", "train", "held_out", "databases"),
    [("bundled", 220, 100, 7), ("bundled-2", 580, 600, 16)],
)
def test_there_are_enough_questions_on_enough_databases(name, train, held_out, databases):
    splits = Counter(question["split"] for question in IN_SET[name])
    assert splits["train"] >= train
    assert splits["dev"] + splits["test"] >= held_out
    assert len({question["db_id"] for question in IN_SET[name]}) >= databases


def test_the_newer_set_has_at_least_1200_questions_and_holds_the_older_one_whole():
    known = {(q["id"], q["question"], q["query"], q["split"]) for q in IN_SET["bundled-2"]}
    older = {(q["id"], q["question"], q["query"], q["split"]) for q in IN_SET["bundled"]}
    assert older <= known
    assert len(known) >= 1200


@every_set
def test_no_database_occurs_in_two_splits(name):
    db_ids = defaultdict(set)
    for question in IN_SET[name]:
        db_ids[question["split"]].add(question["db_id"])
    assert len(db_ids["dev"]) >= 2
    for one, other in itertools.combinations(db_ids, 2):
        assert not db_ids[one] & db_ids[other]


@every_set
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_has_its_share_in_every_split(name, level):
    for split in {question["split"] for question in IN_SET[name]}:
        levels = [q["hardness"] for q in IN_SET[name] if q["split"] == split]
        assert levels.count(level) / len(levels) >= 0.12


def test_no_question_and_no_query_occurs_twice():
    texts = Counter(question["question"].casefold() for question in QUESTIONS.values())
    queries = Counter((q["db_id"], q["query"].casefold()) for q in QUESTIONS.values())
    assert [text for text, count in (texts | queries).items() if count > 1] == []


@pytest.mark.parametrize("db_id", DATABASES)
def test_every_table_is_asked_about(db_id):
    asked = set()
    for question in QUESTIONS.values():
        if question["db_id"] == db_id:
            query = sqlglot.parse_one(question["query"], dialect="sqlite")
            asked |= {table.name for table in query.find_all(sqlglot.exp.Table)}
    assert {table.name for table in DATABASES[db_id].tables} <= asked


@pytest.mark.parametrize("name", SETS)
def test_every_folder_with_questions_is_in_the_set(name):
    folder = bundled.bundled_dir(name)
    there = {path.parent.name for path in folder.glob("*/schema.json")}
    assert there <= {one.db_id for one in SOURCES[name].databases}


def test_at_least_half_of_the_databases_hold_facts_and_say_where_these_come_from():
    folder = bundled.bundled_dir("bundled-2")
    facts = text_source.entry_of(folder).facts
    assert [db_id for db_id in facts if not (folder / db_id / "SOURCE.md").is_file()] == []
    assert set(facts) <= DATABASES.keys()
    assert 2 * len(facts) >= len(DATABASES)


@pytest.mark.parametrize(("name", "most"), [("bundled", 500_000), ("bundled-2", 2_000_000)])
def test_the_text_stays_small(name, most):
    files = Path(bundled.bundled_dir(name)).rglob("*")
    assert sum(path.stat().st_size for path in files if path.is_file()) < most

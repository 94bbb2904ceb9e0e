"""The gates that every bundled question passes.

A sample of one database of each split is checked in every run, and all of them every night.
"""

import functools
import itertools
import json
import random
import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing

import pytest
import sqlglot

from sqlgym import load_tasks
from sqlgym.datasets import bundled
from sqlgym.tasks.hardness import hardness
from sqlgym.tasks.splits import plain_question

LEVELS = ("easy", "medium", "hard", "extra")
SHUFFLES = (0, 1, 2, 3)
MOST_ROWS, MOST_CHARACTERS = 100, 3500
FIRST_ADDED = 201
"""The number of the first question of a database that was written by program."""
SAMPLE = ("seed_bank", "rivers", "airline")
proved = pytest.mark.parametrize(
    "asked", ["a sample", pytest.param("all", marks=pytest.mark.nightly)], indirect=True
)


@functools.cache
def folder():
    return bundled.dataset_folder("bundled")


@pytest.fixture(scope="module")
def questions():
    """All questions, each with its split."""
    return [
        entry | {"split": split}
        for split in ("train", "dev", "test")
        for entry in json.loads((folder() / f"{split}.json").read_bytes())
    ]


def path_of(db_id):
    return folder() / "database" / db_id / f"{db_id}.sqlite"


@pytest.fixture(scope="module")
def asked(request, questions):
    """Questions with the rows of their golds, all or those of a few databases."""
    of = [q for q in questions if request.param == "all" or q["db_id"] in SAMPLE]
    assert {q["split"] for q in of} == {"train", "dev", "test"}
    found = []
    for db_id in sorted({q["db_id"] for q in of}):
        with closing(sqlite3.connect(path_of(db_id))) as database:
            own = [q for q in of if q["db_id"] == db_id]
            own = own if request.param == "all" else own[::3]
            found += [(q, database.execute(q["query"]).fetchall()) for q in own]
    return found


def shuffled(db_id, seed):
    """A database with its rows in another order and without keys: what ties there are, break."""
    copy, rng = sqlite3.connect(":memory:"), random.Random(seed)
    with closing(sqlite3.connect(path_of(db_id))) as source:
        tables = source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = source.execute(f'SELECT * FROM "{table}"').fetchall()
            columns = source.execute(f"PRAGMA table_info('{table}')").fetchall()
            declared = ", ".join(f'"{column[1]}" {column[2]}' for column in columns)
            copy.execute(f'CREATE TABLE "{table}" ({declared})')
            rows = rng.sample(rows, len(rows)) if seed else rows[::-1]
            marks = ", ".join("?" * len(columns))
            copy.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
    copy.execute(f"PRAGMA reverse_unordered_selects = {seed % 2}")
    return copy


def has(part, sql):
    """Whether the outermost query has an "order" or a "limit"."""
    return bool(sqlglot.parse_one(sql, dialect="sqlite").args.get(part))


def rounded(rows, ordered):
    """Rows to compare: a sum of decimals depends on the order of its terms in the last bits."""
    plain = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]
    return plain if ordered else sorted(plain, key=repr)


def is_added(question):
    return int(question["id"].rpartition("-")[2]) >= FIRST_ADDED


def is_told(question, rows):
    """Whether the only value of an answer stands in the question."""
    value = re.escape(str(rows[0][0])) if len(rows) == len(rows[0]) == 1 else r"(?!)"
    return bool(re.search(rf"(?<![\w.]){value}(?![\w.])", question["question"], re.I))


@proved
def test_the_gold_is_short_and_complete_and_not_told(asked):
    wrong = {}
    for question, rows in asked:
        sound = {
            "some rows": 0 < len(rows) <= (25 if is_added(question) else MOST_ROWS),
            "no NULL": all(value is not None for row in rows for value in row),
            "no row twice": len(set(rows)) == len(rows),
            "short": len("\n".join(" | ".join(map(str, r)) for r in rows)) <= MOST_CHARACTERS,
            "not told": bool(rows) and not is_told(question, rows),
            "its id": re.fullmatch(rf"{question['db_id']}-\d{{3}}", question["id"]),
            "its level": question["hardness"] == hardness(question["query"]),
        }
        if not all(sound.values()):
            wrong[question["id"]] = sound
    assert wrong == {}


@proved
def test_the_gold_does_not_depend_on_the_order_of_the_rows_in_the_file(asked):
    wrong = set()
    for db_id in sorted({question["db_id"] for question, _ in asked}):
        own = [each for each in asked if each[0]["db_id"] == db_id]
        for seed in SHUFFLES:
            with closing(shuffled(db_id, seed)) as copy:
                for question, rows in own:
                    again = copy.execute(question["query"]).fetchall()
                    # Of the added ones, some list rows that tie: any order of these is right.
                    ordered = not is_added(question) and has("order", question["query"])
                    if rounded(again, ordered) != rounded(rows, ordered):
                        wrong.add(question["id"])
    assert wrong == set()


@proved
def test_every_question_can_be_played(asked):
    ids = {question["id"] for question, _ in asked}
    for split in ("train", "dev", "test"):
        assert load_tasks("bundled", split).filter(lambda task: task.id in ids).check() == {}


def test_there_are_enough_questions_on_enough_databases(questions):
    splits = Counter(question["split"] for question in questions)
    assert splits["train"] > 1000
    assert splits["dev"] + splits["test"] > 1000
    assert len({question["db_id"] for question in questions}) == 22


def test_no_database_occurs_in_two_splits(questions):
    db_ids = defaultdict(set)
    for question in questions:
        db_ids[question["split"]].add(question["db_id"])
    assert len(db_ids["dev"]) >= 2
    for one, other in itertools.combinations(db_ids, 2):
        assert not db_ids[one] & db_ids[other]


def test_every_level_has_its_share_in_every_split(questions):
    for split in ("train", "dev", "test"):
        levels = [question["hardness"] for question in questions if question["split"] == split]
        assert all(levels.count(level) / len(levels) >= 0.12 for level in LEVELS)


def test_no_question_and_no_query_occurs_twice(questions):
    texts = Counter(plain_question(question["question"]) for question in questions)
    queries = Counter((q["db_id"], q["query"].casefold()) for q in questions)
    assert [text for text, count in (texts | queries).items() if count > 1] == []

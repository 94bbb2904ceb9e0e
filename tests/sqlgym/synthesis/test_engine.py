"""Synthesis as a whole: what a seed decides, what the options do, what the report counts."""

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlgym.database.database import open_database
from sqlgym.judging.answers import refusal
from sqlgym.judging.several_results import several_results
from sqlgym.synthesis import (
    LEVELS,
    REJECTIONS,
    SynthesisReport,
    canonical_sql,
    engine,
    stream,
    synthesize,
)
from sqlgym.tasks.hardness import hardness
from sqlgym.tasks.splits import plain_question, skeleton
from toolgym import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]
N = 24
SCRIPT = """
CREATE TABLE author (author_id INTEGER PRIMARY KEY, name TEXT, country TEXT, birth_year INTEGER);
CREATE TABLE book (book_id INTEGER PRIMARY KEY, title TEXT, genre TEXT, pages INTEGER,
  price_eur REAL, author_id INTEGER REFERENCES author (author_id));
CREATE TABLE loan (loan_id INTEGER PRIMARY KEY, lent_on TEXT, days INTEGER,
  book_id INTEGER REFERENCES book (book_id));
CREATE TABLE shelf (shelf_id INTEGER PRIMARY KEY);
CREATE VIEW long_book AS SELECT * FROM book WHERE pages > 300;
"""


def fill(path):
    """Authors, their books, and who borrowed these: the same rows every time."""
    draw = random.Random("books")
    with sqlite3.connect(path) as connection:
        connection.executescript(SCRIPT)
        names = itertools.product(("Ada", "Ben", "Cora", "Dan"), ("Falk", "Gray", "Hill"))
        for place, name in enumerate(names):
            cells = (place, " ".join(name), draw.choice(("Peru", "Mali", "Iran")))
            connection.execute("INSERT INTO author VALUES (?, ?, ?, ?)", (*cells, 1900 + place * 7))
        titles = itertools.product(("Red", "Old", "Last", "Two"), ("Rivers", "Houses", "Songs"))
        for place, title in enumerate(titles):
            kind = draw.choice(("novel", "play", "essay"))
            cells = (place, " ".join(title), kind, draw.randrange(80, 600))
            price, author = draw.randrange(500, 4_000) / 100, draw.randrange(10)
            connection.execute(
                "INSERT INTO book VALUES (?, ?, ?, ?, ?, ?)", (*cells, price, author)
            )
        for place in range(60):
            day = (
                f"20{draw.randrange(20, 25)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
            )
            cells = (place, day, draw.randrange(1, 40), draw.randrange(11))
            connection.execute("INSERT INTO loan VALUES (?, ?, ?, ?)", cells)
    connection.close()
    return path


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("engine") / "books.db")


@pytest.fixture(scope="module")
def made(books):
    return synthesize(books, n=N)


def told(tasks):
    return [(t.question, t.sql, t.hardness, t.template, t.tables, t.canonical) for t in tasks]


def test_one_seed_and_content_give_the_same_tasks(books, made, tmp_path):
    copy = shutil.copy(books, tmp_path / "another name.bak")

    assert told(synthesize(open_database(copy), n=N).tasks) == told(made.tasks)


@pytest.mark.integration
def test_another_process_with_another_hash_seed_gives_the_same_tasks(books, made):
    script = (
        "import json, sys; from sqlgym.synthesis import synthesize\n"
        f"tasks = synthesize(sys.argv[1], n={N}).tasks\n"
        "print(json.dumps([[t.question, t.sql] for t in tasks]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script, str(books)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)

    assert json.loads(done.stdout) == [[t.question, t.sql] for t in made.tasks]


def test_another_seed_gives_other_tasks(books, made):
    other = {task.canonical for task in synthesize(books, n=N, seed=1).tasks}

    assert len(other - {task.canonical for task in made.tasks}) > N // 3


@pytest.mark.parametrize("few", [1, 20])
def test_the_first_tasks_of_the_stream_are_those_that_are_asked_for(books, made, few):
    assert told(itertools.islice(stream(books), few)) == told(made.tasks[:few])
    assert told(synthesize(books, n=few).tasks) == told(made.tasks[:few])


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (None, {"easy": 4, "medium": 4, "hard": 4, "extra": 4}),
        ({"medium": 0.5, "hard": 0.25, "easy": 0.25}, {"easy": 4, "medium": 8, "hard": 4}),
    ],
)
def test_levels_are_mixed_as_it_was_asked_for(books, shares, expected):
    tasks = synthesize(books, n=16, hardness=shares).tasks

    assert Counter(task.hardness for task in tasks) == expected
    assert Counter(task.hardness for task in tasks[:8]).keys() == expected.keys()


def test_a_level_that_runs_out_leaves_its_place_to_the_others_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 300)
    path = tmp_path / "small.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE hill (hill_id INTEGER PRIMARY KEY, height INTEGER)")
        rows = [(i, 100 + 13 * i % 71) for i in range(9)]
        connection.executemany("INSERT INTO hill VALUES (?, ?)", rows)
    connection.close()
    report = SynthesisReport()
    tasks = list(stream(path, report=report))

    assert 10 < len(tasks) == report.kept == sum(report.by_hardness.values())
    assert report.missing.keys() == set(LEVELS)
    for level, why in report.missing.items():
        assert f"after {report.by_hardness[level]} tasks, " in why or "none was found" in why
    assert report.waiting == 0
    assert report.candidates == report.kept + sum(report.rejected.values())


@pytest.mark.parametrize("variants", [1, 2])
def test_so_many_tasks_differ_in_their_literals_only(books, variants, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 300)
    every = stream(books, tables=["author"], hardness={"easy": 1}, variants=variants)
    counted = Counter(skeleton(task.canonical) for task in every)

    assert max(counted.values()) == variants


def tables_in(sql):
    return {table.name.lower() for table in sqlglot.parse_one(sql, "sqlite").find_all(exp.Table)}


@pytest.mark.parametrize("tables", [["AUTHOR", "book"], ["long_book"]])
def test_only_the_tables_that_are_named_are_asked_about(books, tables):
    made = synthesize(books, n=12, tables=tables)
    named = {name.lower() for name in tables}

    assert set().union(*(tables_in(task.sql) for task in made.tasks)) == named
    assert {name.lower() for task in made.tasks for name in task.tables} == named
    every = {"author", "book", "loan", "shelf", "long_book"}
    assert made.report.tables_left_out.keys() == every - named


def test_views_and_empty_tables_are_left_out_with_a_reason(made):
    assert made.report.tables_left_out == {
        "shelf": "It is empty.",
        "long_book": "It is a view, whose rows are those of tables.",
    }
    assert set().union(*(tables_in(task.sql) for task in made.tasks)) == {"author", "book", "loan"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"n": -3}, "n must be at least 1, got -3"),
        ({"tables": ["bok"]}, "tables: .*'bok'.*Did you mean 'book'"),
        ({"tables": "book"}, r"tables must be a list such as \['book'\], got 'book'"),
        ({"tables": []}, "no question is possible about .*no table with rows"),
        ({"tables": ["shelf"]}, "no table with rows .*shelf: It is empty"),
        ({"variants": 0}, "variants must be at least 1, got 0"),
        (
            {"hardness": {"brutal": 1}},
            "unknown level 'brutal'; the levels are easy, medium, hard, extra",
        ),
        ({"hardness": {"easy": -1}}, "the share of easy must be 0 or more, got -1"),
        ({"hardness": {"easy": float("nan")}}, "the share of easy must be 0 or more, got nan"),
        ({"hardness": {"easy": 0}}, "at least one share must be positive"),
        ({"hardness": {}}, "at least one share must be positive"),
    ],
)
def test_a_wrong_option_is_a_configuration_error_that_says_what_to_do(books, options, message):
    with pytest.raises(ConfigurationError, match=message):
        synthesize(books, **options)


def test_a_database_about_which_nothing_can_be_asked_is_told(tmp_path):
    path = tmp_path / "poor.db"
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE a (x); INSERT INTO a VALUES (1), (1)")
    connection.close()

    with pytest.raises(ConfigurationError, match=r"no suitable question .* Add rows, or write"):
        synthesize(path, n=3)


def test_progress_is_told_after_each_task(books):
    calls = []
    synthesize(books, n=5, progress=lambda done, total: calls.append((done, total)))

    assert calls == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_the_report_adds_up(made):
    report = made.report

    assert report.kept == len(made.tasks) == N
    assert report.by_hardness == Counter(task.hardness for task in made.tasks)
    assert report.by_template == Counter(task.template for task in made.tasks)
    assert 0 <= report.waiting <= engine.WAITING * len(LEVELS)
    assert report.candidates == report.kept + sum(report.rejected.values()) + report.waiting
    assert report.rejected.keys() <= REJECTIONS.keys()
    assert report.missing == {}


def test_inferred_references_are_told_and_declared_ones_are_not(books, tmp_path, made):
    bare = tmp_path / "bare.db"
    with sqlite3.connect(bare) as connection:
        connection.execute("ATTACH ? AS declared", (str(books),))
        for table in ("author", "book", "loan"):
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM declared.{table}")
    connection.close()

    assert made.report.references == []
    assert synthesize(bare, n=1).report.references == [
        "book.author_id -> author.author_id",
        "loan.book_id -> book.book_id",
    ]


def test_each_task_has_the_hardness_that_is_measured(made):
    assert all(task.hardness == hardness(task.sql) for task in made.tasks)


def test_no_two_tasks_share_a_question_or_a_query(made):
    assert len({plain_question(task.question) for task in made.tasks}) == N
    assert len({task.canonical for task in made.tasks}) == N
    assert all(task.canonical == canonical_sql(task.sql) for task in made.tasks)


def test_every_gold_has_one_fair_result(books, made):
    database = open_database(books)
    answers = Counter()
    for task in made.tasks:
        result = database.query(task.sql)
        assert refusal(result) is None, task
        assert several_results(database, task.sql, result) is None, task
        assert all(value is not None for row in result.rows for value in row), task
        answers[str(result.rows)] += len(result.rows) == len(result.rows[0]) == 1
    assert max(answers.values()) <= max(3, engine.COMMON * N) + 1

"""A small copy of a large database: its rows, and what it saves and settles."""

import sqlite3
import tempfile
from contextlib import closing

import pytest

from sqlgym.database.database import Database, open_database
from sqlgym.synthesis import proof, synthesize
from sqlgym.synthesis.drafting import Candidate
from sqlgym.synthesis.proof import Rejected, prove
from sqlgym.synthesis.reading.profiling import profile
from sqlgym.synthesis.reading.world import LARGE
from sqlgym.synthesis.small_copy import ROWS, small_copy

ORDERS, CUSTOMERS, SHOPS = LARGE + 10_000, 6_000, 12


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Sixty thousand orders of six thousand customers in twelve shops; shops have inspectors."""
    path = tmp_path_factory.mktemp("large") / "orders.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE shop (shop_id INTEGER PRIMARY KEY, city TEXT, CHECK (city <> 'Nowhere'));
            CREATE TABLE customer (customer_id INTEGER PRIMARY KEY, name TEXT, town TEXT,
                                   shop_id INTEGER REFERENCES shop);
            CREATE TABLE "order" (order_id INTEGER PRIMARY KEY, day TEXT, amount REAL,
                                  items INTEGER,
                                  "twice" INTEGER GENERATED ALWAYS AS (items * 2),
                                  customer_id INTEGER REFERENCES customer,
                                  "sold at" INTEGER REFERENCES shop);
            CREATE TRIGGER loud AFTER INSERT ON "order" BEGIN SELECT RAISE(ABORT, 'no'); END;
            DROP TRIGGER loud;
        """)
        towns = ("Oslo", "Rome", "Lima", "Cairo")
        connection.executemany(
            "INSERT INTO shop VALUES (?, ?)", [(i, f"City {i}") for i in range(SHOPS)]
        )
        connection.executemany(
            "INSERT INTO customer VALUES (?, ?, ?, ?)",
            [(i, f"Ann {i}th", towns[i % 4], i % SHOPS) for i in range(CUSTOMERS)],
        )
        connection.executemany(
            'INSERT INTO "order" (order_id, day, amount, items, customer_id, "sold at")'
            " VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    i,
                    f"20{10 + i % 15}-{1 + i % 12:02}-{1 + i % 28:02}",
                    i * 7919 % 90_001 / 100,
                    1 + i * 31 % 20,
                    i * 17 % CUSTOMERS,
                    i * 13 % SHOPS,
                )
                for i in range(ORDERS)
            ],
        )
        connection.commit()
    return path


@pytest.fixture(scope="module")
def small(path):
    copy = small_copy(open_database(path), profile(open_database(path)))
    assert copy is not None
    yield copy
    copy.close()
    assert not copy.database.path.exists()


def every_row(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute(f"SELECT * FROM {table}").fetchall())


@pytest.mark.parametrize(
    ("table", "most"), [("shop", SHOPS), ("customer", 1_000), ('"order"', 2 * ROWS)]
)
def test_the_copy_holds_rows_of_the_file_and_far_fewer(path, small, table, most):
    copied = every_row(small.database.path, table)

    assert copied <= every_row(path, table)
    assert 0 < len(copied) <= most


def test_references_of_the_copy_lead_somewhere(small):
    orphans = """SELECT count(*) FROM "order" WHERE
                 customer_id NOT IN (SELECT customer_id FROM customer)
                 OR "sold at" NOT IN (SELECT shop_id FROM shop)"""

    assert small.database.query(orphans).rows == ((0,),)


def test_rows_to_which_others_refer_come_with_all_of_these(path, small):
    some = 'SELECT customer_id, count(*) FROM "order" GROUP BY customer_id'
    of_file = {tuple(row) for row in open_database(path).query(some).rows}
    of_copy = {tuple(row) for row in small.database.query(some).rows}

    assert len(of_copy) == 1_000
    assert of_copy < of_file


def test_the_cost_on_the_file_is_told_from_the_copy(path, small):
    sql = 'SELECT "sold at", avg(amount) FROM "order" GROUP BY "sold at"'
    told = small.ticks(small.database.query(sql).ticks, ("order", "shop"))
    true = open_database(path).query(sql).ticks

    assert true / 2 < told < 2 * true


def test_no_copy_is_made_of_a_database_without_a_large_table(tmp_path):
    path = tmp_path / "few.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    assert small_copy(open_database(path), profile(open_database(path))) is None


class Listening(Database):
    """A database that writes down what it is asked."""

    def query(self, sql):
        self.__dict__.setdefault("asked", []).append(sql)
        return super().query(sql)


def asked_before_refusal(path, small, code, sql, contrasts=()):
    """What was asked of the file before a candidate was refused with a code."""
    world = profile(open_database(path))
    listening = Listening(path)
    candidate = Candidate("Which?", sql, ("order",), contrasts)
    with pytest.raises(Rejected, match=f"^{code}$"):
        prove(listening, candidate, {each.name: each for each in world.entities}, small)
    return listening.__dict__.get("asked", [])


@pytest.mark.parametrize(
    ("sql", "contrasts", "code"),
    [
        ('SELECT order_id FROM "order" WHERE items > 3', (), "too_long"),
        (
            'SELECT count(*) FROM "order" WHERE items > 0',
            ('SELECT count(*) FROM "order"',),
            "condition_without_effect",
        ),
        ('SELECT count(*) FROM "order" AS a, "order" AS b WHERE a.day < b.day', (), "gold_fails"),
        ('SELECT amount FROM "order" WHERE items > 1 ORDER BY items LIMIT 1', (), "tied_limit"),
    ],
)
def test_what_fails_on_the_copy_is_not_asked_of_the_file(path, small, sql, contrasts, code):
    assert asked_before_refusal(path, small, code, sql, contrasts) == []


def test_what_the_copy_does_not_show_is_asked_of_the_file(path, small):
    alone = 'SELECT day FROM "order" WHERE order_id = -1'

    assert small.database.query(alone).rows == ()
    assert asked_before_refusal(path, small, "empty", alone)


def test_tasks_of_a_large_table_hold_on_the_file_and_leave_nothing_behind(path, tmp_path):
    tempfile.tempdir = str(tmp_path)
    try:
        found = synthesize(path, n=8)
        again = synthesize(path, n=8)
    finally:
        tempfile.tempdir = None

    assert list(tmp_path.iterdir()) == []
    assert found.tasks == again.tasks
    assert sum("order" in task.tables for task in found.tasks) >= 3
    database = open_database(path)
    for task in found.tasks:
        result = database.query(task.sql)
        assert 0 < len(result.rows) <= proof.MOST_ROWS
        assert result.ticks * 1_000 <= database.limits.steps // 2

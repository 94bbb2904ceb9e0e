"""A small copy of a large database: its rows, and what it saves and settles."""

import itertools
import sqlite3
import tempfile
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlgym.database.database import open_database
from sqlgym.judging.ties import tied_limit
from sqlgym.synthesis import beside, engine, proof, synthesize
from sqlgym.synthesis.drafting import Candidate
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import Rejected, prove
from sqlgym.synthesis.schema import LARGE
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


def test_no_copy_is_made_of_a_database_without_a_large_table(tmp_path):
    path = tmp_path / "few.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")

    assert small_copy(open_database(path), profile(open_database(path))) is None


def test_what_the_copy_does_not_show_is_asked_of_the_file(path, small):
    ids = 'SELECT order_id FROM "order"'
    of_copy = {row for (row,) in small.database.query(ids).rows}
    alone = next(order for order in range(ORDERS) if order not in of_copy)
    sql = f'SELECT day, amount FROM "order" WHERE order_id = {alone}'
    world = profile(open_database(path))
    candidate = Candidate("Which?", sql, ("order",))

    assert small.database.query(sql).rows == ()
    found = prove(open_database(path), candidate, {e.name: e for e in world.entities}, small)
    assert len(found.rows) == 1


@pytest.mark.integration
def test_tasks_of_a_large_table_hold_on_the_file_and_leave_nothing_behind(
    path, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(beside, "THREADS", 1)
    found = synthesize(path, n=8)
    monkeypatch.setattr(beside, "THREADS", 3)
    again = synthesize(path, n=8)

    assert list(tmp_path.iterdir()) == []
    assert (found.tasks, found.report) == (again.tasks, again.report)
    assert sum("order" in task.tables for task in found.tasks) >= 3
    database = open_database(path)
    for task in found.tasks:
        result = database.query(task.sql)
        assert 0 < len(result.rows) <= proof.MOST_ROWS
        assert result.ticks * 1_000 <= database.limits.steps // 2


@pytest.mark.nightly
def test_what_is_kept_is_also_proved_without_the_small_copy(path, monkeypatch):
    accepted = []

    def remember(database, candidate, entities, shown):
        result = proof.prove_on_file(database, candidate, entities, shown)
        accepted.append((candidate, entities, shown))
        return result

    monkeypatch.setattr(engine, "prove_on_file", remember)
    synthesize(path, n=40, seed=1)
    tried = [(candidate, entities) for candidate, entities, shown in accepted if shown]

    assert len(tried) >= 10
    for candidate, entities in tried:
        assert prove(open_database(path), candidate, entities).rows


CONDITIONS = ("a > 1", "b = 1", "(a = 0 OR b = 2)", "a BETWEEN 1 AND 2", "b <> 0")
SOME_ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


@settings(max_examples=50)
@given(
    rows=SOME_ROWS,
    more=SOME_ROWS,
    select=st.sampled_from(("count(*)", "a", "a, b", "count(*), sum(a)", "sum(a)", "DISTINCT a")),
    where=st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3, unique=True),
    other=st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True),
    word=st.sampled_from((" AND ", " OR ")),
)
def test_what_differs_by_rows_on_some_differs_on_all(rows, more, select, where, other, word):
    gold = f"SELECT {select} FROM t WHERE {word.join(where)}"
    contrast = f"SELECT {select} FROM t" + f" WHERE {word.join(other)}" * bool(other)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b)")

        def differ():
            results = [connection.execute(sql).fetchall() for sql in (gold, contrast)]
            return sorted(results[0]) != sorted(results[1])

        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        on_some = differ()
        connection.executemany("INSERT INTO t VALUES (?, ?)", more)
        if proof._differs_by_rows(gold, contrast) and on_some:
            assert differ()


@pytest.mark.parametrize(
    ("gold", "left_out"),
    [
        ("SELECT avg(a) FROM t WHERE b = 1", " WHERE b = 1"),
        ("SELECT a FROM t WHERE b = 1 LIMIT 3", " WHERE b = 1"),
        ("SELECT a FROM t LEFT JOIN u ON t.a = u.a WHERE b = 1", " WHERE b = 1"),
        ("SELECT count(*) FROM t WHERE a > (SELECT avg(a) FROM t) AND b = 1", " AND b = 1"),
        ("SELECT count(*) FROM t WHERE a = 10", "0"),
        ("SELECT count(*) FROM t WHERE NOT a = 1", "NOT "),
        ("SELECT b, count(*) FROM t WHERE a = 1 GROUP BY b", " WHERE a = 1"),
    ],
)
def test_what_no_single_row_decides_is_asked_of_the_file(gold, left_out):
    assert not proof._differs_by_rows(gold, gold.replace(left_out, ""))


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    """A table in which some rows tie, also by their collation."""
    path = tmp_path_factory.mktemp("tied") / "tied.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a, b, c TEXT COLLATE NOCASE, d)")
        rows = [(9, 1, "x", 0), (8, 1, "X", 0), (8, 2, "y", 1), (5, 3, "z", 1.0), (4, 3, "Z", 2)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    return open_database(path)


ORDERS_BY = ["a DESC", "a ASC", "b DESC", "c ASC", "d ASC", "a + b DESC", "c || 'LIMIT' ASC"]


def test_a_clear_cut_is_no_tied_limit(tied):
    for order, limit in itertools.product(ORDERS_BY, range(1, 7)):
        sql = f"SELECT a, b FROM t WHERE c <> 'ORDER BY' ORDER BY {order} LIMIT {limit}"
        plain = tied_limit(tied, sql, tied.query(sql))
        try:
            clear = proof._cuts_clearly(tied, sql)
        except Rejected:
            clear = False
            assert plain is not None
        assert clear == (plain is None), sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b AS a FROM t ORDER BY a DESC LIMIT 1",
        "SELECT DISTINCT a FROM t ORDER BY a DESC LIMIT 1",
        "SELECT a FROM t ORDER BY 1 DESC LIMIT 1",
        "SELECT a FROM t ORDER BY a DESC, b ASC LIMIT 1",
        "SELECT a FROM (SELECT * FROM t LIMIT 1) ORDER BY a DESC LIMIT 1",
    ],
)
def test_nothing_is_told_of_the_cut_of_another_query(tied, sql):
    assert not proof._cuts_clearly(tied, sql)


def test_a_fault_of_the_file_comes_out_where_the_work_is_asked_for():
    def fail():
        raise OSError("gone")

    threads = beside.Threads()
    with pytest.raises(OSError, match="gone"):
        threads.begin(fail).result()
    threads.close()

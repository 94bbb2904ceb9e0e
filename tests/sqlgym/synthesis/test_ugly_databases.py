"""Databases as they are in the wild: tasks that make sense, or a clear reason; never a crash."""

import random
import re
import sqlite3
from contextlib import closing

import pytest

from sqlgym.database.database import open_database
from sqlgym.synthesis import LEVELS, synthesize
from toolgym import policies, rollout
from toolgym.errors import ConfigurationError, EnvironmentFault

LEGACY = """
CREATE TABLE T001_CUST (cust_no, cust_nm, cty_cd, crd_lmt, reg_dt, F_01, F_02);
CREATE TABLE T002_ORD (ord_no, cust_no, ord_dt, tot_amt_eur, stat);
CREATE TABLE "Größe der Straße" ("Straßen-Nr" INT, "Länge (m)" REAL, "Bezirk" TEXT, "日本" TEXT);
CREATE TABLE "order" ("select" INTEGER, "from" TEXT, "group by" REAL, "a""b" TEXT);
CREATE TABLE EMPTY_TBL (id INTEGER, nm TEXT);
CREATE TABLE all_null (a, b, c);
CREATE TABLE pictures (id INTEGER PRIMARY KEY, img BLOB);
CREATE VIEW v_big AS SELECT * FROM T002_ORD WHERE tot_amt_eur > 500;
CREATE VIEW v_broken AS SELECT * FROM gone;
"""
LARGE = """
CREATE TABLE shop (shop_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE sale (sale_id INTEGER PRIMARY KEY, shop_id, product TEXT, amount_eur REAL, qty INT);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
INSERT INTO shop SELECT i, 'Shop ' || i, substr('RomeOsloLima', 1 + i % 3 * 4, 4) FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows} - 1)
INSERT INTO sale SELECT i, i * 7919 % 50, substr('teamilkjam ', 1 + i * 31 % 3 * 3, 3),
    i * 104729 % 9973 / 100.0, i * 13 % 9 + 1 FROM n;
"""


def put(connection, table, rows):
    rows = list(rows)
    marks = ",".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def legacy(path):
    """No keys, cryptic and Unicode names, reserved words, empty tables, views, odd values."""
    draw = random.Random(7)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(LEGACY)
        customers = [
            (
                *(1000 + i, f"Cust {chr(65 + i % 26)}{i}", draw.choice("BHMKFS")),
                draw.choice([500, 1000, 2500, None]),
                f"20{draw.randint(10, 23)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
                *(draw.choice("YN"), draw.random()),
            )
            for i in range(120)
        ]
        put(connection, "T001_CUST", customers)
        orders = [
            (
                *(i, draw.randint(1000, 1119)),
                f"{draw.randint(1, 28):02}/{draw.randint(1, 12):02}/20{draw.randint(18, 23)}",
                *(round(draw.uniform(3, 900), 2), draw.choice(["O", "C", "X", None])),
            )
            for i in range(800)
        ]
        put(connection, "T002_ORD", orders)
        odd = ["it's", 'a "b"', "x;y", "line\nbreak", "  pad "]
        streets = [(i, draw.uniform(40, 4000), draw.choice("NSW"), "東京") for i in range(60)]
        put(connection, '"Größe der Straße"', streets)
        reserved = [(i, draw.choice(odd), draw.random(), "z") for i in range(60)]
        put(connection, '"order"', reserved)
        put(connection, "all_null", [(None, None, None)] * 60)
        put(connection, "pictures", [(i, draw.randbytes(40)) for i in range(60)])
    return path


def wide(path):
    """One table of 200 columns, most of them without a name that can be read."""
    draw = random.Random(8)
    columns = [f"m{i:03}_val REAL" for i in range(100)] + [f"q{i}_resp INT" for i in range(60)]
    columns += [f"attr_{i} TEXT" for i in range(38)]
    rows = [
        (
            *(i, draw.choice(["north", "south", "east"])),
            *(round(draw.gauss(10, 3), 3) for _ in range(100)),
            *(draw.randint(1, 5) for _ in range(60)),
            *(draw.choice(["lo", "mid", "hi", None, ""]) for _ in range(38)),
        )
        for i in range(300)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        names = ", ".join(["sample_id INTEGER PRIMARY KEY", "site TEXT", *columns])
        connection.execute(f"CREATE TABLE measurements ({names})")
        put(connection, "measurements", rows)
    return path


def large(path, rows):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(LARGE.format(rows=rows))
    return path


def not_utf8(path):
    """Names of towns in Latin-1, as files from elsewhere have them."""
    towns = [(i, f"K\xf6ln {i}".encode("latin-1"), 1000 + i * 7919 % 9000) for i in range(40)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE stadt (id INTEGER PRIMARY KEY, name TEXT, pop INTEGER)")
        insert = "INSERT INTO stadt VALUES (?, CAST(? AS TEXT), ?)"
        connection.executemany(insert, towns)
    return path


def solved(path, n):
    """The share of the tasks that the expert solves in the environment."""
    options = {"dataset": path, "split": "all", "synthesis": {"n": n}}
    return rollout.evaluate("sqlgym/Explore-v0", policies.ExpertPolicy(), **options).accuracy


def test_cryptic_names_and_no_keys_still_give_all_levels(tmp_path):
    path = legacy(tmp_path / "legacy.db")

    found = synthesize(path, n=40)

    assert set(found.report.by_hardness) == set(LEVELS)
    assert found.report.references == ["T002_ORD.cust_no -> T001_CUST.cust_no"]
    assert {"v_big", "v_broken", "EMPTY_TBL"} <= set(found.report.tables_left_out)
    asked = {table for task in found.tasks for table in task.tables}
    assert {"T001_CUST", "T002_ORD", "Größe der Straße"} <= asked
    assert synthesize(path, n=4, tables=["order"]).report.kept == 4
    assert not asked & {"v_big", "v_broken", "EMPTY_TBL", "all_null"}
    assert solved(path, 8) == 1.0


def test_two_hundred_columns_are_asked_about_by_their_names(tmp_path):
    path = wide(tmp_path / "wide.db")

    found = synthesize(path, n=16)

    assert len(found.tasks) == 16
    assert len({word for task in found.tasks for word in task.sql.split() if "_val" in word}) > 8
    assert all("column" in task.question for task in found.tasks if "_resp" in task.sql)
    assert solved(path, 16) == 1.0


def test_text_that_is_not_utf8_is_never_an_answer(tmp_path):
    path = not_utf8(tmp_path / "latin.db")

    found = synthesize(path, n=20)

    assert len(found.tasks) == 20
    database = open_database(path)
    cells = [(c, t) for t in found.tasks for row in database.query(t.sql).rows for c in row]
    assert cells
    assert all(isinstance(cell, int | float) for cell, _ in cells)


def test_a_world_of_nothing_but_cryptic_names_is_used_as_it_is(tmp_path):
    path = tmp_path / "cryptic.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE qqz (x7 TEXT, fld_3 INTEGER, zzqp INTEGER)")
    rows = [(f"v{n % 5}", n * 7 % 50, n * 11 % 30) for n in range(60)]
    database.executemany("INSERT INTO qqz VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()

    assert len(synthesize(path, n=10).tasks) == 10


@pytest.mark.nightly
def test_a_large_table_is_no_obstacle(tmp_path):
    path = large(tmp_path / "large.db", 1_000_000)

    found = synthesize(path, n=16)

    assert len(found.tasks) == 16
    assert any("sale" in task.tables for task in found.tasks)
    assert solved(path, 16) == 1.0


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("PRAGMA user_version = 3", "it has no table with rows"),
        ("CREATE TABLE t (a, b)", "it has no table with rows (t: It is empty.)"),
        ("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)", "no suitable question was found"),
        ("CREATE TABLE t (a); INSERT INTO t VALUES (NULL), (NULL)", "no suitable question was"),
        ("CREATE TABLE t (a); INSERT INTO t VALUES (x'00'), (x'01')", "no suitable question was"),
        ("CREATE VIEW v AS SELECT * FROM gone", "it has no table with rows"),
    ],
)
def test_where_nothing_can_be_asked_the_reason_is_told(tmp_path, script, words):
    path = tmp_path / "poor.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(script)

    with pytest.raises(ConfigurationError, match=re.escape(words)):
        synthesize(path, n=5)


def test_a_file_that_only_begins_like_a_database_is_the_machines_fault(tmp_path):
    path = tmp_path / "garbage.db"
    path.write_bytes(b"SQLite format 3\0" + random.Random(0).randbytes(5000))

    with pytest.raises(EnvironmentFault, match="cannot be read"):
        synthesize(path, n=5)

"""Ties: a LIMIT that cuts through one is found, whatever it looks like, and nothing else is."""

import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlgym.database.database import QueryResult, open_database
from sqlgym.datasets.load import load_tasks
from sqlgym.judging.answers import GoldAnswer, matches
from sqlgym.judging.ties import free_runs, tied_limit
from sqlgym.tasks.gold import gold_of
from tests.sweeps import sweep


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Ages 20 and 30 are one singer's each, 40 is that of three, two of whom share a name."""
    path = tmp_path_factory.mktemp("ties") / "band.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, age INTEGER);
        INSERT INTO singer VALUES
            (1, 'Ann', 20), (2, 'Bob', 30), (3, 'Cy', 40), (4, 'cy', 40), (5, 'Cy', 40);
        CREATE TABLE song (singer_id INTEGER, title TEXT);
        INSERT INTO song VALUES (1, 'a'), (1, 'b'), (2, 'c'), (3, 'd');
        """
    )
    connection.close()
    return open_database(path)


def tie(database, sql):
    return tied_limit(database, sql, database.query(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM singer ORDER BY age LIMIT 1",
        "SELECT id FROM singer ORDER BY age LIMIT 2;",
        "SELECT id FROM singer ORDER BY age LIMIT 5",
        "SELECT id FROM singer ORDER BY age LIMIT 9",
        "SELECT id FROM singer ORDER BY age LIMIT -1",
        "SELECT age FROM singer ORDER BY age DESC LIMIT 2",  # they tie, and are the same
        "SELECT DISTINCT age FROM singer ORDER BY age DESC LIMIT 1",
        "SELECT id FROM singer ORDER BY age LIMIT 1 OFFSET 1",
        "SELECT id FROM singer ORDER BY age LIMIT 2, 3",
        "SELECT count(*) FROM singer LIMIT 1",
        "SELECT id FROM singer WHERE EXISTS (SELECT 1 FROM song LIMIT 1)",
        "SELECT id FROM singer WHERE age = (SELECT age FROM singer ORDER BY age DESC LIMIT 1)",
        "SELECT singer_id FROM song GROUP BY singer_id ORDER BY count(*) DESC LIMIT 1",
        "SELECT 'ORDER BY age LIMIT 1' FROM singer -- LIMIT 1",
        "SELECT id FROM singer ORDER BY age -- upwards\n LIMIT /* only */ 1 -- one\n ;",
        "WITH old AS (SELECT * FROM singer) SELECT id FROM old ORDER BY age, id DESC LIMIT 4",
        "SELECT age FROM singer UNION SELECT singer_id FROM song ORDER BY 1 LIMIT 3",
        'SELECT id AS "limit" FROM singer ORDER BY "limit" LIMIT 2',
    ],
)
def test_a_limit_that_leaves_nothing_open_is_no_tie(database, sql):
    assert tie(database, sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM singer ORDER BY age DESC LIMIT 1",
        "SELECT id FROM singer ORDER BY age LIMIT 3",
        "SELECT id FROM singer ORDER BY age LIMIT 3, 1",  # the middle one of three that tie
        "SELECT id FROM singer ORDER BY age LIMIT 1 OFFSET 3",
        "SELECT id FROM singer ORDER BY age LIMIT 9 OFFSET 3",
        "SELECT id FROM singer ORDER BY age LIMIT -1 OFFSET 3",
        "SELECT id FROM singer LIMIT 1",
        "SELECT name FROM singer ORDER BY name DESC LIMIT 1",  # tie by collation, differ by case
        "SELECT count(*) FROM singer WHERE id > (SELECT id FROM singer ORDER BY age DESC LIMIT 1)",
        "WITH old AS (SELECT id FROM singer ORDER BY age DESC LIMIT 2) SELECT count(*) FROM old",
        "WITH all_of AS (SELECT * FROM singer) SELECT * FROM (SELECT id FROM all_of LIMIT 2)",
        "SELECT name, (SELECT title FROM song WHERE singer_id = id LIMIT 1) FROM singer",
        "SELECT id FROM singer ORDER BY age LIMIT 1 + 2",
        "SELECT id FROM singer ORDER BY age LIMIT (SELECT 1)",
    ],
)
def test_a_limit_that_cuts_through_a_tie_or_may_do_so_is_found(database, sql):
    assert tie(database, sql)


@st.composite
def tables(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=7))
    return rows, draw(st.integers(0, 8)), draw(st.integers(0, 4))


@settings(max_examples=60)
@given(tables())
def test_a_tie_is_found_exactly_if_another_order_of_the_rows_gives_another_result(table):
    """Of every table, all ways in which SQLite may order what ties: they agree, or it is a tie."""
    rows, limit, offset = table
    key = sorted(rows, key=lambda row: row[0])
    cuts = {offset, offset + limit} - {0}
    expected = any(0 < cut < len(key) and _open(key, cut) for cut in cuts)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (k, v)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    sql = f"SELECT v FROM t ORDER BY k LIMIT {limit} OFFSET {offset}"

    assert bool(tie(_Plain(connection), sql)) == expected


def _open(rows, cut):
    """The rows on both sides of a cut tie, and those that tie are not all the same."""
    tied = [value for key, value in rows if key == rows[cut][0]]
    return rows[cut - 1][0] == rows[cut][0] and len(set(tied)) > 1


class _Plain:
    """A database without a guard, which a property test can make a thousand times."""

    def __init__(self, connection):
        self._connection = connection

    def query(self, sql):
        cursor = self._connection.execute(sql)
        columns = tuple(name for name, *_ in cursor.description)
        return QueryResult(columns, tuple(cursor.fetchall()), False, frozenset({("t", "a")}), 0)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), min_size=1, max_size=7))
def test_rows_may_change_places_exactly_where_their_keys_are_equal(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (k, v)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    sql, database = "SELECT v FROM t ORDER BY k", _Plain(connection)
    result = database.query(sql)
    runs = free_runs(database, sql, result)
    answer = GoldAnswer(result.columns, result.rows, runs)
    for order in ("v", "v DESC", "rowid DESC"):
        other = connection.execute(f"{sql}, {order}").fetchall()
        assert matches(answer, [list(row) for row in other]).equal

    reversed_keys = connection.execute(f"{sql} DESC").fetchall()
    same = [[v for k, v in sorted(rows) if k == key] for key in sorted({k for k, _ in rows})]
    backwards = [sorted(group) for group in same[::-1]]
    if [len(group) for group in backwards] == [len(group) for group in same] and backwards != [
        sorted(group) for group in same
    ]:
        assert not matches(answer, [list(row) for row in reversed_keys]).equal


def test_the_free_rows_of_an_order_are_told(database):
    def runs(sql):
        return free_runs(database, sql, database.query(sql))

    assert runs("SELECT id FROM singer ORDER BY age;") == (1, 1, 3)
    assert runs("SELECT id FROM singer ORDER BY age, id -- all of them") == (1, 1, 1, 1, 1)
    assert runs("SELECT age FROM singer ORDER BY age DESC LIMIT 3") == (1, 1, 1)
    assert runs("SELECT id FROM singer WHERE id = 1 ORDER BY age") == (1,)
    assert runs("SELECT id, age FROM singer UNION SELECT 9, 20 ORDER BY age LIMIT 2") == (2,)


@pytest.mark.integration
def test_the_ties_of_real_spider_are_the_labelled_ones_and_few(spider):
    labels = {}
    for line in (spider / "meta.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        split = "dev" if entry["file"] == "dev.json" else "train"
        labels[f"{split}-{entry['index']:05}"] = entry
    refused = {}
    for split in ("train", "dev"):
        refused |= load_tasks(spider, split).check()

    found = {task_id for task_id, refusal in refused.items() if refusal.code == "tied_limit"}
    assert found == {task_id for task_id, entry in labels.items() if entry["limit_tie"]}
    assert len(refused) <= len(labels) // 10

    ordered = [
        task
        for split in ("train", "dev")
        for task in load_tasks(spider, split).playable()
        if gold_of(task).answer.runs
    ]
    free = {task.id for task in ordered if max(gold_of(task).answer.runs) > 1}
    assert free == {task.id for task in ordered if labels[task.id]["row_order"] == "order"}


GATED = pytest.param(("bundled", "dev"), id="bundled-dev", marks=pytest.mark.integration)
SHIPPED = [("bundled", "train"), ("tiny", "train"), ("tiny", "dev")]


@pytest.mark.parametrize("shipped", [GATED, *sweep(SHIPPED, [], "-".join)])
def test_no_bundled_task_is_refused(shipped):
    dataset, split = shipped
    assert load_tasks(dataset, split).check() == {}

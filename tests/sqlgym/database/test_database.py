"""The guarded connection: what it refuses, what it stops, and that it leaves no trace."""

import contextlib
import multiprocessing
import os
import pickle
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlgym.database.database import (
    ConnectionPool,
    Database,
    Limits,
    ResultCache,
    open_database,
)
from sqlgym.database.guard import GuardedConnection
from toolgym.errors import EnvironmentFault, ToolError

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
SCRIPT = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INT, born TEXT);
INSERT INTO singer VALUES (1, 'Joe', 52, '1970-01-02'), (2, 'Ann', 43, NULL), (3, 'Bob', 43, 'now');
CREATE TABLE concert (id INTEGER PRIMARY KEY, singer_id INT REFERENCES singer, "place name" TEXT);
INSERT INTO concert VALUES (1, 1, 'Rome'), (2, 1, 'Oslo'), (3, 2, 'Rome');
CREATE VIEW adult AS SELECT name, strftime('%Y', born) AS year FROM singer WHERE age > 17;
CREATE TABLE strange (t TEXT, b BLOB);
INSERT INTO strange VALUES (CAST(x'ff41' AS TEXT), x'00ff');
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "music.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT)
    connection.close()
    return path


@pytest.fixture
def database(path):
    return open_database(path)


def error_of(database, sql):
    with pytest.raises(ToolError, match=r"error\[") as caught:
        database.query(sql)
    return caught.value


def test_a_query_gives_columns_rows_and_the_tables_it_read(database):
    result = database.query("SELECT name, place FROM (SELECT 'x' AS place), SINGER WHERE id = 1;")
    assert result.columns == ("name", "place")
    assert result.rows == (("Joe", "x"),)
    assert (result.truncated, result.tables_read) == (False, {"singer"})


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT count(*) FROM Singer", {"singer"}),
        ("SELECT count(*) FROM main.singer", {"singer"}),
        ("SELECT 1 FROM singer, concert", {"singer", "concert"}),
        ("SELECT name FROM adult", {"adult", "singer"}),
        ("SELECT 3", set()),
        ("WITH singer AS (SELECT 1) SELECT count(*) FROM singer", set()),
        ("WITH singer(x) AS (VALUES (1)) SELECT count(*) FROM singer", set()),
        ("SELECT count(*) FROM (SELECT 1) AS singer", set()),
        ("SELECT value FROM json_each('[1]')", set()),
        ("SELECT name FROM sqlite_master", set()),
    ],
)
def test_tables_read_cannot_be_claimed_by_a_name(database, sql, tables):
    assert database.query(sql).tables_read == tables


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT NAME FROM Singer WHERE id = 1", {("singer", "name"), ("singer", "id")}),
        ("SELECT 7 FROM singer WHERE name > ''", {("singer", "name")}),
        ("SELECT 7 FROM singer, concert", {("singer", ""), ("concert", "")}),
        ("SELECT name FROM singer, concert", {("singer", "name"), ("concert", "")}),
        ("WITH s AS (SELECT name FROM singer) SELECT 1 FROM s", {("singer", "name")}),
        ("SELECT 3", set()),
    ],
)
def test_a_result_tells_the_columns_that_were_read(database, sql, columns):
    assert database.query(sql).columns_read == columns


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT strftime('%Y', '2014-05-03')", "2014"),
        ("SELECT date('2014-01-31', '+1 month')", "2014-03-03"),
        ("SELECT date(2456800.5)", "2014-05-23"),
        ("SELECT date(0, 'unixepoch')", "1970-01-01"),
        ("SELECT date('nonsense')", None),
        ("SELECT date(NULL)", None),
        ("SELECT year FROM adult WHERE name = 'Joe'", "1970"),
        ("SELECT 'now'", "now"),
        ("SELECT name FROM singer WHERE name LIKE 'jo%'", "Joe"),
        ("SELECT json_extract('{\"a\": 3}', '$.a')", 3),
        ('SELECT name FROM singer WHERE name = "Joe"', "Joe"),
        ("SELECT group_concat(name) FROM singer", "Joe,Ann,Bob"),
        ("SELECT t FROM strange", "\ufffdA"),
        ("SELECT b FROM strange", b"\x00\xff"),
        ("SELECT 1 -- a comment; with a semicolon", 1),
    ],
)
def test_what_is_steady_is_sqlites_own_result(database, sql, value):
    assert database.query(sql).rows[0][0] == value


def test_an_unknown_name_is_told_with_the_nearest_one(database):
    assert "'name' of table 'singer'" in error_of(database, "SELECT s.nmae FROM singer s").hint
    assert "singer" in error_of(database, "SELECT * FROM Singers").hint
    assert "singer, concert" in error_of(database, "SELECT * FROM xyzzy").hint
    assert (
        "'concert' has a column 'singer_id'"
        in error_of(database, "SELECT singer_id FROM singer").hint
    )
    assert error_of(database, "SELECT lenght('x')").hint == "Did you mean length()?"


def test_steps_are_counted_from_the_statements_start(path):
    sql = ENDLESS + "SELECT max(x) FROM (SELECT x FROM c LIMIT 50000)"
    fresh = Database(path).query(sql).ticks
    used = Database(path)
    used.query("SELECT count(*) FROM singer")
    assert used.query(sql).ticks == fresh > 100


def test_the_same_budget_ends_the_same_statement_everywhere(path):
    sql = ENDLESS + "SELECT max(x) FROM (SELECT x FROM c LIMIT 50000)"
    ticks = Database(path).query(sql).ticks
    assert Database(path, Limits(steps=ticks * 1_000)).query(sql).ticks == ticks
    short = Database(path, Limits(steps=(ticks - 1) * 1_000))
    assert error_of(short, sql).code == "too_many_steps"


def test_more_rows_or_bytes_than_allowed_are_truncated(path):
    rows = ENDLESS + "SELECT x FROM c LIMIT "
    assert not Database(path, Limits(rows=10)).query(rows + "10").truncated
    result = Database(path, Limits(rows=10)).query(rows + "11")
    assert (len(result.rows), result.truncated) == (10, True)
    wide = ENDLESS + "SELECT printf('%01000d', x) FROM c LIMIT 1000"
    result = Database(path, Limits(result_bytes=50_000)).query(wide)
    assert result.truncated
    assert len(result.rows) < 100


def test_results_and_errors_are_shared_and_an_error_is_raised_afresh(database, path):
    assert open_database(path) is database
    assert database.query("SELECT 1") is open_database(str(path)).query("SELECT 1")
    first, second = error_of(database, "SELECT nope"), error_of(database, "SELECT nope")
    assert first == second
    assert first is not second


def test_the_cache_forgets_the_least_recently_used(database):
    result = database.query("SELECT 1")
    cache = ResultCache(most_entries=2)
    for sql in ("a", "b"):
        cache.put(sql, result)
    cache.get("a")
    cache.put("c", result)
    assert [cache.get(sql) is not None for sql in "abc"] == [True, False, True]
    small = ResultCache(most_bytes=5_000)
    for number in range(100):
        small.put(str(number), result)
    assert sum(small.get(str(number)) is not None for number in range(100)) < 10


def test_a_file_that_changed_is_another_database(database, path):
    database.query("SELECT count(*) FROM singer")
    with sqlite3.connect(path) as writer:
        writer.executescript("CREATE TABLE more (x); INSERT INTO more VALUES (1)")
    assert open_database(path) is not database
    assert open_database(path).query("SELECT x FROM more").rows == ((1,),)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"", "not an SQLite"), (b"hello" * 100, "not an SQLite")],
)
def test_a_file_that_is_no_database_is_a_fault(tmp_path, content, message):
    path = tmp_path / "x.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EnvironmentFault, match=message):
        open_database(path)


def test_a_damaged_file_is_a_fault_and_not_the_agents_mistake(path):
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) - 100))
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        open_database(path).query("SELECT * FROM singer")


def test_a_database_deleted_under_way_is_a_fault_for_a_new_connection(path):
    database = Database(path)
    database.close_idle()
    path.unlink()
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        database.query("SELECT 1")


def test_an_unmerged_log_is_refused_with_the_command_that_merges_it(path):
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO concert VALUES (9, 1, 'Bonn')")
    writer.commit()
    with pytest.raises(EnvironmentFault, match=r'sqlite3 .*PRAGMA wal_checkpoint\(TRUNCATE\)"'):
        open_database(path)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.close()
    assert open_database(path).query("SELECT count(*) FROM concert").rows == ((4,),)


def test_a_file_in_write_ahead_mode_is_read_and_nothing_appears_beside_it(tmp_path):
    path = tmp_path / "d.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")
    assert Database(path).query("SELECT count(*) FROM t").rows == ((0,),)
    assert [each.name for each in tmp_path.iterdir()] == ["d.sqlite"]


def test_a_path_with_question_marks_and_blanks_is_opened(tmp_path, path):
    odd = tmp_path / "a b?c#d%20é.sqlite"
    odd.write_bytes(path.read_bytes())
    assert open_database(odd).query("SELECT count(*) FROM singer").rows == ((3,),)


def test_full_text_tables_of_the_file_can_be_searched(tmp_path):
    path = tmp_path / "text.sqlite"
    with sqlite3.connect(path) as writer:
        writer.executescript(
            "CREATE VIRTUAL TABLE docs USING fts5(body); INSERT INTO docs VALUES ('big cat')"
        )
    writer.close()
    database = open_database(path)
    assert database.query("SELECT body FROM docs WHERE docs MATCH 'cat'").rows == (("big cat",),)
    assert error_of(database, "INSERT INTO docs(docs) VALUES ('optimize')").code == "not_allowed"


def test_a_failed_opening_does_not_use_up_the_pool(tmp_path):
    pool = ConnectionPool(most=1)
    for _ in range(3):
        with pytest.raises(EnvironmentFault, match="cannot be read"):
            pool.take("x", lambda: GuardedConnection(tmp_path / "none", Limits()))


def count_in_child(database, queue):
    queue.put(database.query("SELECT count(*) FROM singer").rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_opens_its_own_connection(database):
    database.query("SELECT count(*) FROM singer")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=count_in_child, args=(database, queue))
    child.start()
    assert queue.get(timeout=300) == ((3,),)
    child.join()


def test_a_database_survives_a_pickle(database):
    assert pickle.loads(pickle.dumps(database)) is database


@settings(max_examples=60)
@given(sql=st.text(max_size=60) | st.text("SELECT*FROMsinger'\"();,-1/ ", max_size=40))
def test_no_text_raises_anything_but_a_tool_error(tmp_path_factory, sql):
    path = tmp_path_factory.getbasetemp() / "fuzz.sqlite"
    if not path.exists():
        with sqlite3.connect(path) as writer:
            writer.executescript(SCRIPT)
        writer.close()
    with contextlib.suppress(ToolError):
        open_database(path).query(sql)

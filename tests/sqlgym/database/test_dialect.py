"""What is told about SQL that SQLite cannot read: its own words, the place, and the SQLite form."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlgym.database import diagnosis
from sqlgym.database.database import Limits, open_database
from sqlgym.database.dialect import (
    FUNCTION_FORMS,
    blank_quoted,
    construct_form,
    misspelt_keyword,
    place_of_error,
    too_much,
)
from toolgym.errors import ToolError


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("dialect") / "d.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE t (name TEXT, d TEXT, x INT); CREATE TABLE u (name TEXT, y INT);"
        "INSERT INTO t VALUES ('a', '2020-01-01', 1);"
    )
    connection.close()
    return open_database(path)


def told(database, sql):
    with pytest.raises(ToolError, match=r"error\[") as caught:
        database.query(sql)
    return caught.value


FOREIGN = [
    ("SELECT name FROM t WHERE name ILIKE 'a'", "Write LIKE"),
    ("SELECT TOP 3 name FROM t", "end with LIMIT 3"),
    ("SELECT DISTINCT TOP (5) name FROM t", "end with LIMIT"),
    ("SELECT t.x::int FROM t", "CAST(t.x AS int)"),
    ("SELECT (x + 1)::text FROM t", "CAST(... AS text)"),
    ("SELECT name FROM t FETCH FIRST 3 ROWS ONLY", "end with LIMIT 3"),
    ("SELECT name FROM t LIMIT 5 OFFSET 2 ROWS", "LIMIT n OFFSET 2"),
    ("SELECT name FROM t WHERE d < NOW()", "There is no clock here"),
    ("SELECT EXTRACT(MONTH FROM d) FROM t", "CAST(strftime('%m', d) AS INTEGER)"),
    ("SELECT DATE_TRUNC('month', d) FROM t", "strftime('%Y-%m-01', d)"),
    ("SELECT YEAR(d) FROM t", "CAST(strftime('%Y', d) AS INTEGER)"),
    ("SELECT LEFT(name, 2) FROM t", "Write substr(text, "),  # newer versions read it as a name
    ("SELECT name FROM t WHERE name REGEXP 'a'", "GLOB"),
    ("SELECT name FROM t WHERE name ~ 'a'", "GLOB"),
    ("SELECT d - INTERVAL '1 day' FROM t", "date(d, '+1 day')"),
    ("SELECT INTERVAL '1 day' FROM t", "date(d, '+1 day')"),
    ("SELECT DATEDIFF(day, d, d) FROM t", "julianday(a) - julianday(b)"),
    ("SELECT POSITION('a' IN name) FROM t", "instr(text, part)"),
    ("(SELECT name FROM t) UNION (SELECT name FROM u)", "without parentheses"),
    ("SELECT x FROM t WHERE x > ALL (SELECT y FROM u)", "(SELECT max(x) ...)"),
    ("SELECT name FROM t EXCEPT ALL SELECT name FROM u", "EXCEPT without ALL"),
    ("SELECT DISTINCT ON (x) name FROM t", "GROUP BY"),
    ("SELECT name FROM t WHERE d > DATE '2020-01-01'", "as text alone"),
    ("SHOW TABLES", "Use the tool describe"),
    ("SELECT name, FROM t", "Leave out the comma"),
    ("SELECT GREATEST(x, 2) FROM t", "max(a, b)"),
]


@pytest.mark.parametrize(("sql", "form"), FOREIGN)
def test_another_dialect_is_answered_with_the_form_that_sqlite_reads(database, sql, form):
    error = told(database, sql)
    assert form in error.hint
    assert error.message.startswith(("SQLite says: ", "There is no "))


@pytest.mark.parametrize(
    ("name", "sql"), [("concat", "CONCAT(name, 'x')"), ("string_agg", "STRING_AGG(name, ',')")]
)
def test_a_function_that_only_newer_versions_know_is_told_where_it_is_missing(database, name, sql):
    if sqlite3.sqlite_version_info >= (3, 44):
        assert database.query(f"SELECT {sql} FROM t").rows
    else:
        assert told(database, f"SELECT {sql} FROM t").hint == FUNCTION_FORMS[name]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `name` FROM t LIMIT 5, 10",
        "SELECT [name] || 'x' FROM t",
        'SELECT x FROM t WHERE name = "a"',
        "SELECT x FROM t WHERE x == 1 AND name IS NOT 'b'",
    ],
)
def test_what_sqlite_reads_is_not_complained_about(database, sql):
    database.query(sql)


SLIPS = [
    ("SELECT name FORM t", "column 18, 't'", "Did you mean FROM for 'FORM'?"),
    ("SELEC name FROM t", "column 1, ", "Did you mean SELECT for 'SELEC'?"),
    ("SELECT x FROM t WHER x = 1", "column 22, 'x = 1'", "Did you mean WHERE for 'WHER'?"),
    ("SELECT count(name FROM t", "column 19, 'FROM t'", "Expected there: )."),
    ("SELECT CASE WHEN x THEN 1 FROM t", "column 27", "Expected there: END."),
    ("SELECT name\nFROM t WHERE x IN (SELECT y\nFROM u\nFROM)", "line 4, column 1", "Expected"),
    ("SELECT x FROM t WHERE x = 1 AND AND d = 2", "column 33, 'AND d = 2'", "Check the SQL"),
]


@pytest.mark.parametrize(("sql", "place", "hint"), SLIPS)
def test_a_slip_is_told_with_its_place_and_what_was_expected(database, sql, place, hint):
    error = told(database, sql)
    assert error.message.startswith('SQLite says: near "')
    assert f"It breaks at {place}" in error.message
    assert hint in error.hint


def test_a_statement_that_ends_too_early_says_so(database):
    assert told(database, "SELECT x FROM t WHERE x IN (1, 2").hint == "Expected there: )."
    assert "ends too early" in told(database, "SELECT x FROM t WHERE").hint


def test_an_ambiguous_column_is_told_with_its_tables(database):
    error = told(database, "SELECT name FROM t JOIN u ON x = y")
    assert (error.code, error.message) == ("ambiguous_column", "The column 'name' is in t, u.")
    assert "as in t.name" in error.hint


def test_a_name_in_double_quotes_that_was_meant_as_text_is_told(database):
    said = 'no such column: "abc" - should this be a string literal in single-quotes?'
    error = diagnosis._read_message(said, 'SELECT x FROM t WHERE name = "abc"', database.schema)
    assert error.code == "unknown_column"
    assert error.hint == "Text stands in single quotes: 'abc'."


def test_a_query_that_is_too_much_is_told_what_made_it_so(tmp_path):
    path = tmp_path / "big.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (x INT)")
    connection.execute("CREATE TABLE b (x INT)")
    for table in "ab":
        connection.executemany(f"INSERT INTO {table} VALUES (?)", [(n,) for n in range(1_000)])
    connection.commit()
    connection.close()
    small = open_database(path, Limits(steps=200_000))
    error = told(small, "SELECT count(*) FROM a, b WHERE a.x + 1 > 0 AND b.x > 1")
    assert (error.code, error.hint) == (
        "too_many_steps",
        "It pairs each row of a with each of b: join them on a key.",
    )
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    assert "WITH RECURSIVE does not end" in told(small, endless).hint


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a JOIN b ON a.x = b.x",
        "SELECT * FROM a, b WHERE a.x = b.x",
        "SELECT * FROM a JOIN b USING (x)",
        "SELECT * FROM a, b WHERE x = y",
        "SELECT",
        "(" * 5_000,
        "x" * 100_000,
    ],
)
def test_a_join_on_a_key_is_not_blamed(sql):
    assert too_much(sql) == ""


def test_what_stands_in_quotes_or_comments_is_no_foreign_construct():
    assert construct_form("SELECT 'ILIKE x::int' FROM t -- TOP 3\nWHERE \"a::b\" = 1") == ""
    assert blank_quoted("a 'b''c' d") == "a '    ' d"


@given(st.text(max_size=60), st.text(max_size=10))
def test_no_text_makes_the_advice_fail(sql, word):
    construct_form(sql)
    too_much(sql)
    place = place_of_error(f"{sql}{word}{sql}", f'near "{word}": syntax error')
    if place is not None:
        misspelt_keyword(sql, place)

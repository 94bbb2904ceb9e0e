"""Messages about SQL that failed: nearest names, places, and queries of other databases."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlgym.database import diagnosis
from sqlgym.database.database import open_database
from sqlgym.database.dialects import in_sqlite
from sqlgym.database.functions import functions_of_sqlite
from toolgym.errors import ToolError


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("diagnosis") / "d.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE t (name TEXT, d TEXT, x INT); CREATE TABLE u (name TEXT, y INT);"
        "CREATE TABLE patients (patient_id INT, name TEXT, height REAL);"
        "CREATE TABLE admissions (patient_id INT, ward TEXT);"
        "INSERT INTO t VALUES ('abc', '2020-01-31', 1), ('x', '2021-05-06', NULL);"
        "INSERT INTO u VALUES ('abc', 1)"
    )
    connection.close()
    return open_database(path)


def told(database, sql):
    with pytest.raises(ToolError, match=r"error\[") as caught:
        database.query(sql)
    return caught.value


FOREIGN = {
    "SELECT TOP 1 name FROM t": [("abc",)],
    "SELECT DISTINCT TOP (1) name FROM t ORDER BY name": [("abc",)],
    "SELECT name FROM t WHERE name ILIKE 'A%'": [("abc",)],
    "SELECT t.x::text FROM t LIMIT 1": [("1",)],
    "SELECT name FROM t FETCH FIRST 1 ROWS ONLY": [("abc",)],
    "SELECT name FROM t ORDER BY name OFFSET 1 ROWS FETCH NEXT 5 ROWS ONLY": [("x",)],
    "SELECT EXTRACT(MONTH FROM d) FROM t": [(1,), (5,)],
    "SELECT DATE_PART('year', d) FROM t": [(2020,), (2021,)],
    "SELECT DATEPART(year, d) FROM t": [(2020,), (2021,)],
    "SELECT DATE_TRUNC('month', d) FROM t": [("2020-01-01",), ("2021-05-01",)],
    "SELECT YEAR(d), DAY(d) FROM t": [(2020, 31), (2021, 6)],
    "SELECT LEFT(name, 2), RIGHT(name, 1) FROM t": [("ab", "c"), ("x", "x")],
    "SELECT d - INTERVAL '1 day' FROM t": [("2020-01-30",), ("2021-05-05",)],
    "SELECT d + INTERVAL '1' MONTH FROM t LIMIT 1": [("2020-03-02",)],
    "SELECT DATE_ADD(d, INTERVAL 1 DAY) FROM t": [("2020-02-01",), ("2021-05-07",)],
    "SELECT DATEADD(day, 1, d) FROM t": [("2020-02-01",), ("2021-05-07",)],
    "SELECT DATEDIFF(day, '2020-01-01', d) FROM t LIMIT 1": [(30,)],
    "SELECT DATEDIFF(d, '2020-01-01') FROM t LIMIT 1": [(30,)],
    "SELECT POSITION('b' IN name) FROM t": [(2,), (0,)],
    "SELECT CHARINDEX('b', name) FROM t": [(2,), (0,)],
    "(SELECT name FROM t) EXCEPT (SELECT name FROM u)": [("x",)],
    "SELECT DISTINCT ON (name) name FROM t ORDER BY name": [("abc",), ("x",)],
    "SELECT name FROM t WHERE d > DATE '2021-01-01'": [("x",)],
    "SELECT name, FROM t": [("abc",), ("x",)],
    "SELECT GREATEST(x, 2) FROM t LIMIT 1": [(2,)],
    "SELECT CONCAT(name, '-', d) FROM t LIMIT 1": [("abc-2020-01-31",)],
    "SELECT STRING_AGG(name, '; ') FROM t": [("abc; x",)],
    "SELECT GROUP_CONCAT(name SEPARATOR '; ') FROM t": [("abc; x",)],
    "SELECT IF(x > 0, 'a', 'b') FROM t": [("a",), ("b",)],
    "SELECT ISNULL(x, 0) FROM t": [(1,), (0,)],
    "SELECT ISNULL(x) FROM t": [(0,), (1,)],
    "SELECT NVL(x, 0) FROM t": [(1,), (0,)],
    "SELECT SUBSTRING(name FROM 1 FOR 2) FROM t": [("ab",), ("x",)],
    "SELECT LEN(name) FROM t": [(3,), (1,)],
    "SELECT DATE_FORMAT(d, '%Y-%m') FROM t": [("2020-01",), ("2021-05",)],
    "SELECT TO_CHAR(d, 'YYYY-MM') FROM t": [("2020-01",), ("2021-05",)],
    "SELECT COUNT_IF(x > 0) FROM t": [(1,)],
    "SELECT x FROM t WHERE x <=> 1": [(1,)],
    "SELECT CONVERT(INT, x) FROM t LIMIT 1": [(1,)],
    "SELECT TRY_CAST(x AS INT) FROM t LIMIT 1": [(1,)],
    "SELECT name FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY name) = 1": [("abc",)],
    "SELECT TRIM(BOTH 'a' FROM name) FROM t": [("bc",), ("x",)],
    "SELECT name FROM t WHERE name REGEXP 'a'": None,
    "SELECT name FROM t WHERE x > ALL (SELECT y FROM u)": None,
    "SELECT name FROM t EXCEPT ALL SELECT name FROM u": None,
    "SELECT STDDEV(x) FROM t": None,
    "SELECT name FROM t WHERE d < NOW()": None,
}


NEWER = ("SELECT CONCAT", "SELECT STRING_AGG", "SELECT IF(")
"""Read by newer versions of SQLite."""


@pytest.mark.parametrize(("sql", "rows"), FOREIGN.items())
def test_a_query_for_another_database_is_answered_with_one_that_works(database, sql, rows):
    if sql.startswith(NEWER) and sqlite3.sqlite_version_info >= (3, 44):
        assert list(database.query(sql).rows) == rows
        return
    error = told(database, sql)
    assert error.code == "sql_error"
    if rows is None:
        assert error.example == {}
    else:
        assert error.example["name"] == "query"
        assert list(database.query(error.example["arguments"]["sql"]).rows) == rows


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
    ("SELECT name FORM t", "Did you mean FROM for 'FORM'?"),
    ("SELEC name FROM t", "Did you mean SELECT for 'SELEC'?"),
    ("SELECT x FROM t WHER x = 1", "Did you mean WHERE for 'WHER'?"),
    ("SELECT count(name FROM t", "Expected there: )."),
    ("SELECT CASE WHEN x THEN 1 FROM t", "Expected there: END."),
    ("SELECT * FROM t PIVOT (x)", "Check the SQL around that word; this is SQLite."),
    ("SELECT x FROM t WHERE x = 1 AND AND d = 2", "Check the SQL"),
    ("SHOW TABLES", "Use the tool describe"),
]


@pytest.mark.parametrize(("sql", "hint"), SLIPS)
def test_a_slip_is_told_with_what_was_expected(database, sql, hint):
    error = told(database, sql)
    assert error.message.startswith('SQLite says: near "')
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
    sql = 'SELECT x FROM t WHERE name = "abc"'
    error = diagnosis.explain_message(said, sql, database.schema, lambda sql: True)
    assert error.code == "unknown_column"
    assert error.hint == "Text is written in single quotes: 'abc'."


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT admissions.patient FROM admissions JOIN patients", "admissions"),
        ("SELECT a.patient FROM patients AS p JOIN admissions AS a", "admissions"),
        ("SELECT p.patient FROM patients p JOIN admissions a", "patients"),
        ("SELECT patient FROM patients", "patients"),
    ],
)
def test_the_nearest_column_is_one_of_the_table_that_was_named(database, sql, column):
    assert f"'patient_id' of table '{column}'" in told(database, sql).hint


def test_only_functions_that_exist_are_suggested(database):
    for name in ("media", "lenght", "percentil", "lowerr", "concatt"):
        hint = told(database, f"SELECT {name}(name) FROM t").hint
        if hint.startswith("Did you mean"):
            assert hint.removeprefix("Did you mean ").removesuffix("()?") in functions_of_sqlite()
    assert told(database, "SELECT lenght(name) FROM t").hint == "Did you mean length()?"


@given(st.text(max_size=60), st.text(max_size=10))
def test_no_text_makes_the_advice_fail(database, sql, word):
    schema = database.schema
    for text in (f"{sql}{word}{sql}", f"SELECT {sql}", f"WITH {word} SELECT {sql}"):
        for message in (f'near "{word}": syntax error', f"no such column: {word}", word):
            diagnosis.explain_message(message, text, schema, lambda sql: len(sql) % 2 == 0)
        list(in_sqlite(text))


@pytest.mark.parametrize("sql", ["SELECT " + "(" * 4_000, "SELECT " + "1 IN (SELECT " * 300])
def test_deep_text_is_not_rewritten(database, sql):
    assert list(in_sqlite(sql)) == []

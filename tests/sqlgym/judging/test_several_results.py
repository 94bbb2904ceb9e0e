"""Golds that leave their result to chance are found, and those that do not are let pass."""

import sqlite3

import pytest

from sqlgym.database.database import open_database
from sqlgym.database.parsing import parse
from sqlgym.datasets.load import load_tasks
from sqlgym.judging.bare_columns import open_group
from sqlgym.judging.several_results import depends_on_reading, leaves_choices


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A band whose singers are of three ages; songs belong to singers."""
    path = tmp_path_factory.mktemp("several") / "band.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, town TEXT);
        INSERT INTO singer VALUES
            (1, 'Ann', 20, 'Ulm'), (2, 'Bob', 30, 'Ulm'), (3, 'Cy', 40, NULL),
            (4, 'Di', 40, 'Bonn');
        CREATE TABLE song (singer_id INTEGER, title TEXT);
        INSERT INTO song VALUES (1, 'a'), (1, 'b'), (2, 'c'), (3, 'd');
        """
    )
    connection.close()
    return open_database(path)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT group_concat(name) FROM singer", True),
        ("SELECT age, group_concat(name) FROM singer GROUP BY age HAVING count(*) = 1", False),
        ("SELECT name FROM singer", False),
        ("SELECT sum(age * 0.1) FROM singer", False),
        ("SELECT name, row_number() OVER (ORDER BY id) FROM singer", False),
        ("SELECT name, row_number() OVER () FROM singer", True),
        ("SELECT title FROM song WHERE rowid IN (SELECT rowid FROM song LIMIT 1)", True),
    ],
)
def test_what_depends_on_the_order_of_reading_is_found(database, sql, found):
    told = depends_on_reading(database, sql, database.query(sql))
    assert (told is not None) == found
    assert told is None or "several results are right" in told


JOINED = "FROM song JOIN singer ON singer.id = song.singer_id"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT name FROM singer GROUP BY age", "name"),
        ("SELECT name, town FROM singer GROUP BY age HAVING count(*) > 1", "name, town"),
        ("SELECT town FROM singer GROUP BY age", "town"),  # NULL and Bonn
        ("SELECT upper(name) || '!' FROM singer GROUP BY age", "name"),
        ("SELECT age / 20 AS twenties, name FROM singer GROUP BY twenties", "name"),
        ("SELECT age / 20, name FROM singer GROUP BY 1", "name"),
        ("SELECT name, count(*) FROM singer", "name"),
        ("SELECT age FROM singer GROUP BY age ORDER BY name", "name"),
        ("SELECT age FROM singer GROUP BY age HAVING name > 'B'", "name"),
        ("SELECT name, min(age), max(age) FROM singer", "name"),
        (f"SELECT title, count(*) {JOINED} GROUP BY singer.id", "title"),
        ("SELECT x FROM (SELECT name AS x FROM singer GROUP BY age)", "name"),
        ("SELECT id FROM singer WHERE name IN (SELECT name FROM singer GROUP BY age)", "name"),
        ("WITH s AS (SELECT * FROM singer) SELECT name FROM s GROUP BY age", "name"),
    ],
)
def test_a_column_that_differs_within_a_group_is_named(database, sql, columns):
    told = f"it takes {columns} from any row of a group, and the rows differ there."
    assert open_group(database, sql) == told


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM singer",
        "SELECT name FROM singer GROUP BY id",
        "SELECT name, count(*) FROM singer GROUP BY name",
        "SELECT singer.name FROM singer GROUP BY NAME",
        "SELECT name FROM singer GROUP BY age HAVING count(*) = 1",
        "SELECT name FROM singer WHERE age < 40 GROUP BY age",
        "SELECT name, max(age) FROM singer WHERE age < 40",
        "SELECT town AS t, count(*) AS n FROM singer GROUP BY town ORDER BY n, t",
        f"SELECT name, count(*) {JOINED} GROUP BY singer.id ORDER BY count(*) DESC LIMIT 1",
        "SELECT name, sum(age) OVER (PARTITION BY town) FROM singer",
        "SELECT count(*) FROM singer WHERE age > (SELECT avg(age) FROM singer)",
        "SELECT name FROM singer AS s WHERE 1 < (SELECT count(*) FROM song WHERE singer_id = s.id)",
        "SELECT substr(name, 1, 1), count(*) FROM singer GROUP BY substr(name, 1, 1)",
        "SELECT upper(substr(name, 1, 1)) FROM singer GROUP BY SUBSTR(name, 1, 1) HAVING age > 0",
        "SELECT substr(name, 1, 1) AS letter, count(*) FROM singer GROUP BY letter",
        "SELECT substr(name, 1, 1), count(*) FROM singer GROUP BY 1 ORDER BY substr(name, 1, 1)",
        "SELECT FROM WHERE (",
    ],
)
def test_what_the_groups_agree_in_is_let_pass(database, sql):
    assert open_group(database, sql) is None


@pytest.mark.parametrize(
    "sql", ["SELECT group_concat(name) FROM singer", "SELECT name FROM singer GROUP BY age"]
)
def test_a_task_whose_gold_leaves_a_choice_open_is_refused(database, sql):
    entry = {"db_id": "band", "question": "Who?", "query": sql}
    tasks = load_tasks([entry], "dev", databases=database.path.parent)
    assert [refusal.code for refusal in tasks.check().values()] == ["open_choice"]


@pytest.mark.parametrize(
    ("condition", "leaves"),
    [
        ("age > (SELECT age FROM singer WHERE name = 'Ann')", False),
        ("age > (SELECT age FROM singer WHERE name = 'Zoe')", False),
        ("age > (SELECT age FROM singer WHERE age < 40)", True),
        ("'a' = (SELECT title FROM song WHERE singer_id = id)", True),
        ("'a' = (SELECT title FROM song WHERE singer_id = \"id\")", True),
    ],
)
def test_a_subquery_that_finds_one_row_leaves_no_choice(database, condition, leaves):
    tree = parse(f"SELECT name FROM singer WHERE {condition}")
    assert leaves_choices(tree, database) == leaves

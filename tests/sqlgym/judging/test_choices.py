"""Golds that leave a choice among rows that tie are refused wherever it shows, and no others."""

import random
import sqlite3
from itertools import groupby

import pytest

from sqlgym.database.database import open_database
from sqlgym.datasets.load import load_tasks
from sqlgym.judging.several_results import several_results

SCHEMA = """
    CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, town TEXT);
    INSERT INTO singer VALUES
        (1, 'Ann', 20, 'Ulm'), (2, 'Bob', 30, 'Ulm'), (3, 'Cy', 40, NULL), (4, 'Di', 40, 'Bonn'),
        (5, 'Ed', 40, 'Bonn'), (6, 'Flo', 35, 'Jena'), (7, 'Gil', 25, 'Jena');
    CREATE TABLE song (singer_id INTEGER, title TEXT);
    INSERT INTO song VALUES (1, 'a'), (1, 'b'), (2, 'c'), (3, 'd'), (4, 'd');
    CREATE TABLE spoken (country TEXT, language TEXT, percentage REAL, official TEXT,
        PRIMARY KEY (country, language));
    INSERT INTO spoken VALUES
        ('a', 'x', 50, 'T'), ('a', 'y', 50, 'T'), ('b', 'x', 10, 'F'), ('b', 'z', 90, 'T'),
        ('c', 'q', 50, 'T'), ('c', 'a', 50, 'F'), ('c', 'm', 50, 'T');
    CREATE TABLE cased (word TEXT COLLATE NOCASE, n INTEGER);
    INSERT INTO cased VALUES ('Cy', 1), ('cy', 1), ('Bo', 2);
    CREATE VIEW grown AS SELECT * FROM singer WHERE age > 25;
"""  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Two countries have several languages at their highest percentage, b has one."""
    path = tmp_path_factory.mktemp("choices") / "band.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    return open_database(path)


def refusal(database, sql):
    return several_results(database, sql, database.query(sql))


TOP = "SELECT language, country, max(percentage) FROM spoken GROUP BY country"
PER_TOWN = "SELECT name, max(age) AS a FROM singer GROUP BY town"


@pytest.mark.parametrize(
    "sql",
    [
        TOP,
        f"{TOP} HAVING count(*) > 1",
        f"{TOP} ORDER BY country LIMIT 1",
        f"SELECT language FROM ({TOP})",
        f"{TOP} UNION SELECT name, town, age FROM singer",
        TOP.replace("SELECT", "SELECT DISTINCT"),
        TOP.replace("language,", "upper(language),"),
        TOP.replace("max(", "count(*), max("),
        f"{TOP} ORDER BY max(percentage)",
        TOP.replace(", max(percentage)", "") + " ORDER BY max(percentage)",
        TOP.replace(", max(percentage)", "") + " HAVING max(percentage) > 20",
        TOP.replace("max", "min") + " HAVING country <> 'b'",
        "SELECT name, age, max(age) FROM singer",
        "SELECT word, max(n) FROM cased WHERE n = 1",
        f"WITH top AS ({PER_TOWN}) SELECT name FROM top",
        f"SELECT id FROM singer WHERE name IN (SELECT name FROM ({PER_TOWN}))",
        "SELECT sum(id) FROM (SELECT id, max(age) FROM singer GROUP BY town)",
        "SELECT count(*) FROM singer WHERE name > (SELECT name FROM (SELECT name, max(age)"
        " FROM singer))",
        "SELECT name, town FROM singer GROUP BY age HAVING count(*) > 1",
        "SELECT town FROM singer GROUP BY age",
        "SELECT language, max(percentage), min(percentage) FROM spoken GROUP BY country",
        "SELECT *, max(percentage) FROM spoken GROUP BY country",
        "SELECT * FROM singer GROUP BY age",
        "SELECT singer.*, count(*) FROM singer GROUP BY age",
        "SELECT name AS name, count(*) FROM singer GROUP BY age",
        "SELECT two.name, one.name FROM singer AS one JOIN singer AS two ON one.town = two.town"
        " GROUP BY one.name",
        "SELECT town, name, count(*) AS n FROM singer GROUP BY town HAVING n > 1",
        "SELECT name, total(age) FROM singer",
        "SELECT name, rank() OVER (ORDER BY count(*)) FROM singer GROUP BY age",
        "SELECT (SELECT count(*) FROM song WHERE singer_id = id), town FROM singer GROUP BY town",
        "SELECT country FROM spoken GROUP BY country HAVING official = 'T'",
        "SELECT country FROM spoken GROUP BY country ORDER BY official, country DESC",
        "SELECT n, word FROM cased GROUP BY n",
        "SELECT name FROM grown GROUP BY age",
        "SELECT age, group_concat(name) FROM singer GROUP BY age",
        "SELECT country, json_group_array(language) FROM spoken GROUP BY country",
        "SELECT group_concat(name) FROM singer",
        "SELECT name, row_number() OVER () FROM singer",
        "SELECT name FROM singer WHERE age > (SELECT age FROM singer WHERE age < 40)",
        "SELECT name FROM singer WHERE 'a' = (SELECT title FROM song WHERE singer_id = id)",
        "SELECT name, row_number() OVER (ORDER BY age) FROM singer",
        "SELECT name, row_number() OVER w FROM singer WINDOW w AS (PARTITION BY town)",
        "SELECT name FROM (SELECT name, row_number() OVER (PARTITION BY town ORDER BY age DESC)"
        " AS place FROM singer) WHERE place = 1",
        "SELECT name, lag(name) OVER (ORDER BY age) FROM singer",
        "SELECT name, lead(age) OVER (PARTITION BY town ORDER BY town) FROM singer",
        "SELECT name, first_value(name) OVER (ORDER BY age DESC) FROM singer",
        "SELECT name, last_value(name) OVER (ORDER BY age) FROM singer",
        "SELECT name, nth_value(name, 2) OVER (ORDER BY age DESC) FROM singer",
        "SELECT name, ntile(4) OVER (ORDER BY age DESC) FROM singer",
        "SELECT name, sum(id) OVER (ORDER BY age ROWS 1 PRECEDING) FROM singer",
        "SELECT name FROM singer WHERE id = (SELECT id FROM singer ORDER BY age DESC)",
        "SELECT name, (SELECT title FROM song WHERE singer_id = id) FROM singer",
        "SELECT DISTINCT word FROM cased",
        "SELECT word, count(*) FROM cased GROUP BY word",
        "SELECT max(word) FROM cased",
        "WITH RECURSIVE one(x) AS (SELECT 1), two AS (SELECT name, age FROM singer)"
        " SELECT name, row_number() OVER (ORDER BY age) FROM two JOIN one",
    ],
)
def test_a_choice_that_shows_in_the_result_is_found_wherever_it_is_made(database, sql):
    found = refusal(database, sql)
    assert found is not None
    assert found[0] == "open_choice"


@pytest.mark.parametrize(
    "sql",
    [
        f"{TOP} HAVING count(*) = 2 AND max(percentage) > 80",
        "SELECT name FROM singer GROUP BY id",
        "SELECT singer.name FROM singer GROUP BY NAME",
        "SELECT name FROM singer GROUP BY age HAVING count(*) = 1",
        "SELECT name FROM singer WHERE age < 40 GROUP BY age",
        "SELECT town AS t, count(*) AS n FROM singer GROUP BY town ORDER BY n, t",
        "SELECT substr(name, 1, 1) AS letter, count(*) FROM singer GROUP BY letter",
        "SELECT substr(name, 1, 1), count(*) FROM singer GROUP BY 1 ORDER BY substr(name, 1, 1)",
        "SELECT upper(substr(name, 1, 1)) FROM singer GROUP BY SUBSTR(name, 1, 1) HAVING age > 0",
        "SELECT name FROM singer WHERE age > (SELECT age FROM singer WHERE name = 'Ann')",
        "SELECT name FROM singer WHERE age > (SELECT age FROM singer WHERE name = 'Zoe' OR id = 2)",
        "SELECT name FROM singer AS s WHERE 1 < (SELECT count(*) FROM song WHERE singer_id = s.id)",
        "SELECT sum(age * 0.1) FROM singer",
        "SELECT official, max(percentage) FROM spoken WHERE country <> 'c' GROUP BY country",
        "SELECT percentage, max(percentage) FROM spoken GROUP BY country",
        "SELECT language, max(percentage), count(*) FROM spoken WHERE country = 'b'",
        "SELECT language FROM spoken WHERE country = 'b' GROUP BY 1 + 1 HAVING max(percentage) > 9",
        "SELECT name, min(age), count(*), avg(age) FROM singer",
        "SELECT *, min(age) FROM singer",
        "SELECT length(name), max(age) FROM singer WHERE id IN (4, 5)",
        f"SELECT country, count(*) FROM ({TOP}) GROUP BY country",
        f"SELECT count(*) FROM ({TOP})",
        "SELECT age FROM singer GROUP BY age HAVING name > 'B'",
        "SELECT age FROM singer GROUP BY age ORDER BY name",
        "SELECT id FROM singer WHERE EXISTS (SELECT name FROM singer GROUP BY age)",
        "SELECT name, max(age, 3) FROM singer",
        "SELECT age, group_concat(DISTINCT age) FROM singer GROUP BY age",
        "SELECT group_concat(name) FROM (SELECT name FROM singer ORDER BY name)",
        "SELECT name, row_number() OVER (ORDER BY age, id) FROM singer",
        "SELECT age, row_number() OVER (ORDER BY age) FROM singer",
        "SELECT name, rank() OVER (ORDER BY age), sum(age) OVER (ORDER BY age) FROM singer",
        "SELECT name, first_value(age) OVER (ORDER BY age DESC) FROM singer",
        "SELECT name, ntile(3) OVER (ORDER BY age DESC) FROM singer",
        "SELECT name FROM singer WHERE age = (SELECT age FROM singer ORDER BY age DESC)",
        "SELECT name, (SELECT count(*) FROM song WHERE singer_id = id) FROM singer",
        "SELECT count(DISTINCT word), count(*) FROM cased",
        "SELECT name, count(*) FROM singer AS s JOIN song ON s.id = singer_id GROUP BY s.id",
    ],
)  # fmt: skip
def test_what_comes_out_the_same_whatever_is_chosen_is_no_choice(database, sql):
    assert refusal(database, sql) is None


def test_a_task_with_a_tie_at_its_maximum_is_refused_and_one_without_is_played(database):
    queries = (TOP, TOP.replace("GROUP", "WHERE country = 'b' GROUP"))
    entries = [{"db_id": "band", "question": "What?", "query": query} for query in queries]
    tasks = load_tasks(entries, "dev", databases=database.path.parent)
    assert {task_id: refused.code for task_id, refused in tasks.check().items()} == {
        tasks.ids[0]: "open_choice"
    }


WORLDS = 16


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """Many small tables in one, and their rows by the number of the world: (g, k, a, b)."""
    draw, rows = random.Random(7), []
    for world in range(WORLDS):
        for _ in range(draw.randint(1, 7)):
            a = draw.choice([None, 1, 2, 3])
            rows.append((world, draw.randint(0, 1), draw.randint(0, 2), a, draw.choice("xy")))
    path = tmp_path_factory.mktemp("worlds") / "worlds.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (world INTEGER, g INTEGER, k INTEGER, a INTEGER, b TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    by_world = {world: [row[1:] for row in of] for world, of in groupby(rows, lambda row: row[0])}
    return open_database(path), by_world


def ties(rows, best, of_group=0):
    """For each group, its rows; those with the best k only where `best` is max or min."""
    groups = {}
    for row in rows:
        groups.setdefault(row[of_group] if of_group is not None else 0, []).append(row)
    if best is None:
        return list(groups.values())
    extrema = [best(row[1] for row in group) for group in groups.values()]
    pairs = zip(groups.values(), extrema, strict=True)
    return [[row for row in group if row[1] == extremum] for group, extremum in pairs]


def vary(groups, what):
    """Whether some group has two rows that differ in something."""
    return any(len({what(row) for row in group}) > 1 for group in groups)


def same_place(rows):
    return ties([((g, k), k, a, b) for g, k, a, b in rows], None)


@pytest.mark.parametrize(
    ("sql", "is_open"),
    [
        ("SELECT a, max(k) FROM t {of} GROUP BY g", lambda t: vary(ties(t, max), lambda r: r[2])),
        ("SELECT g, b, a, min(k), count(*) FROM t {of} GROUP BY g",
         lambda t: vary(ties(t, min), lambda r: r[2:])),
        ("SELECT a, max(k) FROM t {of}", lambda t: vary(ties(t, max, None), lambda r: r[2])),
        ("SELECT b FROM t {of} GROUP BY g", lambda t: vary(ties(t, None), lambda r: r[3])),
        ("SELECT 9 UNION ALL SELECT g FROM t {of} GROUP BY g HAVING a = 2",
         lambda t: vary(ties(t, None), lambda r: r[2] == 2)),
        ("SELECT a % 2 FROM t {of} GROUP BY g HAVING max(k) >= 0",
         lambda t: vary(ties(t, max), lambda r: r[2] and r[2] % 2)),
        ("SELECT sum(a) FROM (SELECT coalesce(a, 0) AS a, max(k) FROM t {of} GROUP BY g)", None),
        ("SELECT count(*) FROM (SELECT b, max(k) FROM t {of} GROUP BY g)", lambda t: False),
        ("SELECT a, row_number() OVER (PARTITION BY g ORDER BY k) FROM t {of}",
         lambda t: vary(same_place(t), lambda r: r[2])),
        ("SELECT b FROM (SELECT b, row_number() OVER (PARTITION BY g ORDER BY k DESC) AS n"
         " FROM t {of}) WHERE n = 1", lambda t: vary(ties(t, max), lambda r: r[3])),
    ],
)  # fmt: skip
def test_a_choice_is_found_exactly_where_rows_that_tie_differ(worlds, sql, is_open):
    """Of many small tables, all rows that SQLite may take: the result is the same, or it is not."""
    database, by_world = worlds
    found = {
        world: refusal(database, sql.format(of=f"WHERE world = {world}")) is not None
        for world in by_world
    }
    assert found == {
        world: is_open(rows) if is_open is not None else _sums_differ(rows)
        for world, rows in by_world.items()
    }


def _sums_differ(rows):
    """Every choice in every group, added up."""
    sums = {0}
    for group in ties(rows, max):
        sums = {total + (row[2] or 0) for total in sums for row in group}
    return len(sums) > 1

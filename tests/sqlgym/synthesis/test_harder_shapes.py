"""Questions of two and three steps: their golds are right by another way to compute them.

The other way is plain Python over the rows of the tables: shares, changes from year to year, the
first few of each group, all and none, days between dates, places in an order.
"""

import functools
import random
import re
import sqlite3
from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction

import pytest

from sqlgym.database.database import open_database
from sqlgym.synthesis import SHAPES, SynthesisReport
from sqlgym.synthesis.drafting import Unfit
from sqlgym.synthesis.engine import Search, mix_of
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import Rejected
from sqlgym.synthesis.shapes import (
    bands,
    comparing,
    dates,
    ranked,
    self_references,
    two_references,
    universal,
    yearly,
)
from tests.sqlgym.synthesis.firm import make
from tests.sqlgym.synthesis.test_shapes import faults, not_in_sql

FAMILIES = (bands, comparing, dates, ranked, self_references, two_references, universal, yearly)
NEW = [
    name
    for name, function in SHAPES.items()
    if function.__module__ in {family.__name__ for family in FAMILIES}
]
DRAFTS = 400
NUMBER = 6


@pytest.fixture(scope="module")
def firm(tmp_path_factory):
    return make(tmp_path_factory.mktemp("firm") / "firm.db")


@functools.cache
def opened(path):
    database = open_database(path)
    return database, profile(database)


@functools.cache
def kept(path, name):
    """Some tasks of one shape."""
    database, world = opened(path)
    search = Search(database, world, mix_of(None), SynthesisReport(), random.Random(name))
    tasks = []
    for _ in range(DRAFTS):
        try:
            tasks.append(search._attempt(name).task)
        except (Unfit, Rejected):
            continue
        if len(tasks) == NUMBER:
            break
    return tasks


def rows_of(path, sql):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", NEW)
def test_each_harder_shape_gives_tasks_in_proper_english(firm, name):
    tasks = kept(firm, name)

    assert tasks
    assert [(faults(task.question), task.question) for task in tasks if faults(task.question)] == []
    assert [task for task in tasks if not_in_sql(task.question, task.sql)] == []


def test_shares_are_right(firm):
    pattern = re.compile(
        r"SELECT round\(100\.0 \* count\(CASE WHEN (.*) THEN 1 END\) / count\(\*\), (\d)\)"
        r" FROM (\w+)(?: WHERE (.*))?"
    )
    tasks = kept(firm, "share-of")
    for task in tasks:
        test, places, table, where = pattern.fullmatch(task.sql).groups()
        met = [row[0] for row in rows_of(firm, f"SELECT {test} FROM {table} WHERE {where or 1}")]
        share = Fraction(100 * sum(met), len(met))
        assert rows_of(firm, task.sql) == [(float(round(share, int(places))),)]
        assert f"to {'one' if places == '1' else places}" in task.question.replace("two", "2")
    assert tasks


@pytest.mark.nightly
def test_differences_of_aggregates_are_right(firm):
    pattern = re.compile(
        r"\(SELECT (avg|sum|max)\((\w+)\) FROM (\w+) WHERE (.*?)\)(?= - \(SELECT|, 2\)|$)"
    )
    tasks = kept(firm, "difference-of-aggregates")
    for task in tasks:
        sides = []
        for function, column, table, test in pattern.findall(task.sql):
            values = [row[0] for row in rows_of(firm, f"SELECT {column} FROM {table} WHERE {test}")]
            sides.append(max(values) if function == "max" else sum(values))
            sides[-1] /= len(values) if function == "avg" else 1
        ((result,),) = rows_of(firm, task.sql)
        assert result == pytest.approx(sides[0] - sides[1], abs=0.0051)
        assert result > 0
    assert tasks


@pytest.mark.nightly
def test_changes_between_years_are_right(firm):
    tasks = kept(firm, "change-between-years")
    for task in tasks:
        late, early = re.findall(r"= '?(\d{4})'? THEN", task.sql)
        column = re.search(r"'%Y', (\w+)|CASE WHEN (\w+) =", task.sql)
        table = re.search(r"FROM (\w+)", task.sql)[1]
        where = task.sql.partition(" WHERE ")[2] or "1"
        name = column[1] or column[2]
        years = Counter(
            str(row[0])[:4] for row in rows_of(firm, f"SELECT {name} FROM {table} WHERE {where}")
        )
        assert rows_of(firm, task.sql) == [(years[late] - years[early],)]
        assert years[late] > years[early]
        rises = re.search(r"\bmore (?!than \d)|\brise\b", task.question, re.IGNORECASE)
        assert (int(late) > int(early)) == bool(rises), task.question
    assert tasks


@pytest.mark.nightly
def test_the_year_of_the_largest_rise_is_right(firm):
    tasks = kept(firm, "year-of-largest-rise")
    for task in tasks:
        table = re.search(r"FROM (\w+)", task.sql.partition("(")[2])[1]
        column = re.search(r"'%Y', (\w+)", task.sql)[1]
        measure = re.search(r"sum\((\w+)\)", task.sql)
        where = re.search(r" WHERE (.*) GROUP BY", task.sql)
        years = defaultdict(float)
        select = f"SELECT {column}, {measure[1] if measure else 1} FROM {table}"
        for when, amount in rows_of(firm, f"{select} WHERE {where[1] if where else 1}"):
            years[int(when[:4])] += amount
        sign = -1 if re.search(r"\bfell\b|\bfall\b", task.question) else 1
        changes = {y: sign * (years[y] - years[y - 1]) for y in years if y - 1 in years}
        year = max(changes, key=changes.get)
        assert int(rows_of(firm, task.sql)[0][0]) == year
        assert sorted(changes.values())[-2] < changes[year] > 0
        assert len(changes) == len(years) - 1
    assert tasks


def test_the_first_few_of_each_group_are_right(firm):
    pattern = re.compile(
        r"SELECT (\w+), (\w+) FROM \(SELECT .* ORDER BY (\w+) (ASC|DESC)\) AS place"
        r" FROM (\w+)(?: WHERE (.*))?\) WHERE place <?= (\d)"
    )
    tasks = kept(firm, "top-of-each-group")
    for task in tasks:
        group, label, key, way, table, where, number = pattern.fullmatch(task.sql).groups()
        groups = defaultdict(list)
        for row in rows_of(firm, f"SELECT {group}, {label}, {key} FROM {table} WHERE {where or 1}"):
            groups[row[0]].append(row)
        expected = []
        for members in groups.values():
            members.sort(key=lambda row: row[2], reverse=way == "DESC")
            top = members[: int(number)]
            assert top[-1][2] not in [row[2] for row in members[int(number) :]]
            expected += [row[:2] for row in top]
        assert sorted(rows_of(firm, task.sql)) == sorted(expected)
    assert tasks


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("parents-all-children", all),
        ("parents-with-none", lambda met: not any(met)),
    ],
)
def test_all_and_none_are_right(firm, name, is_kept):
    pattern = re.compile(r"SELECT (.*) FROM (.*) GROUP BY (\S+) HAVING .*CASE WHEN (.*) THEN 1 .*")
    tasks = kept(firm, name)
    for task in tasks:
        label, source, key, test = pattern.fullmatch(task.sql).groups()
        parents = defaultdict(list)
        for parent, shown, met in rows_of(firm, f"SELECT {key}, {label}, {test} FROM {source}"):
            parents[parent, shown].append(bool(met))
        expected = [(shown,) for (_, shown), met in parents.items() if is_kept(met)]
        assert sorted(rows_of(firm, task.sql)) == sorted(expected)
        assert 0 < len(expected) < len(parents)
    assert tasks


@pytest.mark.nightly
def test_days_apart_are_right(firm):
    tasks = kept(firm, "days-apart")
    for task in tasks:
        sign, number = re.search(r" (<=|>=|<|>) (\d+)$", task.sql).groups()
        where = re.search(r"WHERE (.*) AND julianday", task.sql)
        spans = [
            (date.fromisoformat(shipped) - date.fromisoformat(placed)).days
            for placed, shipped in rows_of(
                firm,
                "SELECT order_date, shipped_date FROM orders"
                f" WHERE shipped_date IS NOT NULL AND {where[1] if where else 1}",
            )
        ]
        tests = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
        expected = sum(tests[sign](span, int(number)) for span in spans)
        result = rows_of(firm, task.sql)
        assert (result[0][0] if "count(*)" in task.sql else len(result)) == expected
    assert tasks


@pytest.mark.nightly
def test_the_place_of_a_row_is_right(firm):
    pattern = re.compile(
        r"SELECT place FROM \(SELECT name, rank\(\) OVER \((?:PARTITION BY (\w+) )?ORDER BY (\w+)"
        r" (ASC|DESC)\) AS place FROM (\w+)\) WHERE name = '(.*)'"
    )
    tasks = kept(firm, "place-of-row")
    for task in tasks:
        group, key, way, table, name = pattern.fullmatch(task.sql).groups()
        rows = rows_of(firm, f"SELECT name, {key}, {group or 0} FROM {table}")
        ((value, own),) = [row[1:] for row in rows if row[0] == name]
        before = [
            r for r in rows if r[2] == own and (r[1] > value if way == "DESC" else r[1] < value)
        ]
        assert rows_of(firm, task.sql) == [(len(before) + 1,)]
    assert tasks


@pytest.mark.nightly
def test_employees_are_compared_with_their_own_manager(firm):
    people = {
        row[0]: row for row in rows_of(firm, "SELECT emp_id, salary, manager_id FROM employees")
    }
    tasks = [t for t in kept(firm, "more-than-own") if "T1.salary" in t.sql and "AND" not in t.sql]
    for task in tasks:
        more = "T1.salary > T2.salary" in task.sql
        pairs = [(pay, people[chief][1]) for _, pay, chief in people.values() if chief]
        expected = sum(own > other if more else own < other for own, other in pairs)
        result = rows_of(firm, task.sql)
        assert (result[0][0] if "count(*)" in task.sql else len(result)) == expected
        assert "manager" in task.question
    assert tasks


def test_a_tie_at_the_end_of_a_group_is_refused(tmp_path):
    path = tmp_path / "ties.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE boat (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, size INT)"
        )
        for n in range(40):
            row = (n, f"Boat {chr(65 + n % 26)}{n}", ("sloop", "yawl")[n % 2], n // 8)
            connection.execute("INSERT INTO boat VALUES (?, ?, ?, ?)", row)
    connection.close()

    assert kept(path, "top-of-each-group") == []
    assert kept(path, "place-of-row") == []


@pytest.mark.nightly
def test_a_column_called_place_is_not_taken_for_the_place(tmp_path):
    path = tmp_path / "places.db"
    with sqlite3.connect(path) as connection:
        columns = "id INTEGER PRIMARY KEY, name TEXT, place TEXT, size INT"
        connection.execute(f"CREATE TABLE boat ({columns})")
        for n in range(40):
            row = (n, f"Boat {chr(65 + n % 26)}{n}", ("bay", "port")[n % 2], 7 * n + 90 * (n % 2))
            connection.execute("INSERT INTO boat VALUES (?, ?, ?, ?)", row)
    connection.close()

    assert kept(path, "top-of-each-group") == []
    assert kept(path, "place-of-row") == []
    assert kept(path, "above-own-group")

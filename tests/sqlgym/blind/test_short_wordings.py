# ruff: noqa: E501 (a query is easier to read as it is)
"""Short wordings: what is linked, how often, the second of two, an extreme of two aggregates."""

import sqlite3

import pytest

from sqlgym.blind import judge
from sqlgym.database import open_database

TABLES = """
    CREATE TABLE chef (chef_id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INTEGER, joined_on TEXT);
    CREATE TABLE dish (dish_id INTEGER PRIMARY KEY, name TEXT, price REAL, kind TEXT);
    CREATE TABLE dish_chefs (dish_id INTEGER REFERENCES dish (dish_id), chef_id INTEGER REFERENCES chef (chef_id),
                             PRIMARY KEY (dish_id, chef_id));
    CREATE TABLE booking (booking_id INTEGER PRIMARY KEY, chef_id INTEGER REFERENCES chef (chef_id),
                          booked_on TEXT, guests INTEGER, room TEXT);
"""
LINKED = (
    "SELECT DISTINCT T1.name FROM dish AS T1 JOIN dish_chefs AS T2 ON T2.dish_id = T1.dish_id"
    " JOIN chef AS T3 ON T2.chef_id = T3.chef_id WHERE T3.name = 'Ada Lind'"
)
BOTH = (
    "SELECT T1.name FROM chef AS T1 JOIN booking AS T2 ON T2.chef_id = T1.chef_id WHERE T2.guests > {}"
    " INTERSECT SELECT T1.name FROM chef AS T1 JOIN booking AS T2 ON T2.chef_id = T1.chef_id WHERE T2.guests < 3"
)
YEAR = "SELECT strftime('%Y', {0}) FROM {1} GROUP BY strftime('%Y', {0}) ORDER BY count(*) DESC LIMIT 1"
PAIRS = [
    ("Which dishes are linked to the chef Ada Lind? List the name of each once.", LINKED, True),
    ("Which dishes are linked to no chef? Give the name of each.", "SELECT name FROM dish WHERE dish_id NOT IN (SELECT dish_id FROM dish_chefs)", True),
    ("Which dishes are linked to no booking? Give the name of each.", "SELECT name FROM dish WHERE dish_id NOT IN (SELECT dish_id FROM dish_chefs)", False),
    ("What is the most common kind among the dishes, and how often does it occur?", "SELECT kind, count(*) FROM dish GROUP BY kind ORDER BY count(*) DESC LIMIT 1", True),
    ("What is the most common kind among the dishes, and how often does it occur?", "SELECT kind, count(*) FROM dish GROUP BY kind ORDER BY count(*) ASC LIMIT 1", False),
    ("What are the mean and the highest age of all chefs?", "SELECT avg(age), max(age) FROM chef", True),
    ("What are the mean and the highest age of all chefs?", "SELECT sum(age), max(age) FROM chef", False),
    ("Which chefs have at least one booking with more than 8 guests and at least one with fewer than 3 guests? Give their names.", BOTH.format(8), True),
    ("Which chefs have at least one booking with more than 8 guests and at least one with fewer than 3 guests? Give their names.", BOTH.format(9), False),
    ("Which kinds occur among the dishes with a price below 5 but not among those with a price above 9?", "SELECT kind FROM dish WHERE price < 5 EXCEPT SELECT kind FROM dish WHERE price > 9", True),
    ("In which year were there the most bookings?", YEAR.format("booked_on", "booking"), True),
    ("In which year did the most chefs join?", YEAR.format("joined_on", "chef"), True),
    ("In which year were there the most chefs?", YEAR.format("joined_on", "chef"), False),
]  # fmt: skip


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory):
    path = tmp_path_factory.mktemp("kitchen") / "kitchen.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
    connection.close()
    return open_database(path)


@pytest.mark.parametrize(("question", "sql", "agrees"), PAIRS)
def test_a_short_wording_is_read_as_what_it_says(kitchen, question, sql, agrees):
    assert judge(question, sql, kitchen).agrees == agrees

# ruff: noqa: E501 (a query is easier to read as it is)
"""The judge of questions on pairs that were written by hand, in words that no generator uses.

A pair agrees where a person who knows the tables would write that query; the others have one thing
wrong each: a column, a value, a comparison, an aggregation, an order, a limit, a join.
"""

import sqlite3

import pytest

from sqlgym.blind import judge
from sqlgym.database import open_database

TABLES = """
    CREATE TABLE club (club_id INTEGER PRIMARY KEY, name TEXT, town TEXT, founded_year INTEGER,
                       yearly_fee REAL, website TEXT);
    CREATE TABLE sailor (sailor_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, age INTEGER,
                         weight_kg REAL, country TEXT, joined_on TEXT, is_licensed INTEGER,
                         club_id INTEGER REFERENCES club (club_id));
    CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, boat_name TEXT, colour TEXT, length_m REAL,
                       price REAL, built_year INTEGER, owner_id INTEGER REFERENCES sailor (sailor_id),
                       skipper_id INTEGER REFERENCES sailor (sailor_id));
    CREATE TABLE race (race_id INTEGER PRIMARY KEY, title TEXT, held_on TEXT, distance_nm REAL,
                       prize INTEGER, club_id INTEGER REFERENCES club (club_id));
    CREATE TABLE entry (race_id INTEGER REFERENCES race (race_id), boat_id INTEGER REFERENCES boat (boat_id),
                        finish_position INTEGER, PRIMARY KEY (race_id, boat_id));
"""

RIGHT = [
    ("How many boats do we have?", "SELECT count(*) FROM boat"),
    (
        "Ages of the sailors with a weight of less than 60.5 kg",
        "SELECT age FROM sailor WHERE weight_kg < 60.5",
    ),
    (
        "What does the most expensive boat cost?",
        "SELECT price FROM boat ORDER BY price DESC LIMIT 1",
    ),
    ("Average price of a boat?", "SELECT avg(price) FROM boat"),
    (
        "How many races were held after 3 May 2019?",
        "SELECT count(*) FROM race WHERE held_on > '2019-05-03'",
    ),
    (
        "Titles of races held on or before December 31, 2018",
        "SELECT title FROM race WHERE held_on <= '2018-12-31'",
    ),
    (
        "Which clubs have a yearly fee of no more than 1,500?",
        "SELECT name FROM club WHERE yearly_fee <= 1500",
    ),
    (
        "Names of boats whose skipper is older than 60",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.skipper_id = T2.sailor_id WHERE T2.age > 60",
    ),
    (
        "Which club has the most sailors?",
        "SELECT T1.name FROM club AS T1 JOIN sailor AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "What is the most common colour of boats?",
        "SELECT colour FROM boat GROUP BY colour ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "How many different countries do the sailors come from?",
        "SELECT count(DISTINCT country) FROM sailor",
    ),
    ("Names of the clubs with no website recorded", "SELECT name FROM club WHERE website IS NULL"),
    (
        "What is the age of the sailor Ann Lee?",
        "SELECT age FROM sailor WHERE first_name = 'Ann' AND last_name = 'Lee'",
    ),
]

WRONG = [
    ("How many boats are there?", "SELECT count(*) FROM sailor", "missing_table"),
    (
        "Which sailors are younger than 30?",
        "SELECT first_name, last_name FROM sailor WHERE age <= 30",
        "wrong_comparison",
    ),
    (
        "Which sailors are younger than 30?",
        "SELECT first_name, last_name FROM sailor WHERE weight_kg < 30",
        "other_column",
    ),
    (
        "Which sailors are younger than 30?",
        "SELECT first_name, last_name FROM sailor WHERE age < 31",
        "wrong_value",
    ),
    (
        "Which sailors are younger than 30?",
        "SELECT first_name, last_name FROM sailor",
        "unexplained_condition",
    ),
    (
        "How many sailors do we have?",
        "SELECT count(*) FROM sailor WHERE age < 30",
        "missing_condition",
    ),
    (
        "What is the name of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY length_m ASC LIMIT 1",
        "wrong_direction",
    ),
    (
        "What is the colour of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 1",
        "unexplained_words",
    ),
    ("Average price of a boat?", "SELECT max(price) FROM boat", "other_aggregation"),
    (
        "The three longest boats, names only, sorted by length, longest first",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 5",
        "wrong_limit",
    ),
    (
        "How many different countries do the sailors come from?",
        "SELECT count(country) FROM sailor",
        "unsaid_once",
    ),
    (
        "How many countries do the sailors name? Count the sailors.",
        "SELECT count(DISTINCT country) FROM sailor",
        "missing_once",
    ),
    (
        "Names of boats whose owner is from Spain",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.skipper_id = T2.sailor_id WHERE T2.country = 'Spain'",
        "other_join",
    ),
    (
        "List race titles sorted by prize in descending order",
        "SELECT title FROM race",
        "missing_order",
    ),
    (
        "For every colour: the average price of its boats",
        "SELECT colour, avg(price) FROM boat GROUP BY built_year",
        "missing_grouping",
    ),
    (
        "How many races were held in 2019?",
        "SELECT count(*) FROM race WHERE held_on GLOB '2019*'",
        "unreadable",
    ),
]


@pytest.fixture(scope="module")
def club(tmp_path_factory):
    path = tmp_path_factory.mktemp("club") / "club.db"
    with sqlite3.connect(path) as made:
        made.executescript(TABLES)
        made.execute("INSERT INTO club VALUES (1, 'Fjord Sailors', 'Oslo', 1931, 120.5, NULL)")
        made.execute("INSERT INTO race VALUES (1, 'Spring Cup', '2019-03-09', 12.5, 500, 1)")
    return open_database(path)


@pytest.mark.parametrize(("question", "sql"), RIGHT)
def test_a_question_agrees_with_its_query(club, question, sql):
    assert judge(question, sql, club).findings == ()


@pytest.mark.parametrize(("question", "sql", "kind"), WRONG)
def test_a_query_that_does_something_else_is_found(club, question, sql, kind):
    verdict = judge(question, sql, club)
    assert not verdict.agrees
    assert kind in {finding.kind for finding in verdict.findings}

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
    ("What colours do the boats come in? Each just once.", "SELECT DISTINCT colour FROM boat"),
    (
        "Which sailors are younger than 30?",
        "SELECT first_name, last_name FROM sailor WHERE age < 30",
    ),
    ("Sailors aged over 30: first names please", "SELECT first_name FROM sailor WHERE age > 30"),
    (
        "Ages of the sailors with a weight of less than 60.5 kg",
        "SELECT age FROM sailor WHERE weight_kg < 60.5",
    ),
    (
        "Who are the sailors from Norway? First and last names.",
        "SELECT first_name, last_name FROM sailor WHERE country = 'Norway'",
    ),
    (
        "Give me the prices of boats whose colour is 'red'.",
        "SELECT price FROM boat WHERE colour = 'red'",
    ),
    (
        "How long is the boat called 'Sea Wolf'?",
        "SELECT length_m FROM boat WHERE boat_name = 'Sea Wolf'",
    ),
    (
        "What does the most expensive boat cost?",
        "SELECT price FROM boat ORDER BY price DESC LIMIT 1",
    ),
    ("Name of the most expensive boat?", "SELECT boat_name FROM boat ORDER BY price DESC LIMIT 1"),
    (
        "What is the name of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 1",
    ),
    (
        "Which boat was built last? Its name, please.",
        "SELECT boat_name FROM boat ORDER BY built_year DESC LIMIT 1",
    ),
    ("Average price of a boat?", "SELECT avg(price) FROM boat"),
    ("The total prize of the races, please.", "SELECT sum(prize) FROM race"),
    ("I want the mean weight of our sailors", "SELECT avg(weight_kg) FROM sailor"),
    (
        "Number of sailors in every club, with the club's name",
        "SELECT T1.name, count(*) FROM club AS T1 JOIN sailor AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id",
    ),
    (
        "How many races were held after 3 May 2019?",
        "SELECT count(*) FROM race WHERE held_on > '2019-05-03'",
    ),
    (
        "How many races were held in 2019?",
        "SELECT count(*) FROM race WHERE strftime('%Y', held_on) = '2019'",
    ),
    ("Races held since 2020-01-01: titles", "SELECT title FROM race WHERE held_on >= '2020-01-01'"),
    (
        "Titles of races held in March 2019",
        "SELECT title FROM race WHERE strftime('%Y-%m', held_on) = '2019-03'",
    ),
    (
        "Titles of races held on or before December 31, 2018",
        "SELECT title FROM race WHERE held_on <= '2018-12-31'",
    ),
    ("Clubs founded before 1950, by name", "SELECT name FROM club WHERE founded_year < 1950"),
    (
        "Clubs founded in 1950 or later; give the name and the town",
        "SELECT name, town FROM club WHERE founded_year >= 1950",
    ),
    (
        "Names of clubs with a yearly fee between 100 and 200",
        "SELECT name FROM club WHERE yearly_fee BETWEEN 100 AND 200",
    ),
    (
        "Which clubs have a yearly fee of no more than 1,500?",
        "SELECT name FROM club WHERE yearly_fee <= 1500",
    ),
    ("How many sailors are licensed?", "SELECT count(*) FROM sailor WHERE is_licensed = 1"),
    ("How many sailors are not licensed?", "SELECT count(*) FROM sailor WHERE is_licensed = 0"),
    (
        "Names of boats whose owner is from Spain",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.owner_id = T2.sailor_id WHERE T2.country = 'Spain'",
    ),
    (
        "Names of boats whose skipper is older than 60",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.skipper_id = T2.sailor_id WHERE T2.age > 60",
    ),
    (
        "How many sailors are not the owner of any boat?",
        "SELECT count(*) FROM sailor WHERE sailor_id NOT IN (SELECT owner_id FROM boat WHERE owner_id IS NOT NULL)",
    ),
    (
        "Which clubs have never had a race? Names.",
        "SELECT name FROM club WHERE club_id NOT IN (SELECT club_id FROM race WHERE club_id IS NOT NULL)",
    ),
    (
        "Clubs with at least three races: names",
        "SELECT T1.name FROM club AS T1 JOIN race AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id HAVING count(*) >= 3",
    ),
    (
        "Which club has the most sailors?",
        "SELECT T1.name FROM club AS T1 JOIN sailor AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "The three longest boats, names only, sorted by length, longest first",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 3",
    ),
    ("All boat names in alphabetical order", "SELECT boat_name FROM boat ORDER BY boat_name ASC"),
    (
        "List race titles sorted by prize in descending order",
        "SELECT title FROM race ORDER BY prize DESC",
    ),
    (
        "What is the most common colour of boats?",
        "SELECT colour FROM boat GROUP BY colour ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "For every colour: the average price of its boats",
        "SELECT colour, avg(price) FROM boat GROUP BY colour",
    ),
    (
        "Colours shared by more than two boats",
        "SELECT colour FROM boat GROUP BY colour HAVING count(*) > 2",
    ),
    (
        "How many boats have a price above the average?",
        "SELECT count(*) FROM boat WHERE price > (SELECT avg(price) FROM boat)",
    ),
    (
        "How many different countries do the sailors come from?",
        "SELECT count(DISTINCT country) FROM sailor",
    ),
    (
        'Boats whose name contains the word "Star": their colours',
        "SELECT colour FROM boat WHERE boat_name LIKE '%Star%'",
    ),
    (
        "Boats with a colour other than 'blue': names",
        "SELECT boat_name FROM boat WHERE colour <> 'blue'",
    ),
    (
        "Sailors whose last name starts with K: how many?",
        "SELECT count(*) FROM sailor WHERE last_name LIKE 'K%'",
    ),
    ("Names of the clubs with no website recorded", "SELECT name FROM club WHERE website IS NULL"),
    (
        "Boats built in 1999 that are longer than 12 m: names",
        "SELECT boat_name FROM boat WHERE built_year = 1999 AND length_m > 12",
    ),
    (
        "Names of the boats whose colour is 'red' or 'green'",
        "SELECT boat_name FROM boat WHERE colour IN ('red', 'green')",
    ),
    (
        "Countries of sailors older than 50 but not of sailors younger than 20",
        "SELECT country FROM sailor WHERE age > 50 EXCEPT SELECT country FROM sailor WHERE age < 20",
    ),
    (
        "What is the age of the sailor Ann Lee?",
        "SELECT age FROM sailor WHERE first_name = 'Ann' AND last_name = 'Lee'",
    ),
    (
        "Titles of the races whose club is in Oslo",
        "SELECT T1.title FROM race AS T1 JOIN club AS T2 ON T1.club_id = T2.club_id WHERE T2.town = 'Oslo'",
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
        "SELECT first_name, last_name FROM sailor WHERE age > 30",
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
        "What is the name of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY price DESC LIMIT 1",
        "other_column",
    ),
    (
        "What is the colour of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 1",
        "unexplained_words",
    ),
    ("Average price of a boat?", "SELECT max(price) FROM boat", "other_aggregation"),
    ("Average price of a boat?", "SELECT avg(length_m) FROM boat", "other_column"),
    (
        "The three longest boats, names only, sorted by length, longest first",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 5",
        "wrong_limit",
    ),
    (
        "What is the name of the longest boat?",
        "SELECT boat_name FROM boat ORDER BY length_m DESC LIMIT 4",
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
        "Names of boats whose owner is from Spain",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.boat_id = T2.sailor_id WHERE T2.country = 'Spain'",
        "other_join",
    ),
    (
        "Names of boats whose owner is from Spain",
        "SELECT T1.boat_name FROM boat AS T1 JOIN sailor AS T2 ON T1.owner_id = T2.sailor_id WHERE T2.country = 'Sweden'",
        "wrong_value",
    ),
    (
        "How many races were held in 2019?",
        "SELECT count(*) FROM race WHERE strftime('%Y', held_on) = '2018'",
        "wrong_value",
    ),
    (
        "How many races were held after 3 May 2019?",
        "SELECT count(*) FROM race WHERE held_on >= '2019-05-03'",
        "wrong_value",
    ),
    (
        "Titles of races held in March 2019",
        "SELECT title FROM race WHERE strftime('%m', held_on) = '03'",
        "wrong_comparison",
    ),
    (
        "List race titles sorted by prize in descending order",
        "SELECT title FROM race ORDER BY prize",
        "wrong_direction",
    ),
    (
        "List race titles sorted by prize in descending order",
        "SELECT title FROM race ORDER BY distance_nm DESC",
        "other_column",
    ),
    (
        "List race titles sorted by prize in descending order",
        "SELECT title FROM race",
        "missing_order",
    ),
    (
        "What are the titles of all races?",
        "SELECT title FROM race ORDER BY prize DESC",
        "missing_order",
    ),
    (
        "Clubs with at least three races: names",
        "SELECT T1.name FROM club AS T1 JOIN race AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id HAVING count(*) > 3",
        "wrong_value",
    ),
    (
        "Which club has the most sailors?",
        "SELECT T1.name FROM club AS T1 JOIN race AS T2 ON T2.club_id = T1.club_id GROUP BY T1.club_id ORDER BY count(*) DESC LIMIT 1",
        "missing_table",
    ),
    (
        "How many sailors are not licensed?",
        "SELECT count(*) FROM sailor WHERE is_licensed = 1",
        "wrong_value",
    ),
    (
        "For every colour: the average price of its boats",
        "SELECT colour, avg(price) FROM boat GROUP BY built_year",
        "missing_grouping",
    ),
    (
        'Boats whose name contains the word "Star": their colours',
        "SELECT colour FROM boat WHERE boat_name LIKE 'Star%'",
        "wrong_comparison",
    ),
    (
        "Clubs founded in 1950 or later; give the name and the town",
        "SELECT name FROM club WHERE founded_year >= 1950",
        "unexplained_words",
    ),
    (
        "Sailors whose age is above 20 or whose weight is under 60: first names",
        "SELECT first_name FROM sailor WHERE age > 20 AND weight_kg < 60",
        "wrong_comparison",
    ),
    ("Which clubs have never had a race? Names.", "SELECT name FROM club", "unexplained_condition"),
    (
        "What is the age of the sailor Ann Lee?",
        "SELECT age FROM sailor WHERE first_name = 'Ann' AND last_name = 'Bo'",
        "wrong_value",
    ),
    (
        "How many races were held in 2019?",
        "SELECT count(*) FROM race WHERE held_on GLOB '2019*'",
        "unreadable",
    ),
    ("How many boats?", "SELECT count(*) FROM", "unreadable"),
    ("How many boats?", "SELECT count(*) FROM ship", "unreadable"),
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

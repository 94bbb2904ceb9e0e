"""Dividing tasks: nothing in two parts, and the same part for the same question for ever."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlgym.tasks.splits import SHARES, check_shares, divide, skeleton
from toolgym.errors import ConfigurationError


def entry(number, db_id="shop", question=None):
    canonical = f"SELECT c{number % 40} FROM t WHERE c{number % 40} > {number}"
    return {"db_id": db_id, "question": question or f"Question {number}?", "canonical": canonical}


def test_one_database_is_divided_by_skeleton_so_that_dev_asks_other_things():
    parts = divide([entry(n) for n in range(400)])
    skeletons = {name: {skeleton(e["canonical"]) for e in part} for name, part in parts.items()}

    assert parts.keys() == SHARES.keys()
    assert sum(map(len, parts.values())) == 400
    assert not skeletons["train"] & skeletons["dev"]
    assert not skeletons["train"] & skeletons["test"]
    assert not skeletons["dev"] & skeletons["test"]


def test_the_part_of_a_task_does_not_depend_on_the_other_tasks():
    few, many = divide([entry(n) for n in range(50)]), divide([entry(n) for n in range(400)])
    shuffled = [entry(n) for n in range(50)]
    random.Random(0).shuffle(shuffled)

    for name, part in few.items():
        assert [e for e in many[name] if e in part] == part
        assert sorted(map(str, divide(shuffled)[name])) == sorted(map(str, part))


def test_the_shares_are_met_about():
    entries = [
        entry(0) | {"canonical": f"SELECT c{n} FROM t", "question": f"{n}"} for n in range(1_000)
    ]
    counts = {name: len(part) for name, part in divide(entries).items()}

    assert 740 < counts["train"] < 860
    assert 60 < counts["dev"] < 140


def test_three_databases_or_more_are_divided_whole():
    entries = [
        entry(n, f"db{n % 12}") | {"canonical": f"SELECT {n} FROM t{n % 12}"} for n in range(240)
    ]
    db_ids = {name: {e["db_id"] for e in part} for name, part in divide(entries).items()}

    assert {name: len(found) for name, found in db_ids.items()} == {
        "train": 10,
        "dev": 1,
        "test": 1,
    }
    assert sum(len(found) for found in db_ids.values()) == len(set().union(*db_ids.values()))
    three = divide([entry(n, f"db{n % 3}") for n in range(30)])
    assert all(len({e["db_id"] for e in part}) <= 1 for part in three.values())


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abcd")), max_size=60))
def test_no_question_and_no_query_is_in_two_parts(drawn):
    parts = divide([entry(n, db_id) for n, db_id in drawn])
    for key in ("question", "canonical"):
        found = [{e[key] for e in part} for part in parts.values()]
        assert sum(map(len, found)) == len(set().union(*found))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM t WHERE b = 'x' LIMIT 3", "SELECT a FROM t WHERE b = ? LIMIT ?"),
        ("SELECT a FROM t WHERE b IN (1, 2, 3)", "SELECT a FROM t WHERE b IN (?)"),
        ("SELECT a FROM t WHERE b > -2.5", "SELECT a FROM t WHERE b > ?"),
        ("SELECT a, 'it''s' FROM (broken", "SELECT a, 'it''s' FROM (broken"),
    ],
)
def test_a_skeleton_has_no_literal(query, expected):
    assert skeleton(query) == expected


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"train": 0.5, "dev": 0.6}, "must be positive and sum to 1"),
        ({"train": 1.5, "dev": -0.5}, "must be positive"),
        ({}, "must be positive"),
        ({"../x": 1.0}, "cannot be the name of a split"),
        ({"tables": 1.0}, "cannot be the name of a split"),
    ],
)
def test_shares_that_make_no_parts_are_refused(shares, words):
    with pytest.raises(ConfigurationError, match=words):
        check_shares(shares)

"""Every reason for which a candidate is not kept can be reached, and what is proved holds."""

import random
import sqlite3

import pytest

from sqlgym.database.database import open_database
from sqlgym.database.limits import Limits
from sqlgym.synthesis import REJECTIONS, SynthesisReport, canonical_sql, engine
from sqlgym.synthesis.drafting import Candidate, Unfit
from sqlgym.synthesis.engine import VARIANTS, WAITING, Search, mix_of
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import for_proofs
from sqlgym.synthesis.templates import Template

SCRIPT = """
CREATE TABLE room (id INTEGER PRIMARY KEY, name TEXT, beds INT, price REAL, note TEXT);
CREATE TABLE hall (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO hall VALUES (1, 'Red'), (2, 'Blue'), (3, 'Green');
"""
NAMES = ["Ash", "Birch", "Cedar", "Date", "Elm", "Fir", "Gum", "Hazel"]
NAMES += ["Ivy", "Jade", "Kale", "Lime", "Maple", "Nut", "Oak", "Pine"]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "inn.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT)
    for place in range(200):
        name = NAMES[place % 16] + ("" if place < 16 else f" {place}")
        note = "back\\slash" if place == 7 else None if place == 8 else f"n{place}"
        cells = (place, name, place % 7, 50.0 + place // 2, note)
        connection.execute("INSERT INTO room VALUES (?, ?, ?, ?, ?)", cells)
    connection.commit()
    connection.close()
    return open_database(path)


def searched(database, monkeypatch, candidates, mix=None):
    """The tasks and the report of a search that drafts these candidates, one after the other."""
    queue = iter(candidates)

    def scripted(draft):
        found = next(queue, None)
        if found is None:
            raise Unfit
        return found

    monkeypatch.setattr(engine, "TEMPLATES", {"scripted": Template("scripted", 1.0, scripted)})
    monkeypatch.setattr(engine, "PATIENCE", 2 * len(candidates) + 10)
    report = SynthesisReport()
    shares = mix_of(mix)
    world, rng = profile(database), random.Random(0)
    tasks = list(Search(for_proofs(database), world, shares, report, rng).tasks())
    return tasks, report


def ask(question, sql, *tables, **more):
    return Candidate(question, sql, tables or ("room",), **more)


HALF = "SELECT name FROM room WHERE id < 20 AND id > 12"
ONE = "SELECT price FROM room WHERE id = 30"
REJECTED = {
    "gold_fails": ask("q", "SELECT nothing FROM room"),
    "empty": ask("q", "SELECT name FROM room WHERE id < 0"),
    "has_null": ask("q", "SELECT note FROM room WHERE id = 8"),
    "too_long": ask("q", "SELECT name FROM room WHERE id < 60"),
    "unclean_value": ask("q", "SELECT note FROM room WHERE id = 7"),
    "repeated_row": ask("q", "SELECT beds FROM room WHERE id < 10"),
    "not_one_row": ask("q", HALF, one_row=True),
    "one_row_only": ask("q", ONE, several=True),
    "tied_limit": ask("q", "SELECT name FROM room WHERE id > 9 ORDER BY beds DESC LIMIT 1"),
    "open_choice": ask("q", "SELECT beds, price FROM room GROUP BY beds"),
    "condition_without_effect": ask(
        "q", "SELECT max(price) FROM room WHERE id > 3", contrasts=("SELECT max(price) FROM room",)
    ),
    "several_readings": ask("q", HALF, readings=("SELECT name FROM room WHERE id < 20",)),
    "in_question": ask("Is the price 65.0 or not?", ONE),
    "seen_at_once": ask("q", "SELECT name FROM hall WHERE id = 2", "hall"),
    "unparsed": ask("q", "this is no SQL"),
}


@pytest.mark.parametrize("code", REJECTED)
def test_a_candidate_is_rejected_for_its_reason(database, monkeypatch, code):
    tasks, report = searched(database, monkeypatch, [REJECTED[code]])

    assert tasks == []
    assert report.rejected.keys() - {"unfit"} == {code}


def test_an_aggregate_over_one_row_is_rejected(database, monkeypatch):
    one = ask("q", "SELECT avg(price) FROM room WHERE id = 30", supports=("SELECT 1",))

    assert "one_row_only" in searched(database, monkeypatch, [one])[1].rejected


def test_a_count_of_nothing_is_rejected(database, monkeypatch):
    nothing = ask("q", "SELECT count(*) FROM room WHERE id < 0")

    assert "empty" in searched(database, monkeypatch, [nothing])[1].rejected


def test_a_gold_that_takes_most_of_the_budget_is_rejected(database, monkeypatch):
    tight = open_database(database.path, Limits(steps=3_000))
    slow = ask("q", "SELECT count(*) FROM room AS a, hall AS b WHERE a.price > 60")

    assert "gold_fails" in searched(tight, monkeypatch, [slow])[1].rejected


def test_what_was_a_candidate_before_is_not_tried_again(database, monkeypatch):
    tasks, report = searched(database, monkeypatch, [ask("q", ONE), ask("r", ONE)])

    assert (len(tasks), report.rejected["asked_before"]) == (1, 1)


def test_sql_that_only_looks_different_is_dropped(database, monkeypatch):
    other = "SELECT T9.price FROM ROOM AS T9 WHERE 30 = T9.id"
    same = "SELECT t.price FROM room AS t WHERE t.id = 30"
    tasks, report = searched(database, monkeypatch, [ask("q", same), ask("r", other)])

    assert (len(tasks), report.rejected["near_duplicate"]) == (1, 1)


def test_no_two_kept_questions_have_one_text(database, monkeypatch):
    both = [ask("How dear is it?", ONE), ask("how dear is  it", ONE.replace("30", "41"))]
    tasks, report = searched(database, monkeypatch, both)

    assert (len(tasks), report.rejected["same_question"]) == (1, 1)


def test_few_tasks_differ_in_their_literals_only(database, monkeypatch):
    many = [ask(f"q{i}", f"SELECT name FROM room WHERE id = {i}") for i in range(20, 40)]
    tasks, report = searched(database, monkeypatch, many)

    assert (len(tasks), report.rejected["skeleton_full"]) == (VARIANTS, 20 - VARIANTS)


def test_few_tasks_have_the_same_answer(database, monkeypatch):
    columns = ("id", "name", "beds", "price", "note")
    many = [
        ask(f"q{i}", f"SELECT count({c}) FROM room WHERE {d} = {v}")
        for i, (c, d, v) in enumerate(
            (c, d, v) for c in columns for d, v in (("id", 31), ("name", "'Ash 32'"))
        )
    ]
    tasks, report = searched(database, monkeypatch, many)

    assert len(tasks) == 3
    assert report.rejected["common_answer"] == len(many) - 3


def test_tasks_of_a_level_nobody_asked_for_are_not_proved(database, monkeypatch):
    _, report = searched(database, monkeypatch, [ask("q", ONE)], mix={"hard": 1})

    assert report.rejected["level_full"] == 1
    assert "hard" in report.missing


def test_so_many_wait_and_no_more(database, monkeypatch):
    easy = [
        ask(f"q{i}", f"SELECT {'price' if i % 2 else 'name'}, {i} AS c{i} FROM room WHERE id = {i}")
        for i in range(20, 80)
    ]
    monkeypatch.setattr(engine, "FAIR", 9)
    _, report = searched(database, monkeypatch, easy, mix={"hard": 99, "medium": 1})

    assert report.rejected["level_full"] == len(easy) - WAITING


def test_no_table_has_nearly_all_questions(database, monkeypatch):
    wide = [
        ask(f"q{i}", f"SELECT price, {i} AS c{i} FROM room WHERE id = {i}") for i in range(20, 90)
    ]
    _, report = searched(database, monkeypatch, wide)

    assert report.rejected["table_full"] > 0


def test_a_template_is_given_up_after_many_failed_proofs(database, monkeypatch):
    bad = [ask(f"q{i}", f"SELECT beds, {i} AS c{i} FROM room WHERE id < 9") for i in range(90)]
    _, report = searched(database, monkeypatch, bad)

    assert report.rejected["repeated_row"] == engine.REFUSALS


def test_every_code_is_reached_by_a_test_and_no_other_exists():
    here = REJECTED.keys() | {"unfit", "asked_before", "near_duplicate", "same_question"}
    here |= {"skeleton_full", "common_answer", "level_full", "table_full"}

    assert here == REJECTIONS.keys()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE x = 1 AND y = 2", "select A from T where y=2 and x=1"),
        ("SELECT a FROM t WHERE x IN (1, 2)", "SELECT a FROM t WHERE x IN (2, 1)"),
        (
            "SELECT s.a FROM t AS s JOIN u AS v ON s.i = v.j",
            'SELECT q."a" FROM t q JOIN u p ON p.j = q.i',
        ),
        ('SELECT "a" FROM "t"', "SELECT a FROM t"),
        (
            "SELECT a FROM t WHERE x = 1 OR y = 2 OR z = 3",
            "SELECT a FROM t WHERE z = 3 OR (x = 1 OR y = 2)",
        ),
    ],
)
def test_one_query_written_twice_has_one_canonical_form(one, other):
    assert canonical_sql(one) == canonical_sql(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE x = 1", "SELECT a FROM t WHERE x = 2"),
        ("SELECT a FROM t WHERE x = 'A'", "SELECT a FROM t WHERE x = 'a'"),
        ("SELECT a, b FROM t", "SELECT b, a FROM t"),
        ("SELECT a FROM t EXCEPT SELECT a FROM u", "SELECT a FROM u EXCEPT SELECT a FROM t"),
        ("SELECT a FROM t WHERE x < y", "SELECT a FROM t WHERE y < x"),
        ("SELECT DISTINCT a FROM t", "SELECT a FROM t"),
    ],
)
def test_other_queries_have_other_canonical_forms(one, other):
    assert canonical_sql(one) != canonical_sql(other)


def test_what_is_no_query_has_no_canonical_form():
    with pytest.raises(ValueError, match="not one query that can be parsed: 'select from where'"):
        canonical_sql("select from where")

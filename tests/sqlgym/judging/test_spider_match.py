"""Judging SQL: the official evaluator's verdicts to the last, and where the sound ones differ."""

import json
import sqlite3
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlgym
from sqlgym.database.database import open_database
from sqlgym.database.limits import Limits
from sqlgym.judging import results, spider_match
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused


@pytest.fixture(scope="module")
def cases(spider):
    """The recorded verdicts, each with the path of its database."""
    lines = (spider / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for case in found:
        case["path"] = spider / "database" / case["db_id"] / f"{case['db_id']}.sqlite"
    return found


@pytest.mark.parametrize(
    ("keep_distinct", "key"),
    [(False, "official_exec_verdict"), (True, "official_exec_verdict_keep_distinct")],
)
def test_every_recorded_official_verdict_is_reproduced(cases, keep_distinct, key):
    wrong = [
        case
        for case in cases
        if sqlgym.compare(case["path"], case["gold"], case["pred"], "spider", keep_distinct).equal
        != bool(case[key])
    ]

    assert len(cases) == 332
    assert wrong == []


DIFFERS = {
    # official verdict, reason of the sound one, mutation of the gold: how many
    (1, "rows differ", "reverse_columns"): 9,  # columns keep their order
    (1, "value at row 1", "reverse_columns"): 2,
    (1, "row count", "drop_distinct"): 7,  # duplicates count
    (1, "rows differ", "drop_distinct"): 2,  # count(DISTINCT x) is not count(x)
    (1, "rows differ", "count_column_to_star"): 1,
    (0, "equal", "other_string_constant"): 1,  # equal as written, not without its DISTINCT
    "refused: empty_gold": 10,  # whatever finds nothing would be right
    "refused: open_choice": 2,  # it takes a column from any row of a group
    "refused: tied_limit": 14,  # the gold itself may give another result
}


def test_the_sound_verdict_differs_for_these_reasons_and_no_other(cases):
    found: Counter[object] = Counter()
    for case in cases:
        official = case["official_exec_verdict"]
        try:
            verdict = sqlgym.compare(case["path"], case["gold"], case["pred"])
        except TaskRefused as refusal:
            found[f"refused: {refusal.code}"] += 1
            continue
        if verdict.equal != bool(official):
            found[official, verdict.reason or "equal", case["mutation"]] += 1
        # It is never more lenient than both of the official ones.
        assert not verdict.equal or official or case["official_exec_verdict_keep_distinct"]
    for reason, count in found.items():
        print(count, reason)

    assert found == DIFFERS


cells = st.sampled_from([None, 0, 1, 1.0, 2, "1", "a", "b"])


@st.composite
def pairs(draw):
    """A result, and one that is made of it by moving columns and rows and changing a value."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*[cells] * width), min_size=1, max_size=5))
    order = draw(st.permutations(range(width)))
    other = [tuple(row[i] for i in order) for row in draw(st.permutations(rows))]
    if draw(st.booleans()):
        place, column = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, width - 1))
        changed = list(other[place])
        changed[column] = draw(cells)
        other[place] = tuple(changed)
    return rows, other


def by_trying_everything(gold, rows, ordered):
    """The rule in its plainest form: some one order of the columns makes the rows the same."""
    if len(gold) != len(rows):
        return False
    for order in permutations(range(len(gold[0]))):
        moved = [tuple(row[i] for i in order) for row in rows]
        if gold == moved if ordered else Counter(gold) == Counter(moved):
            return True
    return False


@settings(max_examples=80)
@given(pairs(), st.booleans())
def test_an_order_of_the_columns_is_found_exactly_if_there_is_one(pair, ordered):
    gold, rows = pair
    verdict = spider_match.compare(gold, rows, ordered)
    bags = [[sorted(map(repr, row)) for row in side] for side in pair]
    if bags[0] == bags[1] or verdict.equal:  # the evaluator's first test passes for certain
        assert verdict.equal == by_trying_everything(gold, rows, ordered)


def test_a_wide_result_of_equal_columns_takes_no_factorial_time():
    rows = [(i % 2,) * 20 for i in range(50)]
    other = [(*row[:-1], 1 - row[-1]) for row in rows]

    assert spider_match.compare(rows, rows[::-1], ordered=False).equal
    assert not spider_match.compare(rows, other, ordered=False).equal


@pytest.mark.parametrize(
    ("sql", "keep_distinct", "expected"),
    [
        ("SELECT DISTINCT a FROM t", False, "SELECT  a FROM t"),
        ("SELECT DISTINCT a FROM t", True, "SELECT DISTINCT a FROM t"),
        ("SELECT count(distinct a) FROM t", False, "SELECT count( a) FROM t"),
        ("SELECT 'distinct', \"distinct\" FROM t", False, "SELECT 'distinct', \"distinct\" FROM t"),
        (
            "SELECT a FROM t WHERE a > = 1 AND a ! = 2",
            True,
            "SELECT a FROM t WHERE a >= 1 AND a != 2",
        ),
        ("SELECT YEAR( CURDATE() ) - a FROM t", True, "SELECT 2020- a FROM t"),
        ("SELECT 1; DROP TABLE t", False, "SELECT 1"),
        ("SELECT 'open", False, "SELECT 'open"),
    ],
)
def test_queries_are_prepared_as_the_evaluator_does(sql, keep_distinct, expected):
    assert spider_match.prepare(sql, keep_distinct) == expected


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL);
        INSERT INTO item VALUES (1, 'pen', 1.5), (2, 'cup', 3), (3, 'hat', 3), (4, 'pen', 2);
        """
    )
    connection.close()
    return path


SOUND = [
    ("SELECT name FROM item", "SELECT name FROM item ORDER BY id DESC", True, ""),
    ("SELECT name FROM item", "SELECT DISTINCT name FROM item", False, "row count"),
    ("SELECT id, name FROM item", "SELECT name, id FROM item", False, "rows differ"),
    ("SELECT id FROM item ORDER BY id", "SELECT id FROM item", True, ""),
    ("SELECT id FROM item ORDER BY id", "SELECT 5 - id FROM item", False, "value at row 1"),
    ("SELECT sum(price) FROM item", "SELECT sum(price) + 1e-12 FROM item", True, ""),
    ("SELECT count(*) FROM item", "SELECT 4", False, "no table read"),
    ("SELECT 4", "SELECT 2 + 2", True, ""),
    ("SELECT id FROM item", "SELECT id FROM itme", False, "error: unknown_table"),
    ("SELECT id FROM item", "DROP TABLE item", False, "error: not_allowed"),
    ("SELECT id FROM item", "", False, "error: empty_sql"),
    ("SELECT id FROM item", "SELECT id FROM item; SELECT 1", False, "error: several_statements"),
    ("SELECT id FROM item", "SELEC \ud800 \x00", False, "error: "),
]


@pytest.mark.parametrize(("gold", "predicted", "equal", "reason"), SOUND)
def test_a_query_is_judged_soundly_and_never_raises(shop, gold, predicted, equal, reason):
    verdict = sqlgym.compare(shop, gold, predicted)

    assert verdict.equal is equal
    assert verdict.reason.startswith(reason)
    assert bool(verdict.reason) is not equal


@pytest.mark.parametrize("match", ["sound", "spider"])
@pytest.mark.parametrize("predicted", [None, 5, "", "SELECT", "x" * 200_000, "ATTACH 'a' AS b"])
def test_nothing_that_is_predicted_raises(shop, match, predicted):
    assert not sqlgym.compare(shop, "SELECT id FROM item", predicted, match).equal


@pytest.mark.parametrize(
    ("gold", "match", "code"),
    [
        ("SELECT colour FROM item", "sound", "gold_unknown_column"),
        ("SELECT colour FROM item", "spider", "gold_unknown_column"),
        ("SELECT id FROM item WHERE id > 9", "sound", "empty_gold"),
        ("SELECT name FROM item ORDER BY price DESC LIMIT 1", "sound", "tied_limit"),
        (
            "SELECT 1 UNION ALL SELECT 2 FROM item, item AS b, item AS c",
            "sound",
            "result_too_large",
        ),
    ],
)
def test_a_gold_that_leaves_no_fair_verdict_is_refused(shop, gold, match, code):
    small = open_database(shop, Limits(rows=50))
    with pytest.raises(TaskRefused, match=code):
        sqlgym.compare(small, gold, "SELECT 1", match)


def test_the_evaluator_takes_any_nothing_for_any_other(shop):
    empty = "SELECT id FROM item WHERE id > 9"

    assert sqlgym.compare(shop, empty, "SELECT name, id FROM item WHERE 1 = 0", "spider").equal


def test_the_evaluator_scores_golds_that_are_unfair_by_the_sound_rule(shop):
    empty, tied = (
        "SELECT id FROM item WHERE id > 9",
        "SELECT name FROM item ORDER BY price DESC LIMIT 1",
    )
    for gold, right, wrong in (
        (empty, "SELECT name FROM item WHERE id < 0", "SELECT id FROM item"),
        (tied, tied, "SELECT name FROM item ORDER BY id DESC LIMIT 1"),
    ):
        assert sqlgym.compare(shop, gold, right, "spider").equal
        assert not sqlgym.compare(shop, gold, wrong, "spider").equal
        with pytest.raises(TaskRefused, match=r"empty_gold|tied_limit"):
            sqlgym.compare(shop, gold, right)


def test_a_query_that_the_machine_ends_is_unscored_and_one_that_spends_its_steps_wrong(shop):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    gold = "SELECT count(*) FROM item"
    with pytest.raises(EnvironmentFault, match="seconds"):
        sqlgym.compare(shop, gold, endless, limits={"seconds": 0.05, "steps": 10**12})
    assert "too_many_steps" in sqlgym.compare(shop, gold, endless, limits={"steps": 100_000}).reason
    with pytest.raises(TaskRefused, match="gold_too_many_steps"):
        sqlgym.compare(shop, endless, gold, limits={"steps": 100_000})
    with pytest.raises(EnvironmentFault, match="seconds"):
        sqlgym.compare(shop, endless, gold, limits={"seconds": 0.05, "steps": 10**12})


@pytest.mark.parametrize("limits", [{"step": 5}, {"steps": 0}, {"seconds": "much"}])
def test_a_limit_out_of_range_is_an_error(shop, limits):
    with pytest.raises(ConfigurationError, match="limit"):
        sqlgym.compare(shop, "SELECT 1", "SELECT 1", limits=limits)


def test_rows_that_tie_in_the_golds_order_may_change_places(shop):
    gold = "SELECT name, price FROM item ORDER BY price"

    assert sqlgym.compare(shop, gold, f"{gold}, name DESC").equal
    assert sqlgym.compare(shop, gold, f"{gold}, name").equal
    assert not sqlgym.compare(shop, gold, f"{gold} DESC").equal


def test_a_wrong_match_and_a_missing_file_are_told(shop, tmp_path):
    with pytest.raises(ConfigurationError, match='"sound", "spider" or "suite", got \'exact\''):
        sqlgym.compare(shop, "SELECT 1", "SELECT 1", match="exact")
    with pytest.raises(EnvironmentFault, match=r"nowhere\.sqlite"):
        sqlgym.compare(tmp_path / "nowhere.sqlite", "SELECT 1", "SELECT 1")


def test_an_answer_is_checked_without_a_task():
    rows = [("Joe", 52), ("Ann", 43)]

    assert sqlgym.check_answer(rows, "Ann | 43\nJoe | 52").equal
    assert not sqlgym.check_answer(rows, "Ann | 43\nJoe | 52", ordered=True).equal
    assert sqlgym.check_answer(rows, "name | age\nJoe | 52\nAnn | 43", True, ["name", "age"]).equal
    assert sqlgym.check_answer([(3,)], {"nonsense": [object()]}).reason
    with pytest.raises(TaskRefused, match="empty_gold"):
        sqlgym.check_answer([], "nothing")


def test_runs_of_free_rows_are_compared_as_bags():
    gold, other = [(1,), (2,), (3,)], [(1,), (3,), (2,)]

    assert results.compare(gold, other, ordered=True, runs=(1, 2)).equal
    assert not results.compare(gold, other, ordered=True, runs=(2, 1)).equal
    assert results.compare(gold, other, ordered=True).reason == "value at row 2"

"""Answers by value: what is right however it is written, and what is never right."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlgym.database.database import QueryResult
from sqlgym.database.render import parse_rendered, render, render_cell, show
from sqlgym.judging.answers import GoldAnswer, matches, refusal
from sqlgym.judging.cells import normal_text, same_cell


def gold_of(rows, ordered=False, columns=None):
    names = columns or [f"column {i}" for i in range(len(rows[0]))]
    runs = (1,) * len(rows) if ordered else ()
    return GoldAnswer(tuple(names), tuple(rows), runs)


RIGHT = [
    (1234, 1234),
    (1234, "1,234"),
    (1234, "1234.0"),
    (1234, 1234.0),
    (1234, "$1,234"),
    (1234, "1234 km"),
    (1234, "Answer: 1234"),
    (1234, "The final answer is: **1234**".replace("*", "")),
    (1234, "```\n1234\n```"),
    (1234, "```json\n[1234]\n```"),
    (1234, '{"count": 1234}'),
    (1234, [1234]),
    (1234, [[1234]]),
    (1234, "column 0\n1234"),
    (1234, '"1234"'),
    (-5, "\u22125"),
    (0.12, "12%"),
    (1, True),
    (0, "false"),
    (2 / 3, "0.67"),
    (2 / 3, 0.67),
    (2 / 3, 0.6666667),
    (2 / 3, "66.67%"),
    (41.5, "41.50"),
    (3.0, 3),
    (1e20, "1e+20"),
    (123456.789, 123456.79),
    (float("inf"), "inf"),
    ("T", True),
    ("1234", 1234),
    ("4.50", 4.5),
    ("New York", " new  york "),
    ("Île", "I\u0302le"),
    ("Paris", "'Paris'"),
    ('"Heroes"', "Heroes"),
    ("a, b", "a, b"),
    ("2014-05-03", "May 3, 2014"),
    ("2014-05-03", "3 May 2014"),
    ("2014-05-03 00:00:00", "2014-05-03"),
    ("2014-05-03 10:20:00", "2014-05-03T10:20"),
    (b"\xff", "x'ff'"),
]
WRONG = [
    (2014, "2014 or 2015"),
    (2014, "2014, 2015"),
    (2014, [2014, 2015]),
    (2014, [2014, 2014]),
    (2014, "2014?"),
    (12, "12 million"),
    (12, "12k"),
    (12, "about 12"),
    (12, "12%"),
    (12, "1200%"),
    (0.12, "0.12%"),
    (1234, 1235),
    (1234, "12,34"),
    (1000000, 1000001),
    (2 / 3, 0.6),
    (2 / 3, "0.66"),
    (0.004, 0),
    (0.004, "0.00"),
    ("007", 7),
    ("Paris", "Paris, France"),
    ("Paris", "Par"),
    ("Paris", "It is Paris"),
    ("Paris", ""),
    ("2014-05-03", "2014-05-04"),
    ("2014-05-03", "3/5/2014"),
    ("2014-05-03 10:20:00", "2014-05-03"),
    (6, "error[unknown_table]: There is no table '6'."),
    (6, None),
    (6, "NULL"),
    (2, True),
    (6, float("nan")),
    (6, "nan"),
    (6, "5e999999999"),
    (6, "--6"),
    (6, {"a": 6, "b": 6}),
    (6, [[[6]]]),
    (6, {"a": {"b": 6}}),
    (6, b"6"),
    (6, 10**5000),
    (6.5, 10**5000),
    (6.5, "9" * 5000),
    (6, "[" * 100_000),
    (6, {6}),
    (6, object()),
]


@pytest.mark.parametrize(("gold", "value"), RIGHT, ids=repr)
def test_a_right_value_is_right_however_it_is_written(gold, value):
    assert matches(gold_of([(gold,)]), value).equal


@pytest.mark.parametrize(("gold", "value"), WRONG, ids=lambda value: repr(type(value)))
def test_a_wrong_value_is_wrong(gold, value):
    assert not matches(gold_of([(gold,)]), value).equal


NAMES = gold_of([("Joe",), ("Ann",), ("Bob",)], columns=["name"])


@pytest.mark.parametrize(
    "value",
    [
        ["Ann", "Bob", "Joe"],
        [["Ann"], ["Bob"], ["Joe"]],
        [{"name": "Ann"}, {"name": "Bob"}, {"name": "Joe"}],
        '["Ann", "Bob", "Joe"]',
        "['Ann', 'Bob', 'Joe']",
        "Ann, Bob, Joe",
        "Ann,Bob,Joe",
        "Ann | Bob | Joe",
        "Ann; Bob; Joe",
        "Ann\nBob\nJoe",
        "- Ann\n- Bob\n- Joe",
        "1. Ann\n2. Bob\n3. Joe",
        "name\nAnn\nBob\nJoe",
        'Answer: "Ann", "Bob", "Joe"',
        {"answer": ["Ann", "Bob", "Joe"]},
    ],
    ids=repr,
)
def test_a_list_may_be_separated_in_many_ways(value):
    assert matches(NAMES, value).equal


@pytest.mark.parametrize(
    "value",
    ["Ann, Bob", "Ann, Bob, Joe, Joe", "Ann, Ann, Bob, Joe", ["Ann", "Bob", "Bob"], "Ann Bob Joe"],
)
def test_a_superset_or_subset_of_a_list_is_wrong(value):
    assert not matches(NAMES, value).equal


TABLE = gold_of([("Joe", 52, None), ("Smith, J. | Jr", 43, 1.5)], columns=["Name", "Age", "x"])


@pytest.mark.parametrize(
    "value",
    [
        [["Joe", 52, None], ["Smith, J. | Jr", 43, 1.5]],
        [["Name", "Age", "x"], ["Joe", 52, None], ["Smith, J. | Jr", 43, 1.5]],
        '[["Joe", "52", null], ["Smith, J. | Jr", 43, 1.50]]',
        'Joe, 52, NULL\n"Smith, J. | Jr", 43, 1.5',
        'Joe | 52 | NULL\n"Smith, J. | Jr" | 43 | 1.5',
        'Name | Age | x\nJoe | 52 | NULL\n"Smith, J. | Jr" | 43 | 1.5',
        [{"x": None, "age": 52, "name": "Joe"}, {"name": "Smith, J. | Jr", "age": 43, "x": 1.5}],
        ["Joe | 52 | NULL", '"Smith, J. | Jr" | 43 | 1.5'],
    ],
    ids=repr,
)
def test_a_table_may_be_written_in_many_ways(value):
    assert matches(TABLE, value).equal


def test_columns_keep_their_order_and_a_flat_list_is_a_row():
    row = gold_of([("Joe", 52)])
    assert matches(row, ["Joe", 52]).equal
    assert matches(row, "Joe, 52").equal
    assert matches(row, "Joe\n52").equal
    assert not matches(row, [52, "Joe"]).equal
    assert not matches(TABLE, ["Joe", 52, None, "Smith, J. | Jr", 43, 1.5]).equal


texts = st.text(max_size=10) | st.text("ab,|;\"' \n-1.", max_size=8)
cells = st.none() | texts | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False)


@st.composite
def golds(draw, cell=cells):
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[cell] * width), min_size=1, max_size=5))
    return gold_of(rows, draw(st.booleans()))


def as_objects(columns, rows):
    return [dict(zip(columns, row, strict=True)) for row in rows]


def as_line(rows, separator):
    """One line for one column or one row, else a line per row."""
    if len(rows[0]) == 1:
        return separator.join(render_cell(row[0]) for row in rows)
    return "\n".join(separator.join(map(render_cell, row)) for row in rows)


def as_bullets(rows):
    """A line per row; one alone gets no bullet, since `- 5` is minus five."""
    lines = [as_line([row], ", ") for row in rows]
    return "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else lines[0]


WHOLE = {
    # Formats that keep any value apart from any other.
    "as it was shown": lambda columns, rows: render(columns, rows, max_chars=10**6),
    "as shown, in JSON": lambda columns, rows: show(columns, rows, "json", 10**6),
    "in a fence": lambda columns, rows: f"```\n{render(columns, rows, max_chars=10**6)}\n```",
    "after a prefix": lambda columns, rows: f"Answer: {json.dumps([*map(list, rows)])}",
    "lists": lambda columns, rows: [list(row) for row in rows],
    "JSON": lambda columns, rows: json.dumps([list(row) for row in rows]),
    "objects": as_objects,
    "JSON objects": lambda columns, rows: json.dumps(as_objects(columns, rows)),
    "cells": lambda columns, rows: parse_rendered(render(columns, rows, max_chars=10**6)),
}
LOOSE = {
    # Formats for values that hold no separator themselves.
    "commas": lambda columns, rows: as_line(rows, ", "),
    "bare commas": lambda columns, rows: as_line(rows, ","),
    "bars": lambda columns, rows: as_line(rows, " | "),
    "semicolons": lambda columns, rows: as_line(rows, "; "),
    "tabs": lambda columns, rows: as_line(rows, "\t"),
    "bullets": lambda columns, rows: as_bullets(rows),
    "brackets": lambda columns, rows: f"[{as_line(rows, ', ')}]" if len(rows[0]) == 1 else rows,
    "after a prefix": lambda columns, rows: f"The answer is: {as_line(rows, ', ')}",
}
words = st.from_regex(r"[b-df-hj-m][a-z]{2,6}( [b-df-hj-m][a-z]{2,5})?", fullmatch=True)
decimals = st.decimals(-10_000, 10_000, places=4).map(float)
plain = words | st.integers(-(10**6), 10**6) | decimals


@st.composite
def spoilt(draw, cell):
    """A gold, and rows that are not it: one added, dropped or doubled, or one cell changed."""
    gold = draw(golds(cell))
    rows = list(gold.rows)
    place = draw(st.integers(0, len(rows) - 1))
    how = draw(st.sampled_from(["added", "dropped", "doubled", "changed"]))
    if how == "added":
        rows.insert(place, draw(st.tuples(*[cell] * len(rows[0]))))
    elif how == "dropped":
        assume(len(rows) > 1)
        del rows[place]
    elif how == "doubled":
        rows.insert(place, rows[place])
    else:
        column, new = draw(st.integers(0, len(rows[0]) - 1)), draw(cell)
        # No row may make up for the change: 1.25 and 1.254 are both a right 1.25.
        assume(not any(same_cell(row[column], new) for row in rows))
        rows[place] = (*rows[place][:column], new, *rows[place][column + 1 :])
    return gold, rows


@settings(max_examples=60)
@given(golds(plain), st.sampled_from(sorted(WHOLE.keys() | LOOSE.keys())))
def test_a_right_answer_is_right_in_every_format(gold, form):
    for formats in (WHOLE, LOOSE):
        if form in formats:
            assert matches(gold, formats[form](gold.columns, gold.rows)).equal


@settings(max_examples=50)
@given(spoilt(plain), st.sampled_from(sorted(WHOLE.keys() | LOOSE.keys())))
def test_a_wrong_answer_is_wrong_in_every_format(case, form):
    gold, rows = case
    for formats in (WHOLE, LOOSE):
        if form in formats:
            assert not matches(gold, formats[form](gold.columns, rows)).equal


finite = st.none() | texts | st.integers(-(10**15), 10**15) | st.floats(-1e300, 1e300)


@settings(max_examples=60)
@given(golds(finite), st.sampled_from(sorted(WHOLE)))
def test_the_strictest_formats_hold_any_value(gold, form):
    assert matches(gold, WHOLE[form](gold.columns, gold.rows)).equal


@settings(max_examples=70)
@given(spoilt(finite), st.sampled_from(sorted(WHOLE)))
def test_any_value_that_is_wrong_is_wrong_in_the_strictest_formats(case, form):
    gold, rows = case
    assert not matches(gold, WHOLE[form](gold.columns, rows)).equal


@settings(max_examples=60)
@given(golds(), st.randoms(use_true_random=False))
def test_a_permutation_is_right_if_and_only_if_the_order_is_free(gold, chance):
    rows = [list(row) for row in gold.rows]
    chance.shuffle(rows)
    free = gold_of(gold.rows)
    assert matches(free, rows).equal
    same = all(all(map(same_cell, a, b)) for a, b in zip(gold.rows, rows, strict=True))
    assert matches(gold_of(gold.rows, ordered=True), rows).equal == same


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=70)
@given(golds(), anything | st.text("[]{}\"',:1a \n|-`", max_size=60))
def test_nothing_that_is_answered_raises(gold, value):
    assert matches(gold, value).equal in {True, False}


def test_a_cyclic_value_and_huge_texts_are_wrong():
    cycle: list[object] = []
    cycle.append(cycle)
    for value in (cycle, {"a": cycle}, "[" * 49_000, '"' * 49_999, "','" * 16_000, "x" * 10**6):
        assert not matches(NAMES, value).equal


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_normal_text_is_stable(text):
    once = normal_text(text)
    assert same_cell(text, text)
    assert same_cell(once, once)


def result(rows, truncated=False):
    return QueryResult(("a",), tuple(rows), truncated, frozenset({("t", "a")}), 0)


def test_a_gold_that_is_no_fair_answer_is_refused_with_a_code():
    assert refusal(result([(1,)])) is None
    assert refusal(result([(1,), (None,)])) is None
    codes = [
        (refusal(unfair) or ("",))[0]
        for unfair in (
            result([]),
            result([(None,)]),
            result([(None,), (None,)]),
            result([(i,) for i in range(101)]),
            result([("x" * 5_000,)]),
            result([(1,)], truncated=True),
        )
    ]
    assert codes == ["empty_gold", "null_gold", "null_gold", *["result_too_large"] * 3]

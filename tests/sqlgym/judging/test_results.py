"""Rendering that can be read back, sound comparison, and closeness that cannot be farmed."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlgym.database.render import is_readable, parse_rendered, render, render_cell
from sqlgym.judging.results import (
    Verdict,
    compare,
    is_ordered,
    overlap,
)
from toolgym.episode import budget_notice, without_notice

awkward = st.sampled_from(
    ["", "NULL", "null", "(no rows)", "... (3 more rows)", " a", "a | b", '"', "\\n"]
)
texts = awkward | st.text(max_size=12) | st.text("a| \"'\\\n\r\t,;0-.(", max_size=8)
numbers = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False)
cells = st.none() | texts | numbers | st.binary(max_size=4)


@st.composite
def tables(draw, cell=cells, least=1, most=6):
    width = draw(st.integers(1, 4))
    row = st.tuples(*[cell] * width)
    columns = draw(st.lists(texts, min_size=width, max_size=width))
    return columns, draw(st.lists(row, min_size=least, max_size=most))


@settings(max_examples=60)
@given(tables(least=0))
def test_what_is_rendered_whole_is_read_back_exactly(table):
    columns, rows = table
    text = render(columns, rows, max_chars=100_000)
    expected = [
        [None if v is None else v if isinstance(v, str) else render_cell(v) for v in row]
        for row in rows
    ]
    assert parse_rendered(text) == expected


NOTICES = [budget_notice(left).removeprefix("\n") for left in (0, 1, 3)]


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*NOTICES, "b"]), min_size=1), st.sampled_from(["", *NOTICES]))
def test_a_value_is_not_taken_for_the_number_of_calls_that_are_left(values, notice):
    result = render(["a"], [(value,) for value in values])
    observation = f"{result}\n{notice}" if notice else result
    assert parse_rendered(without_notice(observation)) == [[value] for value in values]


@settings(max_examples=60)
@given(tables(), st.integers(1, 8), st.integers(60, 200), st.booleans())
def test_a_text_never_exceeds_its_limit_and_says_what_is_left_out(table, most, chars, truncated):
    columns, rows = table
    text = render(columns, rows, most, chars, truncated)
    assert len(text) <= chars
    if is_readable(columns, rows, most, chars) and not truncated and len(text) < chars // 2:
        assert len(parse_rendered(text)) == len(rows)
    elif not is_readable(columns, rows, most, chars) or truncated:
        with pytest.raises(ValueError, match="whole result"):
            parse_rendered(text)


def test_the_common_case_has_no_quotes():
    rows = [("Joe O'Neil", 52, 3.0, 1 / 3), (None, -1, 1e20, b"\x00")]
    assert render(["a b", "count(*)", "x", "y"], rows) == (
        "a b | count(*) | x | y\nJoe O'Neil | 52 | 3.0 | 0.3333333333\nNULL | -1 | 1e+20 | x'00'"
    )
    assert render(["a"], []) == "a\n(no rows)"
    assert render(["a"], [(1,), (2,)], max_rows=1) == "a\n1\n... (1 more row)"
    assert render(["a"], [(1,), (2,)], truncated=True).endswith("\n... (at least 1 more row)")


@pytest.mark.parametrize("text", ["", "a", "a\n... (3 more rows)", "a | b\n1"])
def test_a_text_that_shows_no_whole_result_is_not_read(text):
    with pytest.raises(ValueError, match=r"whole result|as many cells"):
        parse_rendered(text)


EQUAL = [
    ([(1,)], [(1.0,)], True),
    ([(0.1 + 0.2,)], [(0.3,)], True),
    ([("é",)], [("e\u0301",)], True),
    ([(None, 1)], [(None, 1)], True),
    ([(1,), (2,)], [(2,), (1,)], False),
    ([(1, 0.5), (2, 0.25)], [(2, 0.25 + 1e-9), (1.0, 0.5)], False),
    ([(0.0,)], [(1e-17,)], True),
]
DIFFERENT = [
    ([(1,), (2,)], [(2,), (1,)], True, "value at row 1"),
    ([(1,)], [(1,), (1,)], False, "row count"),
    ([(1, 2)], [(1,)], False, "column count"),
    ([(1, 2)], [(2, 1)], False, "rows differ"),
    ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False, "rows differ"),
    ([("a",)], [("A",)], False, "rows differ"),
    ([("3",)], [(3,)], False, "rows differ"),
    ([(3,)], [(3.0000001,)], False, "rows differ"),
    ([(0.5,)], [(0.50001,)], False, "rows differ"),
    ([(None,)], [("",)], False, "rows differ"),
    ([(b"a",)], [("a",)], False, "rows differ"),
    ([], [], False, "empty gold"),
]


@pytest.mark.parametrize(("gold", "rows", "ordered"), EQUAL)
def test_equal_results_are_equal(gold, rows, ordered):
    assert compare(gold, rows, ordered) == Verdict(True)
    assert compare(rows, gold, ordered) == Verdict(True)


@pytest.mark.parametrize(("gold", "rows", "ordered", "reason"), DIFFERENT)
def test_different_results_are_told_apart(gold, rows, ordered, reason):
    assert compare(gold, rows, ordered) == Verdict(False, reason)


@settings(max_examples=50)
@given(tables(most=8), st.randoms(use_true_random=False), st.booleans())
def test_order_counts_exactly_if_the_gold_is_ordered(table, chance, ordered):
    _, rows = table
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert compare(rows, shuffled, False).equal
    assert overlap(rows, shuffled) == 1.0
    if compare(rows, shuffled, ordered).equal != compare(shuffled, rows, ordered).equal:
        raise AssertionError("not symmetric")


@settings(max_examples=60)
@given(tables(most=8), st.data())
def test_a_row_more_or_less_or_a_changed_value_is_another_result(table, data):
    _, rows = table
    place = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, len(rows[0]) - 1))
    assert not compare(rows, [*rows, rows[place]], False).equal
    assert not compare(rows, rows[:place] + rows[place + 1 :], False).equal
    changed = list(rows[place])
    changed[column] = 12345.5 if changed[column] == "other" else "other"
    assert not compare(rows, [*rows[:place], tuple(changed), *rows[place + 1 :]], False).equal


@settings(max_examples=50)
@given(tables(most=8), tables(), st.randoms(use_true_random=False))
def test_overlap_is_one_for_reordered_columns_and_below_one_for_anything_more(table, other, chance):
    assert 0.0 <= overlap(table[1], other[1]) <= 1.0
    _, rows = table
    order = list(range(len(rows[0])))
    chance.shuffle(order)
    assert overlap(rows, [tuple(row[i] for i in order) for row in rows]) == 1.0
    assert overlap(rows, [*rows, rows[0]]) < 1.0
    assert overlap(rows, [(*row, 1) for row in rows]) < 1.0
    assert overlap(rows, []) == 0.0


def test_a_dumped_table_earns_little_and_a_constant_column_nothing_extra():
    table = [(i, f"name {i}", i % 7, i * 1.5) for i in range(1, 101)]
    assert overlap([(37,)], table) < 0.01
    assert overlap([(f"name {i}",) for i in range(10)], table) < 0.1
    assert overlap([(row[1],) for row in table], table) == pytest.approx(0.4)
    assert overlap([(1,)], [(2,)]) == 0.0


def test_thousands_of_rows_are_compared():
    chance = random.Random(0)
    rows = [(i, chance.random(), str(chance.randrange(50))) for i in range(3_000)]
    noisy = [(i, x * (1 + 1e-9), t) for i, x, t in reversed(rows)]
    assert compare(rows, noisy, False).equal
    assert overlap(rows, noisy) == 1.0
    assert overlap(rows, noisy[1:]) == pytest.approx(1.0, abs=3e-3)


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t union select b from t order  by 1 limit 3;", True),
        ("WITH x AS (SELECT 1 ORDER BY 1) SELECT * FROM x", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM d ORDER BY c LIMIT 1)", False),
        ("SELECT ' ORDER BY ' FROM t -- ORDER BY a", False),
        ("SELECT 'open", False),
    ],
)
def test_only_an_order_at_top_level_counts(sql, ordered):
    assert is_ordered(sql) is ordered

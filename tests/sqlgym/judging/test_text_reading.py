"""Texts and results that are made to take for ever end, and verdicts are those of trying it all."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from sqlgym.database import parsing
from sqlgym.database.schema import LONGEST_COMPARED, nearest
from sqlgym.judging import judge, recheck, results, spider_match
from sqlgym.judging.nfc import SHORT, nfc
from sqlgym.tasks.hardness import hardness

MARKS = "ae\u0301\u0327\u0323\u0344\u0f71\u0f73\uac00\u1100\u1161\u09c7\u09be\u0dd9\u0dca"


@settings(max_examples=50)
@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), st.sampled_from(MARKS))
def test_a_long_text_has_the_form_that_unicode_gives_it(text: str, other: str) -> None:
    text = text + other * SHORT

    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("exponent", ["9" * 20, "9999999", "401"])
def test_a_number_beyond_all_numbers_is_no_answer_and_no_error(exponent: str) -> None:
    gold = recheck.Gold(["a"], [(3.5,)], False)

    assert recheck.same_answer(gold, f"1e{exponent}") is False
    assert not judge.check_answer([(3.5,)], f"1e{exponent}").equal


def test_a_query_whose_readings_multiply_is_not_parsed() -> None:
    nested = "SELECT " + "JOIN a " * 100
    with pytest.raises(parsing.TooMuch, match="too many steps"):
        parsing.parse(nested)

    with pytest.raises(ValueError, match="not one query that can be parsed"):
        hardness(nested)


@pytest.mark.parametrize("opening", ["(", "(SELECT ", "abs(", "NOT ", "CASE WHEN "])
def test_a_query_that_is_nested_too_deeply_is_an_error_of_the_parser(opening: str) -> None:
    with pytest.raises(SqlglotError, match=r"too deeply|[Ee]xpect|[Rr]equired"):
        parsing.parse("SELECT " + opening * 2_000)


def test_a_chain_of_conditions_has_a_hardness_however_long_it_is() -> None:
    assert hardness("SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 1_500)) == "extra"


def test_no_name_is_offered_for_one_that_is_longer_than_any() -> None:
    assert nearest("a" * LONGEST_COMPARED, ["b", "a" * LONGEST_COMPARED]) is not None
    assert nearest("a" * (LONGEST_COMPARED + 1), ["a" * LONGEST_COMPARED]) is None


NEAR = st.sampled_from([1, 1.0, 1.0000006, 1.0000012, 1.0000018, 2, "1", None])
ROWS = st.lists(st.tuples(NEAR, st.sampled_from("ab")), min_size=1, max_size=5)


@settings(max_examples=60)
@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_results_are_the_same_exactly_when_some_order_of_the_rows_is(gold, rows, random) -> None:
    rows = (rows + gold)[: len(gold)] if random.random() < 0.5 else random.sample(gold, len(gold))
    expected = any(
        all(map(results._same_value, itertools.chain(*gold), itertools.chain(*order)))
        for order in itertools.permutations(rows)
    )

    assert results.compare(gold, rows, ordered=False).equal == expected


CELL = st.sampled_from([1.0, 1.004, 1.008, "1.00", "1.01", "x", "X ", "2014-05-03", "May 3, 2014"])


@settings(max_examples=60)
@given(st.lists(st.tuples(CELL, CELL), min_size=2, max_size=4), st.data())
def test_an_answer_is_right_exactly_when_some_order_of_its_rows_is(gold, data) -> None:
    rows = data.draw(st.permutations(gold))
    rows = [(data.draw(st.sampled_from([row[0], "1.00", "x"])), row[1]) for row in rows]
    expected = any(
        all(judge.check_answer([g], list(r)).equal for g, r in zip(gold, order, strict=True))
        for order in itertools.permutations(rows)
    )

    assert judge.check_answer(gold, [list(row) for row in rows]).equal == expected


def test_the_search_for_an_order_of_columns_ends(monkeypatch) -> None:
    """Columns that look alike until the last of them is placed: every order has to be tried."""
    monkeypatch.setattr(spider_match, "LOOKED_AT", 200_000)
    size = 9
    signs = list(itertools.product((0, 1), repeat=size))
    even = [row for row in signs if sum(row) % 2 == 0]
    odd = [row for row in signs if sum(row) % 2]
    search = spider_match._Orders(even, odd, False)

    assert not search.one_fits()
    assert search._cells_left < 0


def test_wide_results_are_compared_up_to_a_bound() -> None:
    wide = [tuple((i + k) % 300 for i in range(300)) for k in range(40)]

    assert results.overlap(wide, wide[1:]) > 0.9

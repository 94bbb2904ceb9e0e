"""Readers of text hold against the patterns that they replace, and against exhaustive search."""

from __future__ import annotations

import itertools
import re
import sqlite3
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from sqlgym.database import dialect, parsing
from sqlgym.database.schema import LONGEST_COMPARED, nearest
from sqlgym.judging import answer_parsing, judge, recheck, results, spider_match
from sqlgym.judging.nfc import SHORT, nfc
from sqlgym.judging.results import clusters, pair_up
from sqlgym.synthesis import rephrasing
from sqlgym.synthesis.language import english
from sqlgym.synthesis.language.parts import words_of
from sqlgym.tasks.hardness import hardness

FENCE = re.compile(r"```[a-z]*[ \t]*\n?(.*?)\n?[ \t]*```", re.DOTALL | re.IGNORECASE)
QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", re.S)
CAST = re.compile(r"([\w.]+)\s*::\s*(\w+)")
NUMBER_WORDS = re.compile(r"\s*(%?)\s*(?:[a-z/]+ ?){0,2}", re.I)


def made_of(*parts: str, most: int = 12) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(parts), max_size=most).map("".join)


@given(made_of("```", "`", "a", "SQL", " ", "\t", "\n", "İ", "1"), st.booleans())
@example(" \t\n\n \t", True)
def test_a_fence_is_what_the_pattern_for_it_matches(text: str, is_fenced: bool) -> None:
    text = f"```{text}```" if is_fenced else text
    found = FENCE.fullmatch(text)

    assert answer_parsing._without_fence(text) == (found[1] if found else text)


@given(made_of("'", '"', "''", "a", " ", ",", ", ", "|", ";"))
def test_an_item_ends_at_its_quote_only_where_the_separator_follows(line: str) -> None:
    def after_quotes(line: str, position: int, separator: str) -> int:
        start = len(line) - len(line[position:].lstrip(" "))
        if line[start : start + 1] not in {'"', "'"}:
            return position
        end = line.find(line[start], start + 1)
        rest = line[end + 1 :].lstrip(" ") if end >= 0 else "?"
        return end + 1 if not rest or rest.startswith(separator.strip() or separator) else position

    for position, separator in itertools.product(range(len(line) + 1), (", ", ",", "|", ";", "\t")):
        expected = after_quotes(line, position, separator)
        assert answer_parsing._after_quotes(line, position, separator) == expected


SQL = made_of("'", '"', "`", "/*", "*/", "/", "--", "\n", "[", "]", "(", ")", "a", " order by ")


@given(SQL)
@example("/*/ 'a' -- \n [")
def test_text_is_blanked_as_the_pattern_for_quotes_and_comments_matches(sql: str) -> None:
    assert dialect.blank_quoted(sql) == QUOTED.sub(lambda found: dialect._blank(found[0]), sql)


@given(SQL)
@example("[ /* ( [ */ ] )")
def test_the_end_of_the_order_is_found_as_by_cutting_parentheses_out(sql: str) -> None:
    def blank(found: re.Match[str]) -> str:
        return (" " if found[0][:2] in ("--", "/*") else "_") * len(found[0])

    text, before = STRINGS.sub(blank, sql), ""
    while text != before:
        text, before = re.sub(r"\([^()]*\)", blank, text), text

    assert recheck._without_parentheses(recheck._without_quotes(sql)) == text


@given(made_of("a", ".", "::", ":", " ", "1"))
def test_a_cast_is_found_where_the_plain_pattern_finds_it(text: str) -> None:
    plain, ours = CAST.search(text), re.search(r"(?<![\w.])([\w.]++)\s*+::\s*(\w+)", text)

    assert (plain and plain.span()) == (ours and ours.span())


@given(made_of(" ", "%", "a", "/", "km", "1"))
def test_units_are_read_as_up_to_two_words(text: str) -> None:
    matched = recheck._NUMBER.fullmatch(f"1{text}")
    if text[:1] != "1":
        assert bool(matched) == bool(NUMBER_WORDS.fullmatch(text))


MARKS = "ae\u0301\u0327\u0323\u0344\u0f71\u0f73\uac00\u1100\u1161\u09c7\u09be\u0dd9\u0dca"


@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), st.sampled_from(MARKS))
def test_a_long_text_has_the_form_that_unicode_gives_it(text: str, other: str) -> None:
    text = text + other * SHORT

    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("exponent", ["9" * 20, "9999999", "401"])
def test_a_number_beyond_all_numbers_is_no_answer_and_no_error(exponent: str) -> None:
    gold = recheck.Gold(["a"], [(3.5,)], [1])

    assert recheck.same_answer(gold, f"1e{exponent}") is False
    assert not judge.check_answer([(3.5,)], f"1e{exponent}").equal


def test_a_query_whose_readings_multiply_is_not_parsed() -> None:
    nested = "SELECT " + "JOIN a " * 100
    with pytest.raises(parsing.TooMuch, match="too many steps"):
        parsing.parse(nested)

    assert dialect.expected_there(nested) == ""
    assert dialect.too_much(nested) == ""
    with pytest.raises(ValueError, match="not one query that can be parsed"):
        hardness(nested)


@pytest.mark.parametrize("opening", ["(", "(SELECT ", "abs(", "NOT ", "CASE WHEN "])
def test_a_query_that_is_nested_too_deeply_is_an_error_of_the_parser(opening: str) -> None:
    with pytest.raises(SqlglotError, match=r"too deeply|[Ee]xpect|[Rr]equired"):
        parsing.parse("SELECT " + opening * 2_000)


def test_a_chain_of_conditions_has_a_hardness_however_long_it_is() -> None:
    assert hardness("SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 1_500)) == "extra"


def test_the_place_of_an_error_is_found_without_writing_table_expressions_out() -> None:
    doubling = [f"t{i} AS (SELECT a.x FROM t{i - 1} a, t{i - 1} b)" for i in range(1, 40)]
    sql = f"WITH t0 AS (SELECT 1 x), {', '.join(doubling)} SELECT 1 FROM t39 y WHERE 1 y y"

    place = dialect.place_of_error(sql, 'near "y": syntax error')
    assert place == sql.rindex("y y")


def test_no_name_is_offered_for_one_that_is_longer_than_any() -> None:
    assert nearest("a" * LONGEST_COMPARED, ["b", "a" * LONGEST_COMPARED]) is not None
    assert nearest("a" * (LONGEST_COMPARED + 1), ["a" * LONGEST_COMPARED]) is None


def test_words_that_a_name_says_twice_are_dropped_from_the_last_on() -> None:
    assert words_of("number_of_number_of_number_x") == ("number", "x")


@given(made_of("a", "ab", " ", ".", "1", "_"), made_of("a", "ab", " ", ".", "1", "_", most=3))
def test_a_part_stands_alone_where_the_pattern_for_it_matches(text: str, part: str) -> None:
    found = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text)
    assert not part or english.stands_alone(part, text) == bool(found)

    told = re.search(rf"(?<![\w.]){re.escape(part)}(?!\w)(?!\.\d)", text)
    assert len(part) < 2 or rephrasing._tells(text, [part]) == bool(told)


# Pairing ------------------------------------------------------------------------------------------

SQUARE = st.integers(0, 6).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(SQUARE)
def test_things_are_paired_exactly_when_some_permutation_pairs_them(fits: list[list[bool]]) -> None:
    size = len(fits)
    orders = itertools.permutations(range(size))
    expected = any(all(fits[i][j] for i, j in enumerate(order)) for order in orders)

    assert pair_up(size, lambda i, j: fits[i][j]) == expected


def test_pairing_asks_about_each_pair_once() -> None:
    asked: list[tuple[int, int]] = []

    def fits(left: int, right: int) -> bool:
        asked.append((left, right))
        return right >= left or right == 0

    assert pair_up(60, fits)
    assert len(asked) == len(set(asked)) <= 60 * 60


@given(st.lists(st.integers(0, 40), max_size=12))
def test_numbers_of_two_clusters_never_fit(numbers: list[int]) -> None:
    found = clusters(numbers, lambda one, other: abs(one - other) <= 2)

    for one, other in itertools.combinations(numbers, 2):
        assert found[one] == found[other] or abs(one - other) > 2


NEAR = st.sampled_from([1, 1.0, 1.0000006, 1.0000012, 1.0000018, 2, "1", None])
ROWS = st.lists(st.tuples(NEAR, NEAR), min_size=1, max_size=5)


@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_results_are_the_same_exactly_when_some_order_of_the_rows_is(gold, rows, random) -> None:
    rows = (rows + gold)[: len(gold)] if random.random() < 0.5 else random.sample(gold, len(gold))
    expected = any(
        all(map(results._same_row, gold, order)) for order in itertools.permutations(rows)
    )

    assert results.compare(gold, rows, ordered=False).equal == expected


CELL = st.sampled_from([1.0, 1.004, 1.008, "1.00", "1.01", "x", "X ", "2014-05-03", "May 3, 2014"])


@given(st.lists(st.tuples(CELL, CELL), min_size=2, max_size=4), st.data())
def test_an_answer_is_right_exactly_when_some_order_of_its_rows_is(gold, data) -> None:
    rows = data.draw(st.permutations(gold))
    rows = [(data.draw(st.sampled_from([row[0], "1.00", "x"])), row[1]) for row in rows]
    expected = any(
        all(judge.check_answer([g], list(r)).equal for g, r in zip(gold, order, strict=True))
        for order in itertools.permutations(rows)
    )

    assert judge.check_answer(gold, [list(row) for row in rows]).equal == expected


VALUE = st.sampled_from([0, 1, 1.0, True, "1", None])


@settings(max_examples=200)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.tuples(*[VALUE] * width), min_size=1, max_size=4)
    ),
    st.booleans(),
    st.data(),
)
def test_spiders_verdict_is_that_of_trying_every_order_of_the_columns(gold, ordered, data) -> None:
    places = data.draw(st.permutations(range(len(gold[0]))))
    rows = [tuple(row[place] for place in places) for row in data.draw(st.permutations(gold))]
    if data.draw(st.booleans()):
        rows[0] = tuple(data.draw(VALUE) for _ in rows[0])

    def is_same(order: tuple[int, ...]) -> bool:
        moved = [tuple(row[place] for place in order) for row in rows]
        return (
            list(gold) == moved
            if ordered
            else not set(gold) ^ set(moved)
            and all(gold.count(row) == moved.count(row) for row in gold)
        )

    bags, own = ([spider_match._bag(row) for row in each] for each in (gold, rows))
    rejected = bags != own if ordered else set(bags) != set(own)
    expected = not rejected and any(map(is_same, itertools.permutations(range(len(gold[0])))))

    assert spider_match.compare(gold, rows, ordered).equal == expected


def test_the_search_for_an_order_of_columns_ends() -> None:
    """Columns that look alike until the last of them is placed: every order has to be tried."""
    size = 11
    signs = list(itertools.product((0, 1), repeat=size))
    even = [row for row in signs if sum(row) % 2 == 0]
    odd = [row for row in signs if sum(row) % 2]
    search = spider_match._Orders(even, odd, False)

    assert not search.one_fits()
    assert search._cells_left < 0


def test_wide_results_are_compared_up_to_a_bound() -> None:
    wide = [tuple((i + k) % 500 for i in range(500)) for k in range(40)]
    counted = results._shared_values(*[[results.Counter(c) for c in zip(*wide, strict=True)]] * 2)

    assert all((i, i) in counted for i in range(500))
    assert len(counted) * 40 <= results.COMPARED


def test_a_recorded_query_cannot_take_the_machine(tmp_path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(100)])
    connection.close()

    with pytest.raises(sqlite3.Error, match=r"too large|too big"):
        recheck._run(path, "SELECT zeroblob(99000) FROM t, t b, t c")
    with pytest.raises(sqlite3.Error, match="too big"):
        recheck._run(path, "SELECT zeroblob(100000000)")

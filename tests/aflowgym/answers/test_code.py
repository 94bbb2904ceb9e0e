"""Judging programs: literal assertions, recorded values, nothing executed here."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.answers import CodeTest, Outcome, extract_code, judge_code, read_tests
from aflowgym.answers.assertions import UnsupportedTest
from aflowgym.answers.literals import read_literal

TESTS = read_tests(
    "assert add(1, 2) == 3\nassert add(-1, b=1) == 0\nassert [4] == add([4], [])", "add"
)


def test_assertions_become_calls_and_expected_values():
    assert TESTS[0] == CodeTest("add", "(1, 2)", "3")
    assert [test.call() for test in TESTS] == [((1, 2), {}), ((-1,), {"b": 1}), (([4], []), {})]
    assert TESTS[2].expected == "[4]"


def test_a_check_function_with_candidate_is_read():
    source = "def check(candidate):\n    assert candidate(2.0) == 1.5, 'no'\n    assert True\n"
    source += "    assert abs(candidate(1.0) - 0.5) < 1e-6\n"

    tests = read_tests(source, "half")

    assert [test.tolerance for test in tests] == [0.0, 1e-6]
    assert judge_code(tests, [Outcome("1.5"), Outcome("0.5000001")]).correct is True


def test_what_is_no_assertion_over_literals_is_refused():
    for source in [
        "assert add(x, 2) == 3", "x = 1", "assert add(*[1, 2]) == 3", "assert (",
        "while True:\n    assert add(1, 1) == 2", "assert add(**{'a': 1}) == 1",
        "def g():\n    return 1\nassert add(1, 2) == 3", "assert add(9**9**9, 1) == 2",
        "for i in range(10**9):\n    assert add(i, i) == 2",
        "x = 2\nfor i in range(99):\n    x = x * x\nassert add(x, 1) == 2",
    ]:  # fmt: skip
        with pytest.raises(UnsupportedTest, match=r"not over literals|Python|no assertion"):
            print(source, read_tests(source, "add"))


def test_the_values_of_tests_are_worked_out():
    source = """
import random

METADATA = {"author": "me"}

def check(candidate):
    for n in range(2):
        x, y = n, random.randint(0, 9)
        assert candidate(x, y) == x + y
    odd = [n for n in range(9) if n % 2 != 0 and n > 3]
    assert candidate(str(7), odd) == sum(odd), "no"
    assert tuple(candidate([1])) == tuple(add([1]))
check(add)
"""
    tests = read_tests(source, "add")

    assert tests == read_tests(source, "add")  # random numbers have a fixed seed
    assert [read_literal(test.arguments)[0] for test in tests] == [0, 1, "7"]
    assert tests[2] == CodeTest("add", "('7', [5, 7])", "12")


def test_a_program_is_right_only_if_every_test_passes():
    for outcomes, progress in [
        ([Outcome("3"), Outcome("0"), Outcome("[4]")], 1.0),
        ([Outcome("3"), Outcome("0"), Outcome("[5]")], 2 / 3),
        ([Outcome("3")], 1 / 3),
        ([Outcome(error="timeout")] * 3, 0.0),  # an infinite loop
        ([Outcome(error="no_literal")] * 3, 0.0),  # an object that equals everything
        ([Outcome("Equal()")] * 3, 0.0),
        ([Outcome("__import__('os')")] * 3, 0.0),
        ([], 0.0),
    ]:
        verdict = judge_code(TESTS, outcomes)

        assert verdict.correct is (progress == 1), outcomes
        assert verdict.progress == pytest.approx(progress), outcomes


def test_a_text_that_does_not_define_the_function_is_no_program():
    for text in ["42", "hello", "", "def other(a, b): pass", "def add(a, b:"]:
        assert extract_code(text, "add") is None, text


def test_python_shows_no_warning_about_a_program_of_a_model_and_none_is_an_error():
    program = 'def add(a, b):\n    return "\\s" and (1if a else b)\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extract_code(f"So:\n```\n{program}```", "add") == program
        assert read_tests(r"assert add('\s', 1) == 2", "add")[0].expected == "2"
        assert read_literal(r"'\s'") == r"\s"


def test_the_last_block_that_defines_the_function_is_the_program():
    text = (
        "Try\n```python\ndef add(a, b): return 1\n```\nor\n```\ndef add(a, b): return a + b\n```\n"
    )
    text += "Use it:\n```python\nprint(add(1, 2))\n```"

    assert extract_code(text, "add") == "def add(a, b): return a + b\n"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(values)
def test_what_repr_writes_of_plain_data_is_read_back(value):
    assert repr(read_literal(repr(value))) == repr(value)

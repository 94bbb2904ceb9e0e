"""Each form of assertion decides as Python does, and no value that a program returns breaks it."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.answers import Outcome, judge_code, read_tests
from aflowgym.answers.assertions import UnsupportedTest
from aflowgym.answers.code import passes
from aflowgym.sandbox import values

#: An assertion, and returned values with which it holds and does not.
CASES = [
    ("f() == 3", ["3", "3.0", "(3+0j)"], ["4", "'3'", "None", "[3]", "nan"]),
    ("f() == True", ["True", "1", "1.0"], ["False", "2", "'True'", "None", "[True]"]),
    ("f() == None", ["None"], ["False", "0", "''", "[]", "'None'"]),
    ("f() == 0", ["0", "False", "0.0", "-0.0", "0j"], ["None", "''", "[]", "1e-300"]),
    ("f() == float('inf')", ["inf"], ["-inf", "nan", "1e308"]),
    ("f() == float('nan')", [], ["nan", "inf", "None"]),
    ("f() == [1, 2]", ["[1, 2]", "[True, 2.0]"], ["(1, 2)", "[2, 1]", "{1, 2}", "'[1, 2]'"]),
    ("f() == {1, 2}", ["{2, 1}", "frozenset({1, 2})", "{1.0, 2}"], ["[1, 2]", "{1}", "{1: 2}"]),
    ("f() == set()", ["set()", "frozenset()"], ["{}", "[]", "()", "None"]),
    ("f() == {'a': [1]}", ["{'a': [1]}"], ["{'a': (1,)}", "{'a': [1], 'b': 2}", "['a']"]),
    ("f() == 'a'", ["'a'", '"a"'], ["'A'", "b'a'", "['a']", "'a '"]),
    ("f() == '\\ud800'", ["'\\ud800'"], ["'\\ufffd'", "'?'"]),
    ("f() is True", ["True"], ["1", "1.0", "False", "'True'", "[True]", "None", "2"]),
    ("f() is None", ["None"], ["False", "0", "''", "[]", "'None'", "nan"]),
    ("f()", ["True", "1", "-1", "'0'", "[0]", "nan", "1e-300"], ["False", "0", "''", "[]", "None"]),
    ("not f()", ["False", "0", "-0.0", "''", "{}", "set()", "None"], ["True", "'no'", "[None]"]),
    ("abs(f() - 0.5) < 0.25", ["0.5", "0.74"], ["0.75", "0.25", "1", "nan", "'x'"]),
    ("abs(f() - 0.5) <= 0.25", ["0.5", "0.75", "0.25"], ["0.76", "inf", "None", "[0.5]"]),
    ("abs(f() - 1) < 1", ["1", "True", "(1+0.5j)"], ["0", "False", "{1}", "set()"]),
    ("abs(f() - 0.5) < 1e-6", ["0.5"], ["1" + "0" * 400, "-1" + "0" * 400]),
    ("math.isclose(f(), 100.0)", ["100.0", "100.00000001"], ["100.001", "'100'", "nan", "None"]),
    ("math.isclose(f(), 100.0, rel_tol=0.01)", ["101", "99.5"], ["102", "1" + "0" * 400, "1j"]),
    ("math.isclose(f(), 0.0, abs_tol=0.1)", ["0.1", "-0.05", "False"], ["0.2", "[]"]),
    ("sorted(f()) == [1, 2]", ["[2, 1]", "{2, 1}"], ["[1]", "3", "[1, 'a']"]),
    ("tuple(f()) == tuple([1, 2])", ["[1, 2]", "(1, 2)"], ["[2, 1]", "None"]),
    ("f() == Fraction(2, 3)", ["Fraction(2, 3)"], ["0.66", "'Fraction(2, 3)'"]),
    ("f() == 0.5", ["0.5", "Fraction(1, 2)", "Decimal('0.5')"], ["Decimal('0.51')"]),
]  # fmt: skip
#: What a program cannot gain by: no outcome with an error holds, whatever is asked for.
ERRORS = ["no_literal: it is of type E", "timeout", "True", "None", "value True", "0"]


def test_an_assertion_holds_for_the_values_for_which_python_says_so():
    for assertion, right, wrong in CASES:
        tests = read_tests(f"assert {assertion}", "f")

        held = [v for v in (*right, *wrong) if judge_code(tests, [Outcome(v)]).correct]
        assert held == right, assertion
        assert not any(passes(tests[0], Outcome(error=error)) for error in ERRORS), assertion


def test_python_itself_says_the_same():
    """Except for identity, which Python decides by where a literal happens to lie."""
    names = {"Fraction": Fraction, "Decimal": Decimal, "math": math, "inf": math.inf}
    for assertion, right, wrong in (case for case in CASES if " is " not in case[0]):
        for text in (*right, *wrong):
            value = eval(text, {**names, "nan": math.nan})
            try:
                held = bool(eval(assertion, {**names, "f": lambda value=value: value}))
            except (TypeError, OverflowError):
                held = False
            assert held is (text in right), (assertion, text)


def test_a_form_that_cannot_be_judged_by_one_literal_is_refused():
    for assertion in [
        "f() != 3", "f() is not None", "f() in (1, 2)", "1 in f()", "f() < 3", "f() is [1]",
        "f() is g()", "1 < f() < 3", "f() == 1 or True", "len(f()) == 2", "all(f())",
        "abs(f()) == 3", "abs(f() - 1) < x", "abs(f() - 1) == 0", "abs(f() - f()) < 1", "f",
        "math.isclose(f(), 1, rel_tol=x)", "not not f()", "f() == f()", "f().x == 1", "f()[0] == 1",
        "f(f()) == 1", "isinstance(f(), int)", "(lambda: f())() == 1", "f() == [x for x in y]",
    ]:  # fmt: skip
        with pytest.raises(UnsupportedTest, match="this assertion is not over literals"):
            print(assertion, read_tests(f"assert {assertion}", "f"))


returned = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text()
    | st.binary() | st.integers(min_value=10**300, max_value=10**4200),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=50)
@given(returned, st.sampled_from([case[0] for case in CASES]))
def test_no_returned_value_makes_a_judge_raise(value, assertion):
    text, error = values.outcome(values.dump(value))

    verdict = judge_code(read_tests(f"assert {assertion}", "f"), [Outcome(text, error)])

    assert verdict.correct in (True, False)

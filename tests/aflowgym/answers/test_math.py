"""The math verifier: by value, exactly. Cases say where they come from."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.answers import Verdict, judge_math
from aflowgym.answers.math.expression import read_expression

# The misjudgements recorded of the original system: gold, answer, and what is right.
ORIGINAL = [
    (r"\frac{1}{2}", r"\frac{1}{3}", False),  # first number of a fraction
    (r"2\sqrt5", r"2\sqrt3", False),  # first number before a root
    ("100", "99.5", False),  # near
    ("42", "WORKFLOW_ERROR: solve() failed at line 42", False),  # error message
    ("0.5", r"\frac12", True),  # fraction without braces
    ("1000", "1,000", True),  # thousands
    ("5", "for n in the set we get 5", True),  # prose that looks like code
    ("5", "I don't know", False),  # no answer
    ("B", "A", False),  # option letters are not equal
    ("B", "(B)", True),  # option letter in brackets
    ("5", r"The length is \boxed{5\text{ cm}}.", True),  # unit in the box
    ("-3+4i", "-3+2i", False),  # complex
]
RIGHT = [
    (r"\frac{3}{4}", "0.75"), ("0.75", "3/4"), ("7/3", r"2\frac{1}{3}"), ("1.5", "1 1/2"),
    ("1234567", r"1{,}234{,}567"), ("1000", "1 000"), ("3, 5", "5 and 3"), ("5", "x = 5"),
    ("x=5", "5"), ("(1,2)", r"\left( 1, 2 \right)"), (r"\{1,2\}", r"\{2, 1\}"), ("5 cm", "5"),
    (r"[0,\infty)", r"$[0, \infty)$"), (r"5 \text{ cm}", "5 centimetres"), ("1/2", "50%"),
    ("(x+1)^2", "x^2+2x+1"), (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt2}"), ("even", "Even."),
    ("1/3", "0.3333"), (r"\sqrt{2}", "1.41421"), ("0.3", "0.30000000000000004"), ("2", "2.0000"),
    ("1/6", r"0.1\overline{6}"), ("18", "**Answer:** $18.00"), ("72", "48 + 24 = 72."),
    ("5", "five"),
    ("10^{10^{10}}", "10^{10^{10}}"), ("90", r"90^\circ"), ("-5", "−5"), ("2\\pi", "2π"),
    (r"11,\! 111,\! 111,\! 100", "11111111100"), (r"111, \! 111", "111,111"),
]  # fmt: skip
WRONG = [
    ("x=5", "y=5"), ("5 cm", "5 m"), ("5 cm", "5 cm^2"), ("50", "50%"), ("1/3", "0.33"),
    ("2/3", "0.6666"), ("1", "0.99999"), ("5", "3 or 5"), ("5", "5 or so"),
    ("7", "The sum is not 7"),
    ("(1,2)", "(2,1)"), ("(1,2)", "[1,2]"), ("1,2", "1,2,2"), ("12", "1 2"), ("3.14", r"\pi"),
    ("5", "5m"), ("5", ""), ("5", r"\boxed{}"), ("5", r"\boxed{5} or \boxed{6}"), ("0", "nothing"),
    ("xy", "x+y"), ("6", "5 6"), ("1, 1", "1, 2"), (r"11,\! 111", "11, 111"), ("0.12346", "0.1235"),
]  # fmt: skip


def test_each_recorded_misjudgement_is_judged_rightly():
    for gold, answer, right in ORIGINAL:
        assert judge_math(gold, answer).correct is right, (gold, answer)


def test_what_has_the_same_value_is_right():
    for gold, answer in RIGHT:
        assert judge_math(gold, answer) == Verdict(True, 1.0, ""), (gold, answer)


def test_what_has_another_value_is_wrong():
    for gold, answer in WRONG:
        verdict = judge_math(gold, answer)

        assert verdict.correct is False, (gold, answer)
        assert verdict.progress == 0.0, (gold, answer)
        assert verdict.reason, (gold, answer)


def test_the_question_tells_which_words_may_follow_a_number():
    for question, gold, answer, right in [
        ("How many eggs are left?", "18", "18 eggs", True),
        ("How many eggs are left?", "18", "18 hens", False),
        ("How many minutes does it take?", "120", "120 minutes", True),
        ("How many minutes does it take?", "120", "120 hours", False),
        ("What percent of them is red?", "50", "50%", True),
        ("What percent of them is red?", "50%", "50", True),
        ("What percent of them is red?", "50%", "0.5", False),
        ("What is the speed in km/h?", "60", "60 km/h", True),
        ("How much does it cost on the second day?", "18", "18 dollars", True),
        ("How many dollars are left?", "18", "$18 dollars", True),
    ]:
        assert judge_math(gold, answer, question).correct is right, (question, answer)


def test_a_gold_nobody_can_read_leaves_the_answer_unscored():
    verdict = judge_math(r"\log_2 x", "7")

    assert verdict == Verdict(None, 0.0, "the gold answer cannot be read")


fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=997)


@settings(max_examples=30)
@given(fractions)
def test_every_spelling_of_a_fraction_is_the_same_number(value):
    sign, above, below = "-" if value < 0 else "", abs(value.numerator), value.denominator
    spellings = [f"{value}", f"{sign}\\frac{{{above}}}{{{below}}}", f"{sign}{above} / {below}"]

    for spelling in [*spellings, f"${spellings[1]}$", f"\\boxed{{{spellings[1]}}}"]:
        assert judge_math(str(value), spelling).correct is True


@settings(max_examples=50)
@given(fractions, fractions)
def test_two_fractions_are_the_same_answer_exactly_if_they_are_equal(one, other):
    assert judge_math(str(one), str(other)).correct is (one == other)


@settings(max_examples=50)
@given(st.integers(-(10**15), 10**15))
def test_separators_between_thousands_change_nothing(value):
    assert judge_math(str(value), f"{value:,}").correct is True


surds = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 40)), min_size=1, max_size=3)


@settings(max_examples=40)
@given(surds, surds)
def test_a_product_of_sums_of_roots_is_what_its_terms_multiply_to(left, right):
    def written(terms):
        return "+".join(f"({factor})\\sqrt{{{radicand}}}" for factor, radicand in terms)

    expanded = [(a * c, b * d) for a, b in left for c, d in right]
    product, _ = read_expression(f"({written(left)})({written(right)})")
    assert product == read_expression(written(expanded))[0]


FORMULAS = st.text(alphabet="0123456789.,+-*/^(){}[]\\ $%xifracsqrt=πe_", max_size=40)


@settings(max_examples=100)
@given(FORMULAS | st.text(max_size=60), FORMULAS | st.text(max_size=60))
def test_no_text_raises_as_gold_or_as_answer(gold, answer):
    assert judge_math(gold, answer).correct in (True, False, None)
    assert judge_math(gold, f"\\boxed{{{gold}}}").correct in (True, False, None)


@pytest.mark.parametrize("text", ["0/0", r"\frac{1}{1-1}", "x/0", "2 + 3/0", "2^{3000}"])
def test_what_has_no_value_that_can_be_read_is_never_right(text):
    assert judge_math("1", f"\\boxed{{{text}}}").correct is False
    assert judge_math(text, "1").correct is None
